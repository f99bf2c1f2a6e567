// The composition root of the export worker: the settings of a platform in, one running process out that executes the runs of bulk exports. It
// alone loads what writes files; no process that serves requests does.
import type { Log } from '../../base/log.ts';
import { abandonUpload, exportRun } from '../bulk-export/files/run-export.ts';
import { databaseClock } from '../bulk-export/scheduling/clock.ts';
import { createTask, openTarget } from '../bulk-export/worker/export-task.ts';
import { openExportWorker } from '../bulk-export/worker/export-worker.ts';
import { createWorkerIdentity } from '../bulk-export/worker/worker-identity.ts';
import type { WorkerMetrics } from '../bulk-export/worker/worker-metrics.ts';
import type { PlatformConfig } from '../config.ts';
import { readAllMigrations } from '../migrations.ts';
import { openProgramStorage } from './program-storage.ts';
import { createRunPages } from '../traces/queries/run-pages.ts';
import { postgresTraceStore } from '../traces/store/postgres-trace-store.ts';
import { WORKER_CONNECTIONS } from '../settings/export-settings.ts';
import { type DatabaseOptions, openDatabase, type Store } from '../store/database.ts';
import { poolLimits } from '../store/pools.ts';
import { checkMasterKeys } from '../vault/master-key-registry.ts';
import { createVault } from '../vault/vault.ts';

export type ExportWorkerProgram = {
  readonly metricsUrl: string | undefined;
  /** Runs at once. */
  readonly places: number;
  /** Stops what runs, which is requeued. */
  close(): Promise<void>;
};

/** Throws an Error that says what the operator must change. */
export async function openExportWorkerProgram(
  config: PlatformConfig,
  log: Log,
): Promise<ExportWorkerProgram> {
  const { exports: settings } = config;
  await using opened = new AsyncDisposableStack();
  const places = settings.worker.runs;
  const storage = await openProgramStorage(config, {
    ...{ migrations: readAllMigrations(), log },
    openPools: (options) => openWorkerPools(options, places),
  });
  opened.adopt(storage, (one) => one.close());
  const { pools, notifications } = storage;
  const { pages, states: store } = pools;
  await checkMasterKeys(store, config.vault);
  const vault = createVault(config.vault);
  let isReady = false;
  const { metricsListen } = settings.worker;
  const metrics: WorkerMetrics | undefined =
    metricsListen &&
    (await (
      await import('../bulk-export/worker/worker-metrics.ts')
    ).openWorkerMetrics(metricsListen, { pools, log, isReady: () => isReady }));
  if (metrics !== undefined) opened.adopt(metrics.server, (one) => one.close());
  const { endpoints, addresses, limits, rules } = settings;
  const opening = { vault, db: store.db, endpoints, addresses };
  const worker = await openExportWorker({
    ...{ pages, store, traces: createRunPages(postgresTraceStore), clock: databaseClock, notifications, log },
    ...{ limits, rules, places, identity: createWorkerIdentity() },
    exportRun: (task, means) => exportRun(task, { ...means, limits: { pageBytes: settings.pageBytes } }),
    createTask: (claimed) => createTask(claimed, opening),
    abandonUpload: async (left) => abandonUpload(await openTarget(left, opening), left.pending),
    onEnded: (ended) => metrics?.onEnded(ended),
  });
  opened.adopt(worker, (one) => one.close());
  metrics?.watch(worker);
  isReady = true;
  const closing = opened.move();
  return {
    ...{ metricsUrl: metrics?.server.url, places },
    async close() {
      isReady = false;
      await closing.disposeAsync();
    },
  };
}

type WorkerPools = {
  /** One connection for each run: a page of traces may take minutes. */
  readonly pages: Store;
  /** Of exports and their runs. */
  readonly states: Store;
  connections(): Readonly<Record<string, ReturnType<Store['connections']>>>;
  close(): Promise<void>;
};

function openWorkerPools(
  options: Omit<DatabaseOptions, 'limits' | 'maxConnections'>,
  places: number,
): WorkerPools {
  const pages = openDatabase({ ...options, maxConnections: places, limits: poolLimits.long });
  const limits = poolLimits.writes;
  const states = openDatabase({ ...options, maxConnections: WORKER_CONNECTIONS, limits });
  return {
    ...{ pages, states },
    connections: () => ({ pages: pages.connections(), states: states.connections() }),
    close: async () => void (await Promise.all([pages.close(), states.close()])),
  };
}
