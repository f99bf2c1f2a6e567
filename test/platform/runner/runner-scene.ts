// A runner on a real database whose agent servers are small programs of this user, without a build and without isolation.
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createLog } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secret.ts';
import type { ResourceSpec } from '../../../src/platform/deployments/deployment-rows.ts';
import { replaceSecrets } from '../../../src/platform/deployments/deployment-secrets.ts';
import type { RevisionStatus } from '../../../src/platform/deployments/revision-states.ts';
import { Targets } from '../../../src/platform/deployment-gateway/target-table.ts';
import { createConnectionBudget } from '../../../src/platform/runner/database-bridge/connection-budget.ts';
import { createCapacity, type CapacityLimits } from '../../../src/platform/runner/fleet/capacity.ts';
import { createStartTurns } from '../../../src/platform/runner/fleet/start-turns.ts';
import { createDeployLogs } from '../../../src/platform/runner/logs/deploy-logs.ts';
import { openRunner, type Runner } from '../../../src/platform/runner/runner.ts';
import { openNotifications } from '../../../src/platform/store/postgres/notifications.ts';
import { createPlainControl } from '../../support/instance-control.ts';
import { openPlainWorkloads, type PlainWorkloads } from '../../support/plain-workloads.ts';
import { createScratch } from '../../support/scratch.ts';
import { projectRoot } from '../../support/spawned-process.ts';
import {
  createDeploymentScene,
  type Deployment,
  type DeploymentScene,
} from '../deployments/deployment-scene.ts';

export type RunnerScene = AsyncDisposable & {
  readonly deployments: DeploymentScene;
  readonly workloads: PlainWorkloads;
  readonly targets: Targets;
  readonly directory: string;
  /** Of the runner that `start` opened last. */
  readonly machineId: string;
  start(given?: { limits?: Partial<CapacityLimits>; drainMs?: number }): Promise<Runner>;
  /** A revision whose build is there. `mode`: of the small agent, by its secret. */
  addRevision(deployment: Deployment, given?: NewRevision): Promise<string>;
  statusOf(revisionId: string): Promise<RevisionStatus>;
  /** What the deployment responds, by the instance that the gateway would take; undefined: none serves. */
  ask(deployment: Deployment): Promise<AgentResponse | undefined>;
  logOf(deployment: Deployment): Promise<readonly string[]>;
};

export type NewRevision = {
  readonly mode?: string;
  readonly secrets?: Readonly<Record<string, string>>;
  readonly resources?: ResourceSpec;
};

export type AgentResponse = {
  readonly revision: string;
  readonly variables: Readonly<Record<string, string>>;
};

const silent = createLog('silent', { write: () => undefined });

