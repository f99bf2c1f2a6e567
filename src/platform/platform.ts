// The composition root: turns a config and the modules into one running process of the platform, and closes its parts in
// the right order. A process serves requests, or runs jobs and other background work, or does both.
import { describeBug, type Log } from '../base/log.ts';
import { type Admission, createAdmission } from './api/shares/admission.ts';
import { createApi } from './api/pipeline.ts';
import { withDocuments } from './api/openapi/documents.ts';
import type { Route } from './api/route.ts';
import { type FinishedRequest, openServer, type Server, type ServerOptions } from './api/server.ts';
import type { PlatformConfig } from './config.ts';
import { warnWithoutOrganization } from './first-start.ts';
import { createAuthenticator } from './identity/authentication.ts';
import { watchRevocations } from './identity/revocation-notices.ts';
import type { Module, StartContext, Wiring } from './module.ts';
import { createRoutes, jobsOf, modules as allModules } from './modules.ts';
import type { MetricsSource } from './platform-metrics.ts';
import type { Storage } from './storage.ts';
import type { Store } from './store/database.ts';
import type { Pools } from './store/pools.ts';
import type { Notifications } from './store/postgres/notifications.ts';
import { checkMasterKeys } from './vault/master-key-registry.ts';
import { createVault, type Vault } from './vault/vault.ts';

export type Platform = {
  /** Undefined in a process that does not serve. */
  readonly url: string | undefined;
  /** Undefined when metrics are not configured. */
  readonly metricsUrl: string | undefined;
  readonly storage: Storage['kind'];
  /** Resolves when the database server ended by itself: the platform can do nothing more. */
  readonly ended: Promise<void>;
  /** Waits for running requests, then for jobs and what the modules started, then closes the database. */
  close(): Promise<void>;
};

export type PlatformParts = Pick<ServerOptions, 'writeRequest'> & {
  readonly log: Log;
  readonly version: string;
  /** The command of this program. */
  readonly program: readonly string[];
  /** A promise, so that the database starts while the rest of the platform is loaded. */
  readonly storage: Promise<Storage>;
  readonly modules?: readonly Module[];
};

/** Throws an Error that says what the operator must change. */
export async function openPlatform(
  config: PlatformConfig,
  { log, writeRequest, version, program, storage: opening, modules = allModules }: PlatformParts,
): Promise<Platform> {
  await using opened = new AsyncDisposableStack();
  const storage = opened.adopt(await opening, (one) => one.close());
  const { pools } = storage;
  const vault = await openVault(config, pools.writes, log);
  const draining = new AbortController();
  let isStarted = false;
  const isReady = (): boolean => isStarted && !draining.signal.aborted;
  const roles = { serves: config.role !== 'work', works: config.role !== 'serve' };
  let server: Server | undefined;
  // Opened early and closed late: meanwhile it says that this process is not ready.
  const exposed = await openMetrics(config, {
    ...{ pools, log, isReady },
    running: () => server?.running ?? 0,
    streams: () => server?.streams ?? 0,
  });
  if (exposed !== undefined) opened.adopt(exposed.server, (one) => one.close());
  const notifications = opened.adopt(storage.openNotifications(), (one) => one.close());
  const admission = roles.serves ? openAdmission(config, { pools, notifications, log }, opened) : undefined;
  // Closed after the jobs, which may need them; started before the first request.
  const parts = opened.use(new AsyncDisposableStack());
  const jobs = opened.adopt(await storage.openJobs(jobsOf(modules), roles.works), (one) => one.close());
  const wiring: Wiring = { config, vault, send: jobs.send, notifications };
  const { signal } = draining;
  const process = { store: pools.long, log, program, roles, signal, admission, meters: exposed?.metrics };
  await startModules(modules, { ...wiring, ...process }, parts);
  await jobs.work();
  isStarted = true;
  if (admission !== undefined) {
    const info = modules.flatMap((module) => module.info ?? []);
    const routes = withDocuments({ routes: createRoutes(wiring, modules), version, info, isReady });
    const onFinished = (finished: FinishedRequest): void => exposed?.metrics.onFinished(finished);
    const output = { log, writeRequest, onFinished };
    server = await serve(config, { routes, admission, ...output }, opened);
  }
  await warnWithoutOrganization(pools.reads, log);
  const closing = opened.move();
  return {
    url: server?.url,
    metricsUrl: exposed?.server.url,
    storage: storage.kind,
    ended: storage.ended,
    async close() {
      draining.abort(new Error('the process is shutting down'));
      await closing.disposeAsync();
    },
  };
}

async function openMetrics({ metricsListen }: PlatformConfig, source: MetricsSource) {
  if (metricsListen === undefined) return undefined;
  const { openMetrics: open } = await import('./platform-metrics.ts');
  return open(metricsListen, source);
}

type Ground = { readonly pools: Pools; readonly notifications: Notifications; readonly log: Log };

function openAdmission(
  { limits }: PlatformConfig,
  { pools, notifications, log }: Ground,
  opened: AsyncDisposableStack,
): Admission {
  const authenticator = createAuthenticator({
    now: () => Date.now(),
    onError: (error) => log.warn(describeBug(error), 'the last use of a key was not stored'),
  });
  opened.defer(() => authenticator.settle());
  const admission = createAdmission({ pools, authenticator, log, limits });
  // Not waited for: without the connection the streams are confirmed every half minute.
  void watchRevocations(notifications, (organizationId) => void admission.streams.sweep(organizationId));
  return admission;
}

/** In the order of the list. What was started before one that fails is closed. */
async function startModules(
  modules: readonly Module[],
  context: StartContext,
  parts: AsyncDisposableStack,
): Promise<void> {
  for (const module of modules) {
    const part = await module.start?.(context);
    if (part !== undefined) parts.adopt(part, (one) => one.close());
  }
}

type Served = Pick<ServerOptions, 'log' | 'writeRequest' | 'onFinished'> & {
  readonly routes: readonly Route[];
  readonly admission: Admission;
};

async function serve(
  { listen, limits, trustedProxies, publicUrl }: PlatformConfig,
  { routes, admission, log, writeRequest, onFinished }: Served,
  opened: AsyncDisposableStack,
): Promise<Server> {
  const api = createApi(routes, { ...admission, log, limits, admission });
  // After the last request.
  opened.defer(() => api.settle());
  const output = { log, writeRequest, onFinished };
  const server = await openServer({ api, listen, limits, trustedProxies, publicUrl, ...output });
  return opened.adopt(server, (one) => one.close());
}

/** A wrong master key is refused here, and not with the first request that needs it. */
async function openVault({ vault }: PlatformConfig, store: Store, log: Log): Promise<Vault> {
  if ((await checkMasterKeys(store, vault)) === 'absent')
    log.info(
      { file: vault.masterKeyFile },
      'the vault has no master key and seals nothing: run sallyport platform init to create one',
    );
  return createVault(vault);
}
