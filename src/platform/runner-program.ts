// The composition root of a runner: the settings of a platform in, one running process out that builds, runs and reaches the deployments of
// this machine. It loads no module of the platform that serves requests of the API.
import { randomUUID } from 'node:crypto';
import { availableParallelism, hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../base/log.ts';
import { openWorkloads } from '../workload/workloads.ts';
import type { Workloads } from '../workload/workload.ts';
import { openAdmission } from './api/shares/opened-admission.ts';
import type { PlatformConfig } from './config.ts';
import { createDeploymentGateway, type DeploymentGateway } from './deployment-gateway/deployment-gateway.ts';
import { MAX_SCALE } from './deployments/deployment-limits.ts';
import { gatewayTemplate } from './deployments/gateway-address.ts';
import { sourcePlaceOf } from './deployments/source-store.ts';
import { createInstanceControl } from './deployment-gateway/instance-control.ts';
import { readAllMigrations } from './migrations.ts';
import { createConnectionBudget } from './runner/database-bridge/connection-budget.ts';
import { createRunnerBuilds, type RunnerBuilds } from './runner-builds.ts';
import { watchDatabaseSizes } from './runner/databases/database-sizes.ts';
import { readDatabaseSizes } from './runner/databases/server-databases.ts';
import type { DeploymentGround, RunnerEvents } from './runner/deployments/deployment-ground.ts';
import { createCapacity } from './runner/fleet/capacity.ts';
import { createStartTurns } from './runner/fleet/start-turns.ts';
import { findProgramFiles } from './runner/instances/program-files.ts';
import { createDeployLogs, type DeployLogs } from './runner/logs/deploy-logs.ts';
import { openRunner, type Runner } from './runner/runner.ts';
import { platformUrlOf } from './runner/program/platform-url.ts';
import {
  prepareRunnerDirectories,
  removeLeftoverDirectories,
  type RunnerDirectories,
} from './runner/program/directories.ts';
import { requireBuildHosts } from './runner/program/build-hosts.ts';
import type { RunnerMetrics } from './runner/program/metrics.ts';
import { RUNNER_CONNECTIONS } from './runner-settings.ts';
import { openProgramStorage, type ProgramStorage } from './programs/program-storage.ts';
import { openPools, type Pools } from './store/pools.ts';
import { readMachineId } from './store/data-directory/machine-id.ts';
import { checkMasterKeys } from './vault/master-key-registry.ts';
import { createVault, type Vault } from './vault/vault.ts';

export type RunnerProgram = {
  /** Of the gateway. */
  readonly url: string;
  readonly metricsUrl: string | undefined;
  readonly isolation: Workloads['isolation'];
  /** Ends what runs: after what has begun is done, or when the signal aborts. */
  close(signal: AbortSignal): Promise<void>;
};

export type RunnerParts = {
  readonly log: Log;
  /** The command of this program. */
  readonly program: readonly string[];
  /** The config of the sidecars of deployments. */
  readonly sidecarConfig: Readonly<Record<string, unknown>>;
  /** The variables that a sidecar may have. */
  readonly env: Readonly<Record<string, string>>;
};

/** Throws an Error that says what the operator must change. */
export async function openRunnerProgram(config: PlatformConfig, parts: RunnerParts): Promise<RunnerProgram> {
  const { log, program } = parts;
  const { runner: settings } = config;
  requireBuildHosts(settings.builds.allowHosts);
  await using opened = new AsyncDisposableStack();
  const directories = await prepareRunnerDirectories(
    config.dataDirectory,
    // As root, deployments and builds have users of their own, who pass through.
    settings.isolation === 'user' || process.getuid?.() === 0,
  );
  const workloads = opened.adopt(await openIsolated(config, parts, directories), (one) => one.close());
  await removeLeftoverDirectories(directories);
  const storage = opened.adopt(await openStorage(config, log), (one) => one.close());
  await checkMasterKeys(storage.pools.writes, config.vault);
  const vault = createVault(config.vault);
  const metrics = await openMetrics(config, { storage, log }, opened);
  const admission = openAdmission(config.limits, { ...storage, log }, opened);
  const gateway = await createDeploymentGateway({
    ...{ settings: settings.gateway, admission, log, meters: metrics?.meters },
    ...{ trustedProxies: config.trustedProxies, drainMs: config.limits.drainMs },
  });
  opened.adopt(gateway, (one) => one.close());
  const logs = opened.adopt(createDeployLogs({ db: storage.pools.long.db, log }), (one) => one.close());
  const shared = { config, storage, vault, workloads, directories, gateway, logs, log, program };
  const runner = await openDeployments({
    ...shared,
    machineId: await readMachineId(config.dataDirectory),
    metrics,
  });
  metrics?.watch(runner);
  const closing = opened.move();
  return {
    ...{ url: gateway.url, metricsUrl: metrics?.server.url, isolation: workloads.isolation },
    async close(signal) {
      const drained = Promise.all([gateway.close(), runner.close(signal)]).then(() => true);
      // Clients and a database that do not respond keep nothing: the process ends then, and whatever waits with it.
      if (await Promise.race([drained, whenAborted(signal)])) await closing.disposeAsync();
      else await Promise.race([workloads.close(), delay(END_MS)]);
    },
  };
}

function openStorage(config: PlatformConfig, log: Log): Promise<ProgramStorage<Pools>> {
  return openProgramStorage(config, {
    ...{ migrations: readAllMigrations(), log },
    openPools: (options) => openPools({ ...options, maxConnections: RUNNER_CONNECTIONS }),
  });
}

/** For workloads that are ended at once, and their sidecars. */
const END_MS = 5_000;

function whenAborted(signal: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(false), { once: true });
    if (signal.aborted) resolve(false);
  });
}

