// Traces: runs that clients send, the projects that they belong to, feedback and attachments.
import { mount } from '../api/contract/mount.ts';
import type { Module } from '../module.ts';
import { createIngestionRoutes } from './ingestion/ingestion-routes.ts';
import { removeLeftSpools } from './ingestion/spool.ts';
import { createProjectRoutes } from './projects/project-routes.ts';
import { createQueryRoutes } from './queries/query-routes.ts';
import { postgresTraceStore } from './store/postgres-trace-store.ts';
import { removeTraces } from './upkeep/removal.ts';

/** Clients put one of them before every path, by how their endpoint is set. */
const PREFIXES = ['/api/v1', '', '/api'] as const;

export const traces: Module = {
  name: 'traces',
  routes: ({ config }) =>
    mount(
      [
        ...createProjectRoutes(postgresTraceStore),
        ...createQueryRoutes({ store: postgresTraceStore }),
        ...createIngestionRoutes(postgresTraceStore, config.traces),
      ],
      { under: PREFIXES },
    ),
  // By it clients choose how they send: all runs in one multipart body, compressed.
  info: ({ traces: { maxSentBytes } }) => ({
    batch_ingest_config: {
      use_multipart_endpoint: true,
      ...{ scale_up_qsize_trigger: 1000, scale_up_nthreads_limit: 16, scale_down_nempty_trigger: 4 },
      ...{ size_limit: 100, size_limit_bytes: maxSentBytes },
    },
    instance_flags: { zstd_compression_enabled: true, gzip_body_enabled: true },
  }),
  async start({ config }) {
    await removeLeftSpools(config.traces.spoolDirectory);
    return undefined;
  },
  jobs: [removeTraces],
  migrations: [new URL('./migrations/0025-traces.sql', import.meta.url)],
};
