// The composition root: turns a config and the modules into one running process of the platform, and closes its parts in
// the right order. A process serves requests, or runs jobs and other background work, or does both.
import type { ListenAddress, SocketPath } from '../base/listen-address.ts';
import type { Log } from '../base/log.ts';
import type { Admission } from './api/shares/admission.ts';
import { openAdmission } from './api/shares/opened-admission.ts';
import type { ErrorFormat } from './api/contract/error-formats.ts';
import type { Fallback } from './api/contract/fallback.ts';
import type { Metrics } from './api/metrics.ts';
import { createApi } from './api/pipeline.ts';
import { type DocumentOptions, withDocuments } from './api/openapi/documents.ts';
import type { Route } from './api/route.ts';
import { type FinishedRequest, openServer, type Server, type ServerOptions } from './api/server.ts';
import type { PlatformConfig } from './config.ts';
import { warnWithoutOrganization } from './first-start.ts';
import type { Module, RunningPart, StartContext, Wiring } from './module.ts';
import { createRoutes, jobsOf, modules as allModules } from './modules.ts';
import type { MetricsServer } from './api/metrics-server.ts';
import type { MetricsSource } from './platform-metrics.ts';
import type { Storage } from './storage.ts';
import type { Store } from './store/database.ts';
import type { Jobs } from './store/jobs.ts';
import { checkMasterKeys } from './vault/master-key-registry.ts';
import type { MasterKeySource } from './vault/master-keys.ts';
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
  /** In place of what the config says. */
  readonly masterKeys?: MasterKeySource | undefined;
  /** Of another program on the same ground. */
  readonly service?: Service;
};

/** What another program has in place of what the platform says of itself. */
export type Service = {
  readonly listen: ListenAddress | SocketPath;
  readonly listenSetting: string;
  /** The routes of the modules, and those that describe them. */
  withDocuments(options: DocumentOptions): readonly Route[];
  /** For paths that no route has. */
  fallback?(): Fallback | undefined;
  readonly errors: ErrorFormat;
  /** Metrics that a route of the program serves. */
  onMetrics(metrics: Metrics): void;
  onServer?(server: Pick<Server, 'running' | 'streams'>): void;
  /** Whoever reaches its socket is a proxy, whose X-Forwarded-For is believed. */
  readonly isBehindProxy?: boolean;
};

/** Throws an Error that says what the operator must change. */
export async function openPlatform(
  config: PlatformConfig,
  { log, writeRequest, version, program, storage: opening, service, ...parts }: PlatformParts,
): Promise<Platform> {
  await using opened = new AsyncDisposableStack();
  const storage = opened.adopt(await opening, (one) => one.close());
  const { pools } = storage;
  const { modules = allModules, masterKeys = config.vault } = parts;
  const vault = await openVault(masterKeys, pools.writes, log);
  const draining = new AbortController();
  let isStarted = false;
  const isReady = (): boolean => isStarted && !draining.signal.aborted;
  const roles = { serves: config.role !== 'work', works: config.role !== 'serve' };
  let server: Server | undefined;
  // Opened early and closed late: meanwhile it says that this process is not ready.
  const exposed = await openMetrics(
    config,
    {
      ...{ pools, log, isReady },
      running: () => server?.running ?? 0,
      streams: () => server?.streams ?? 0,
      hasJobs: jobsOf(modules).length > 0,
    },
    service,
  );
  if (exposed?.server !== undefined) opened.adopt(exposed.server, (one) => one.close());
  const notifications = opened.adopt(storage.openNotifications(), (one) => one.close());
  const admission = roles.serves
    ? openAdmission(config.limits, { pools, notifications, log }, opened)
    : undefined;
  // Closed after the jobs, which may need them; started before the first request.
  const started = opened.use(new AsyncDisposableStack());
  const jobs = opened.adopt(await openJobs(storage, modules, roles.works), (one) => one.close());
  const wiring: Wiring = { config, vault, send: jobs.send, notifications };
  const { signal } = draining;
  const process = { store: pools.long, log, program, roles, signal, admission, meters: exposed?.metrics };
  const running = await startModules(modules, { ...wiring, ...process }, started);
  await jobs.work();
  isStarted = true;
  if (admission !== undefined) {
    const info = modules.flatMap((module) => module.info?.(config) ?? []);
    const describe = service?.withDocuments ?? withDocuments;
    const routes = describe({ routes: createRoutes(wiring, modules), version, info, isReady });
    const onFinished = (finished: FinishedRequest): void => exposed?.metrics.onFinished(finished);
    const output = { log, writeRequest, onFinished };
    server = await serve(config, { routes, admission, service, ...output }, opened);
    service?.onServer?.(server);
  }
  if (service === undefined) await warnWithoutOrganization(pools.reads, log);
  const closing = opened.move();
  return {
    url: server?.url,
    metricsUrl: exposed?.server?.url,
    storage: storage.kind,
    ended: storage.ended,
    async close() {
      draining.abort(new Error('the process is shutting down'));
      await Promise.all(running.map((part) => part.drain?.()));
      await closing.disposeAsync();
    },
  };
}