export async function createRunnerScene(): Promise<RunnerScene> {
  const [deployments, scratch] = await Promise.all([createDeploymentScene(), createScratch()]);
  const { database, vault } = deployments;
  const { store } = database;
  const workloads = openPlainWorkloads();
  const targets = new Targets();
  const machineId = randomUUID();
  const notifications = openNotifications({
    connection: database.connection,
    onLost: () => undefined,
    onError: () => undefined,
  });
  const runners: Runner[] = [];
  const logs = createDeployLogs({ db: store.db, log: silent });
  for (const name of ['run', 'db', 'build']) await mkdir(join(scratch.path, name));
  await writeFile(join(scratch.path, 'build', 'langgraph.json'), '{}');
  const agents = {
    ...{ workloads, directory: join(scratch.path, 'run'), createControl: createPlainControl },
    program: { command: [process.execPath, join(projectRoot, 'test/support/small-agent.ts')], files: [] },
  };
  return {
    ...{ deployments, workloads, targets, directory: scratch.path, machineId },
    async start({ limits, drainMs } = {}) {
      const runnerId = randomUUID();
      const size = { instances: 10, memoryBytes: 64 * 1024 ** 3, cpuMillicores: 64_000, ...limits };
      const ground = {
        ...{ runnerId, store, vault, log: silent, logs, agents, agentConnections: 4, platformUrl: undefined },
        databases: {
          ...{ store, vault, owner: database.ownerConnection, log: silent },
          ...{ connections: createConnectionBudget(100, 10), directory: join(scratch.path, 'db') },
          ...{ maxBytes: 2 ** 40, sizes: { watch: () => () => undefined }, limitTurns: createStartTurns(2) },
        },
        gateway: { targets, prefixOf: (id: string) => `/d/${id}` },
        ...{ capacity: createCapacity(size), turns: createStartTurns(4) },
        removeBuilds: async () => undefined,
        events: { onStarted: () => undefined, onRestarted: () => undefined, onSwitched: () => undefined },
        ...(drainMs !== undefined && { drainMs }),
      };
      const row = { id: runnerId, machineId, host: 'host', pid: process.pid };
      const runner = await openRunner({ ground, row, notifications, intervalMs: 200 });
      runners.push(runner);
      return runner;
    },
    addRevision: (deployment, given = {}) =>
      addRevision(deployments, deployment, { machineId, ...given }, scratch.path),
    async statusOf(revisionId) {
      const row = store.db.selectFrom('revisions').select('status').where('id', '=', revisionId);
      return (await row.executeTakeFirstOrThrow()).status;
    },
    async ask({ id }) {
      const taken = targets.take(id);
      if (taken === undefined) return undefined;
      const { promise, resolve, reject } = Promise.withResolvers<AgentResponse>();
      const { socketPath } = taken.instance;
      request({ socketPath, path: '/', agent: false }, (response) => {
        text(response).then((body) => resolve(JSON.parse(body)), reject);
      })
        .on('error', reject)
        .end();
      return promise.finally(() => taken.release());
    },
    async logOf({ id }) {
      const rows = store.db.selectFrom('deployment_logs').select('message').where('deployment_id', '=', id);
      return (await rows.orderBy('id').execute()).map(({ message }) => message);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(runners.map((one) => one.close(AbortSignal.abort())));
      await logs.close();
      await workloads.close();
      await notifications.close();
      await dropDatabases(deployments);
      await deployments[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function addRevision(
  { database: { store }, vault, addRevision: insert }: DeploymentScene,
  deployment: Deployment,
  { machineId, mode, secrets = {}, resources = {} }: NewRevision & { machineId: string },
  directory: string,
): Promise<string> {
  const all = Object.entries({ ...secrets, ...(mode === undefined ? {} : { MODE: mode }) });
  const owner = { workspaceId: deployment.workspaceId, deploymentId: deployment.id };
  await vault.prepare();
  const secretsVersion = await store.write(async (trx) => {
    const row = trx.selectFrom('deployments').select('secrets_version').where('id', '=', deployment.id);
    const { secrets_version: version } = await row.executeTakeFirstOrThrow();
    const given = all.map(([name, value]) => ({ name, value: new Secret(value) }));
    const next = await replaceSecrets({ vault, trx }, owner, version, given);
    const change = trx.updateTable('deployments').set({ secrets_version: next });
    await change.where('id', '=', deployment.id).execute();
    return next;
  });
  const config = { resource_spec: { cpu_limit: 1, memory_limit_mb: 1024, ...resources } };
  const build = await store.db
    .insertInto('builds')
    .values({
      ...{ workspace_id: deployment.workspaceId, deployment_id: deployment.id, machine_id: machineId },
      ...{ source_path: 'x', directory: join(directory, 'build'), size_bytes: '1', ready_at: new Date() },
      ...{ runner_id: null, source_sha256: null, config_path: null, removed_at: null },
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  const id = await insert(deployment, { status: 'AWAITING_DEPLOY', config, secretsVersion });
  await store.db.updateTable('revisions').set({ build_id: build.id }).where('id', '=', id).execute();
  return id;
}

async function dropDatabases({ database: { store, ownerConnection } }: DeploymentScene): Promise<void> {
  const { dropServerDatabase } = await import('../../../src/platform/runner/databases/server-databases.ts');
  for (const { name } of await store.db.selectFrom('runner_databases').select('name').execute())
    await dropServerDatabase(ownerConnection, { database: name, role: name });
}