function openIsolated(
  { runner: { isolation } }: PlatformConfig,
  { log, program, sidecarConfig, env }: RunnerParts,
  directories: RunnerDirectories,
): Promise<Workloads> {
  return openWorkloads({
    ...{ directory: directories.workloads, isolation, log },
    // It is never chosen, but written by the operator.
    isExposed: false,
    sidecar: { command: program, config: sidecarConfig, env },
  });
}

type Ground = { readonly storage: ProgramStorage<Pools>; readonly log: Log };

async function openMetrics(
  { runner: { metricsListen } }: PlatformConfig,
  { storage, log }: Ground,
  opened: AsyncDisposableStack,
): Promise<RunnerMetrics | undefined> {
  if (metricsListen === undefined) return undefined;
  const { openRunnerMetrics } = await import('./runner/program/metrics.ts');
  const isReady = (): boolean => !opened.disposed;
  const metrics = await openRunnerMetrics(metricsListen, { pools: storage.pools, log, isReady });
  opened.defer(() => metrics.server.close());
  return metrics;
}

type Shared = Ground & {
  readonly config: PlatformConfig;
  readonly machineId: string;
  readonly vault: Vault;
  readonly workloads: Workloads;
  readonly directories: RunnerDirectories;
  readonly gateway: DeploymentGateway;
  readonly logs: DeployLogs;
  readonly program: readonly string[];
  readonly metrics: RunnerMetrics | undefined;
};

const NO_EVENTS: RunnerEvents = {
  onStarted: () => undefined,
  onRestarted: () => undefined,
  onSwitched: () => undefined,
};

async function openDeployments(shared: Shared): Promise<Runner> {
  const { config, storage, vault, workloads, directories, gateway, logs, log, program, machineId } = shared;
  const { runner: settings } = config;
  const runnerId = randomUUID();
  const store = storage.pools.long;
  const perDeployment = 2 * MAX_SCALE * settings.agentConnections;
  const builds = createRunnerBuilds({
    ...{ sources: sourcePlaceOf(config, machineId), directory: directories.builds },
    ...{ settings: settings.builds, storage, vault, workloads, runnerId, machineId, log },
    onEnd: ({ outcome, seconds }) => shared.metrics?.onBuilt(outcome, seconds),
  });
  const ground: DeploymentGround = {
    ...{ runnerId, store, vault, log, logs, gateway, drainMs: settings.drainMs },
    agents: {
      ...{ workloads, directory: directories.instances, createControl: createInstanceControl },
      program: { command: program, files: findProgramFiles(program) },
    },
    databases: {
      ...{ store, vault, log, owner: storage.ownerConnection, directory: directories.databases },
      connections: createConnectionBudget(settings.databaseConnections, perDeployment),
      maxBytes: settings.databaseBytes,
      limitTurns: createStartTurns(2),
      sizes: watchDatabaseSizes({
        read: (names) => readDatabaseSizes(storage.ownerConnection, names),
        log,
      }),
    },
    capacity: createCapacity(settings.limits),
    turns: createStartTurns(Math.max(2, availableParallelism())),
    agentConnections: settings.agentConnections,
    platformUrl: workloads.hasOwnNetwork ? platformUrlOf(config) : undefined,
    removeBuilds: (deploymentId) => builds.removeBuilds(deploymentId),
    events: shared.metrics?.events ?? NO_EVENTS,
  };
  const row = { id: runnerId, machineId, host: hostname(), pid: process.pid, isolation: workloads.isolation };
  const gatewayUrl = gatewayTemplate(gateway.url, settings.gateway.domain);
  const { notifications } = storage;
  const runner = await openRunner({ ground, row: { ...row, gatewayUrl }, notifications });
  builds.begin(runner);
  return withBuilds(runner, builds);
}

function withBuilds(runner: Runner, builds: Pick<RunnerBuilds, 'close'>): Runner {
  return {
    get deployments() {
      return runner.deployments;
    },
    get instances() {
      return runner.instances;
    },
    get isServing() {
      return runner.isServing;
    },
    async close(signal) {
      await Promise.all([runner.close(signal), builds.close()]);
    },
  };
}
