// Traces: runs that clients send, the projects that they belong to, feedback and attachments.
import { mount } from '../api/contract/mount.ts';
import type { Module } from '../module.ts';
import { startFileSweep } from '../store/files/file-sweep.ts';
import { createAttachmentRoute } from './artifacts/attachment-route.ts';
import { artifactPlaceOf, knownObjects, openArtifacts } from './artifacts/artifacts.ts';
import { attachmentUrls } from './artifacts/attachments.ts';
import { replaceSigningKeys } from './artifacts/signed-address.ts';
import { placeFeedback } from './feedback/feedback-placement.ts';
import { createFeedbackRoutes } from './feedback/feedback-routes.ts';
import { createIngestionRoutes } from './ingestion/ingestion-routes.ts';
import { removeLeftSpools } from './ingestion/spool.ts';
import { createPageRoutes } from './pages/page-routes.ts';
import { createProjectRoutes } from './projects/project-routes.ts';
import { createQueryRoutes } from './queries/query-routes.ts';
import { postgresTraceStore } from './store/postgres-trace-store.ts';
import { TraceMeters } from './trace-meters.ts';
import { removeTraces } from './upkeep/removal.ts';
import { createRetention } from './upkeep/retention.ts';

/** Clients put one of them before every path, by how their endpoint is set. */
const PREFIXES = ['/api/v1', '', '/api'] as const;

export const traces: Module = createTraces();

/** `meters` count where the process has metrics. */
export function createTraces(meters: TraceMeters = new TraceMeters()): Module {
  const retention = createRetention(meters);
  return {
    name: 'traces',
    routes: ({ config }) => {
      const artifacts = openArtifacts(config);
      const routes = [
        ...createProjectRoutes(postgresTraceStore),
        ...createQueryRoutes({ store: postgresTraceStore, findAttachments: attachmentUrls }),
        ...createIngestionRoutes(postgresTraceStore, { artifacts, meters }, config.traces),
        ...createFeedbackRoutes(postgresTraceStore, meters),
        createAttachmentRoute(artifacts),
      ];
      return [...mount(routes, { under: PREFIXES }), ...createPageRoutes(postgresTraceStore)];
    },
    // By it clients choose how they send: all runs in one multipart body, compressed.
    info: ({ traces: { maxSentBytes } }) => ({
      batch_ingest_config: {
        use_multipart_endpoint: true,
        ...{ scale_up_qsize_trigger: 1000, scale_up_nthreads_limit: 16, scale_down_nempty_trigger: 4 },
        ...{ size_limit: 100, size_limit_bytes: maxSentBytes },
      },
      instance_flags: { zstd_compression_enabled: true, gzip_body_enabled: true },
    }),
    jobs: [removeTraces, placeFeedback, replaceSigningKeys, retention.job],
    async start({ config, store, log, roles, meters: given }) {
      meters.open(given, () => postgresTraceStore.countPartitions(store.db));
      retention.keepDays(config.traces.retentionDays);
      await removeLeftSpools(config.traces.spoolDirectory);
      // Of a directory, each process removes what it can reach; a bucket needs one process that looks.
      if (artifactPlaceOf(config).bucket !== undefined && !roles.works) return undefined;
      return startFileSweep({
        ...{
          log,
          everyMs: 3_600_000,
          problem: 'contents of attachments that nothing needs were not removed',
        },
        open: async () => openArtifacts(config),
        known: (objects) => knownObjects(store.db, objects),
      });
    },
  };
}
