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
  async start({ config }) {
    await removeLeftSpools(config.traces.spoolDirectory);
    return undefined;
  },
  jobs: [removeTraces],
  migrations: [new URL('./migrations/0025-traces.sql', import.meta.url)],
};
