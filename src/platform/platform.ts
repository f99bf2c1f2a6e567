// The composition root: config becomes one running platform. The only place that knows every part and where each comes
// from, and in which order they end.
import type { ListenAddress } from '../base/listen-address.ts';
import { describeBug, type Log } from '../base/log.ts';
import { createApi } from './api/answering.ts';
import { withDocuments } from './api/openapi/documents.ts';
import type { MetricsServer } from './api/metrics-server.ts';
import type { Metrics, Readings } from './api/metrics.ts';
import { openServer } from './api/server.ts';
import type { PlatformConfig } from './config.ts';
import { createAuthenticator } from './identity/authentication.ts';
import { type BackgroundTasks, startBackgroundTasks } from './background-tasks.ts';
import { createReadings } from './database-gauges.ts';
import { createResourceRoutes } from './routes.ts';
import { authenticateSandbox } from './sandbox-records/sandbox-token.ts';
import type { Storage } from './storage.ts';

export type Platform = {
  readonly url: string;
  /** Undefined: metrics are told nowhere. */
  readonly metricsUrl: string | undefined;
  readonly storage: Storage['kind'];
  /** Resolves when the database ended by itself: there is nothing more to do then. */
  readonly ended: Promise<void>;
  /** Lets running requests end, then jobs, then the database. */
  close(): Promise<void>;
};

export type PlatformParts = {
  readonly log: Log;
  readonly version: string;
  /** On its way: the database starts while the rest of the platform is loaded. */
  readonly storage: Promise<Storage>;
};

/** Throws an Error that says what to mend when it cannot. */
export async function openPlatform(
  config: PlatformConfig,
  { log, version, storage: opening }: PlatformParts,
): Promise<Platform> {
  await using opened = new AsyncDisposableStack();
  let isReady = true;
  const storage = opened.adopt(await opening, (one) => one.close());
  const { store } = storage;
  const authenticator = createAuthenticator({
    now: () => Date.now(),
    onError: (error) => log.warn(describeBug(error), 'a last use of a key was not written'),
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
        store,
        gatekeeper: { authenticator, authenticateSandbox },
        log,
        maxBodyBytes: config.limits.bodyBytes,
      }),
      listen: config.listen,
      limits: config.limits,
      trustedProxies: config.trustedProxies,
      log,
      onResponded: (responded) => metrics?.onResponded(responded),
    }),
  ]);
  opened.adopt(backgroundTasks, (one: BackgroundTasks) => one.close());
  opened.adopt(server, (one) => one.close());
  let metricsUrl: string | undefined;
  if (config.metricsListen !== undefined) {
    const readings = createReadings(store, () => server.running, log);
    const exposed = await openMetrics(config.metricsListen, readings, log);
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

/** Loaded when it is asked for: many installations never do. */
async function openMetrics(
  listen: ListenAddress,
  readings: Readings,
  log: Log,
): Promise<{ readonly metrics: Metrics; readonly server: MetricsServer }> {
  const [{ createMetrics }, { openMetricsServer }] = await Promise.all([
    import('./api/metrics.ts'),
    import('./api/metrics-server.ts'),
  ]);
  const metrics = createMetrics(readings);
  return { metrics, server: await openMetricsServer(metrics, listen, log) };
}
