// A platform as a process on a database of the test, whose runner runs real agent servers without isolation. Deployments are rows of the test,
// and their builds are directories with the packages of this project.
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { moveRevision, SYSTEM } from '../../src/platform/deployments/revision-moves.ts';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { readMachineId } from '../../src/platform/store/data-directory/machine-id.ts';
import { writeDeployment } from './agent-process.ts';
import { createTestDatabase, type TestDatabase } from './platform-database.ts';
import {
  initPlatform,
  type PlatformOptions,
  type PlatformProcess,
  startPlatform,
} from './platform-process.ts';
import { createScratch, type Scratch } from './scratch.ts';
import type { LogRecord } from './spawned-process.ts';

export type DeploymentPlatform = AsyncDisposable & {
  readonly database: TestDatabase;
  readonly dataDirectory: string;
  readonly key: string;
  /** Another one, after the one before has ended. */
  start(
    env?: Readonly<Record<string, string>>,
    given?: Pick<PlatformOptions, 'launcher'>,
  ): Promise<PlatformProcess>;
  /** For a platform on another machine, with the master key of this one. */
  addDataDirectory(): Promise<string>;
  /** A deployment with one revision that waits to be deployed. `graph`: a module that exports `graph`. */
  addDeployment(graph?: string): Promise<{ readonly id: string; readonly revisionId: string }>;
  statusOf(revisionId: string): Promise<string>;
};

const GRAPH = `
import { Annotation, StateGraph } from '@langchain/langgraph';
const State = Annotation.Root({ said: Annotation() });
export const graph = new StateGraph(State)
  .addNode('say', async () => ({ said: 'hello' }))
  .addEdge('__start__', 'say')
  .compile();
`;

export async function createDeploymentPlatform(): Promise<DeploymentPlatform> {
  const [database, scratch] = await Promise.all([createTestDatabase(), createScratch()]);
  const dataDirectory = join(scratch.path, 'data');
  const key = mintKey('service').text;
  const common = {
    SALLYPORT_PLATFORM_RUNNER_ISOLATION: 'none',
    SALLYPORT_PLATFORM_RUNNER_GATEWAY_LISTEN: '127.0.0.1:0',
    SALLYPORT_PLATFORM_GATEWAY_LISTEN: '127.0.0.1:0',
  };
  const options = { dataDirectory, database };
  await initPlatform({ ...options, env: common }, key);
  const started: PlatformProcess[] = [];
  return {
    ...{ database, dataDirectory, key },
    async start(env = {}, given = {}) {
      const platform = startPlatform({ ...options, ...given, env: { ...common, ...env } });
      started.push(platform);
      await platform.ready;
      return platform;
    },
    async addDataDirectory() {
      const path = join(scratch.path, randomUUID());
      await mkdir(path, { mode: 0o711 });
      await copyFile(join(dataDirectory, 'vault-master.key'), join(path, 'vault-master.key'));
      return path;
    },
    addDeployment: (graph = GRAPH) => addDeployment(database, scratch, dataDirectory, graph),
    async statusOf(revisionId) {
      const row = database.store.db.selectFrom('revisions').select('status').where('id', '=', revisionId);
      return (await row.executeTakeFirstOrThrow()).status;
    },
    async [Symbol.asyncDispose]() {
      for (const one of started) await one[Symbol.asyncDispose]();
      await dropDatabases(database);
      await database[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** The line that says that a runner is ready. */
export function runnerReady({ process }: PlatformProcess): Promise<LogRecord> {
  return process.record(({ msg }) => msg === 'the runner is ready');
}

async function addDeployment(
  { store }: TestDatabase,
  scratch: Scratch,
  dataDirectory: string,
  graph: string,
) {
  const { id: workspaceId } = await store.db.selectFrom('workspaces').select('id').executeTakeFirstOrThrow();
  const id = randomUUID();
  const directory = join(scratch.path, id);
  await mkdir(directory);
  const files = { 'graph.mjs': graph, 'package.json': '{}' };
  await writeDeployment(directory, { graphs: { agent: './graph.mjs:graph' } }, files);
  const place = { workspace_id: workspaceId, deployment_id: id };
  const configs = { source_config: '{}', source_revision_config: '{}' };
  const source = 'internal_source';
  const revisionId = await store.write(async (trx) => {
    const row = {
      id,
      workspace_id: workspaceId,
      name: `app-${id}`,
      source,
      secret_references: '[]',
    } as const;
    const none = { display_name: null, status_reason: null, image_version: null, listener_id: null };
    const absent = {
      proxy_profile_id: null,
      latest_revision_id: null,
      active_revision_id: null,
      runner_id: null,
    };
    await trx
      .insertInto('deployments')
      .values({ ...row, ...configs, ...none, ...absent })
      .execute();
    const machine = { machine_id: await readMachineId(dataDirectory), runner_id: null, source_path: 'none' };
    const made = { directory, size_bytes: '1', ready_at: new Date(), removed_at: null };
    const build = trx
      .insertInto('builds')
      .values({ ...place, ...machine, ...made, source_sha256: null, config_path: null });
    const { id: buildId } = await build.returning('id').executeTakeFirstOrThrow();
    const revision = {
      ...place,
      ...configs,
      number: 1,
      status: 'QUEUED',
      source,
      secrets_version: 0,
    } as const;
    const inserted = trx.insertInto('revisions').values({ ...revision, build_id: buildId });
    const { id: made1 } = await inserted.returning('id').executeTakeFirstOrThrow();
    await moveRevision(trx, { revisionId: made1, to: 'AWAITING_DEPLOY', actor: SYSTEM });
    return made1;
  });
  return { id, revisionId };
}

async function dropDatabases({ store, ownerConnection }: TestDatabase): Promise<void> {
  const { dropServerDatabase } = await import('../../src/platform/runner/databases/server-databases.ts');
  for (const { name } of await store.db.selectFrom('runner_databases').select('name').execute())
    await dropServerDatabase(ownerConnection, { database: name, role: name });
}
