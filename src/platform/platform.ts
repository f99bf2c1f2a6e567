// The composition root: turns a config into one running platform, and closes its parts in the right order.
import { describeBug, type Log } from '../base/log.ts';
import { createApi } from './api/pipeline.ts';
import { withDocuments } from './api/openapi/documents.ts';
import type { Metrics } from './api/metrics.ts';
import { openServer } from './api/server.ts';
import { startBackgroundTasks } from './background-tasks.ts';
import type { PlatformConfig } from './config.ts';
import { createAuthenticator } from './identity/authentication.ts';
import { createResourceRoutes } from './routes.ts';
import type { Storage } from './storage.ts';
import type { Store } from './store/database.ts';
import { checkMasterKeys } from './vault/master-key-registry.ts';

export type Platform = {
  readonly url: string;
  /** Undefined when metrics are not configured. */
  readonly metricsUrl: string | undefined;
  readonly storage: Storage['kind'];
  /** Resolves when the database server ended by itself: the platform can do nothing more. */
  readonly ended: Promise<void>;
  /** Waits for running requests, then for jobs, then closes the database. */
  close(): Promise<void>;
};

export type PlatformParts = {
  readonly log: Log;
  readonly version: string;
  /** A promise, so that the database starts while the rest of the platform is loaded. */
  readonly storage: Promise<Storage>;
};

/** Throws an Error that says what the operator must change. */
export async function openPlatform(
  config: PlatformConfig,
  { log, version, storage: opening }: PlatformParts,
): Promise<Platform> {
  await using opened = new AsyncDisposableStack();
  let isReady = true;
  const storage = opened.adopt(await opening, (one) => one.close());
  const { pools } = storage;
  await checkVault(config, pools.writes, log);
  const authenticator = createAuthenticator({
    now: () => Date.now(),
    onError: (error) => log.warn(describeBug(error), 'the last use of a key was not stored'),
  });
  opened.defer(() => authenticator.settle());
  const routes = withDocuments({
    routes: createResourceRoutes(config.defaultFeatures),
    version,
    isReady: () => isReady,
  });
  let metrics: Metrics | undefined;
  const [backgroundTasks, server] = await Promise.all([
    startBackgroundTasks(config, { storage, log }),
    openServer({
      api: createApi(routes, {
        pools,
        authenticator,
        log,
        limits: config.limits,
      }),
      listen: config.listen,
      limits: config.limits,
      trustedProxies: config.trustedProxies,
      log,
      onFinished: (finished) => metrics?.onFinished(finished),
    }),
  ]);
  opened.adopt(backgroundTasks, (one) => one.close());
  opened.adopt(server, (one) => one.close());
  let metricsUrl: string | undefined;
  if (config.metricsListen !== undefined) {
    const { openMetrics } = await import('./platform-metrics.ts');
    const source = { pools, running: () => server.running, streams: () => server.streams, log };
    const exposed = await openMetrics(config.metricsListen, source);
    opened.adopt(exposed.server, (one) => one.close());
    metrics = exposed.metrics;
    metricsUrl = exposed.server.url;
  }
  const parts = opened.move();
  return {
    url: server.url,
    metricsUrl,
    storage: storage.kind,
    ended: storage.ended,
    async close() {
      isReady = false;
      await parts.disposeAsync();
    },
  };
}

/** What cannot be opened is refused here, and not with the first request that needs it. */
async function checkVault({ vault }: PlatformConfig, store: Store, log: Log): Promise<void> {
  if ((await checkMasterKeys(store, vault)) === 'ready') return;
  const file = vault.masterKeyFile;
  log.info(
    { file },
    'the vault has no master key and seals nothing: run sallyport platform init to create one',
  );
}