type Exposed = { readonly metrics: Metrics; readonly server?: MetricsServer };

async function openMetrics(
  { metricsListen }: PlatformConfig,
  source: MetricsSource,
  service: Service | undefined,
): Promise<Exposed | undefined> {
  if (metricsListen === undefined && service === undefined) return undefined;
  const { createPlatformMetrics, openMetrics: open } = await import('./platform-metrics.ts');
  if (metricsListen !== undefined) return open(metricsListen, source);
  const metrics = createPlatformMetrics(source);
  service?.onMetrics(metrics);
  return { metrics };
}

/** A program without jobs has no tables of jobs either. */
async function openJobs(
  storage: Storage,
  modules: readonly Module[],
  works: boolean,
): Promise<Pick<Jobs, 'send' | 'work' | 'close'>> {
  const all = jobsOf(modules);
  if (all.length > 0) return storage.openJobs(all, works);
  const send = async (): Promise<never> => {
    throw new Error('no module of this process has jobs');
  };
  return { send, work: async () => undefined, close: async () => undefined };
}

/** In the order of the list. What was started before one that fails is closed. */
async function startModules(
  modules: readonly Module[],
  context: StartContext,
  parts: AsyncDisposableStack,
): Promise<readonly RunningPart[]> {
  const running: RunningPart[] = [];
  for (const module of modules) {
    const part = await module.start?.(context);
    if (part !== undefined) running.push(parts.adopt(part, (one) => one.close()));
  }
  return running;
}

type Served = Pick<ServerOptions, 'log' | 'writeRequest' | 'onFinished'> & {
  readonly routes: readonly Route[];
  readonly admission: Admission;
  readonly service: Service | undefined;
};

async function serve(
  { listen, limits, trustedProxies, publicUrl }: PlatformConfig,
  { routes, admission, service, log, writeRequest, onFinished }: Served,
  opened: AsyncDisposableStack,
): Promise<Server> {
  const { fallback, errors } = { fallback: service?.fallback?.(), errors: service?.errors };
  const api = createApi(routes, { ...admission, log, limits, admission, fallback, errors });
  // After the last request.
  opened.defer(() => api.settle());
  const output = { log, writeRequest, onFinished };
  const at = { listen: service?.listen ?? listen, listenSetting: service?.listenSetting };
  const isBehindProxy = service?.isBehindProxy;
  const server = await openServer({
    api,
    ...at,
    isBehindProxy,
    limits,
    trustedProxies,
    publicUrl,
    ...output,
  });
  return opened.adopt(server, (one) => one.close());
}

/** A wrong master key is refused here, and not with the first request that needs it. */
async function openVault(vault: MasterKeySource, store: Store, log: Log): Promise<Vault> {
  if ((await checkMasterKeys(store, vault)) === 'absent')
    log.info(
      { file: vault.masterKeyFile },
      'the vault has no master key and seals nothing: run sallyport platform init to create one',
    );
  return createVault(vault);
}
