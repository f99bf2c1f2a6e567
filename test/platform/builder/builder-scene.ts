// A builder with a real database, real archives and real processes, and an npm of the test that installs what package.json names.
import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Log } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secret.ts';
import { type Builder, type BuilderOptions, createBuilder } from '../../../src/platform/builder/builder.ts';
import { type BuilderSettings, defaultBuilderSettings } from '../../../src/platform/builder/settings.ts';
import { claimNextBuild } from '../../../src/platform/deployments/builds.ts';
import type { SourceConfig } from '../../../src/platform/deployments/deployment-rows.ts';
import { replaceSecrets } from '../../../src/platform/deployments/deployment-secrets.ts';
import { openSecretMask } from '../../../src/platform/deployments/secret-mask.ts';
import { queryLogs } from '../../../src/platform/deployments/deployment-logs.ts';
import { listMoves } from '../../../src/platform/deployments/revision-moves.ts';
import { registerRunner } from '../../../src/platform/deployments/runners.ts';
import { openSourceStore } from '../../../src/platform/deployments/source-store.ts';
import { notify, openNotifications } from '../../../src/platform/store/postgres/notifications.ts';
import type { Workloads } from '../../../src/workload/workload.ts';
import { archive } from '../../support/archive-bytes.ts';
import { createScratch } from '../../support/scratch.ts';
import { createDeploymentScene, type Deployment } from '../deployments/deployment-scene.ts';
import { createPlainWorkloads } from './plain-workloads.ts';

/** Text, or a document. */
export type Files = Readonly<Record<string, string | object>>;

export const graphFile: Files = {
  'langgraph.json': { graphs: { agent: './agent.mjs:graph' } },
  'agent.mjs': 'export const graph = {};',
};

/** Installs a package of each dependency, which has one file. */
const NPM = `
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const [command] = process.argv.slice(2);
if (command === 'config') console.log('{}');
else if (command === 'ci' || command === 'install') {
  const { dependencies = {} } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const name of Object.keys(dependencies)) {
    if (name === 'missing') { console.error('404 missing'); process.exit(1); }
    mkdirSync('node_modules/' + name, { recursive: true });
    writeFileSync('node_modules/' + name + '/index.js', 'module.exports = ' + JSON.stringify(name));
  }
  console.log('added ' + Object.keys(dependencies).length);
} else process.exit(2);
`;

export type SceneOptions = {
  readonly settings?: Partial<BuilderSettings>;
  readonly workloads?: Workloads;
  readonly env?: NodeJS.ProcessEnv;
  readonly onError?: () => void;
  readonly patienceMs?: number;
};

export type RevisionOptions = {
  readonly config?: SourceConfig;
  readonly configPath?: string;
  /** Another one than that of the content. */
  readonly sha256?: string;
  readonly secrets?: Readonly<Record<string, string>>;
};

export type BuilderScene = Awaited<ReturnType<typeof createBuilderScene>>;

const fail = (error: unknown): void => {
  throw error;
};
const log = { debug() {}, info() {}, warn() {}, error() {} } as unknown as Log;

export async function createBuilderScene() {
  const [scene, scratch] = await Promise.all([createDeploymentScene(), createScratch()]);
  const { vault } = scene;
  const { connection, store } = scene.database;
  const notifications = openNotifications({ connection, onLost: () => undefined, onError: fail });
  const machineId = randomUUID();
  const sources = openSourceStore({ directory: join(scratch.path, 'sources'), machineId });
  const npm = join(scratch.path, 'npm/bin');
  await mkdir(npm, { recursive: true });
  for (const name of ['npm-cli.js', 'npx-cli.js']) await writeFile(join(npm, name), NPM);
  await symlink(join(npm, 'npm-cli.js'), join(scratch.path, 'npm/npm'));
  await chmod(scratch.path, 0o711);
  const directory = join(scratch.path, 'builder');
  const createOne = (given: Partial<BuilderOptions> = {}): Builder =>
    createBuilder({
      ...{ store, notifications, workloads: createPlainWorkloads(), sources, directory, log },
      claimer: { runnerId: randomUUID(), machineId },
      openMask: (task) => openSecretMask({ vault, db: store.db }, task, task.secretsVersion),
      ...{ settings: defaultBuilderSettings, node: process.execPath, intervalMs: 500 },
      // Without pip, which takes a second to be asked.
      env: { PATH: join(scratch.path, 'npm') },
      ...given,
    });
  return {
    /** That does not run. */
    createBuilder: () => createOne(),
    ...{ scene, store, directory, machineId, path: scratch.path },
    /** Files of the builder below its directory, without programs. */
    async left() {
      const list = async (name: string) => readdir(join(directory, name)).catch(() => []);
      const [builds, installations] = await Promise.all([list('builds'), list('installations')]);
      return { builds, installations };
    },
    async addDeployment(workspaceId?: string): Promise<Deployment> {
      return scene.addDeployment(workspaceId === undefined ? {} : { workspaceId });
    },
    /** A queued revision of these files, or of this archive. */
    async addRevision(
      deployment: Deployment,
      source: Files | Uint8Array,
      { config = {}, configPath, sha256, secrets = {} }: RevisionOptions = {},
    ): Promise<string> {
      const content = source instanceof Uint8Array ? source : pack(source as Files);
      const stored = await sources.write('sources', one(content));
      const objectPath = `uploads/${randomUUID()}`;
      const { id, workspaceId } = deployment;
      await store.db
        .insertInto('deployment_uploads')
        .values({
          ...{ workspace_id: workspaceId, deployment_id: id, state: 'used', machine_id: machineId },
          ...{ object_path: objectPath, stored_path: stored.path, token_hash: randomBytes(32) },
          ...{ size_bytes: String(stored.size), sha256: sha256 ?? stored.sha256, expires_at: new Date() },
        })
        .execute();
      const given = Object.entries(secrets).map(([name, value]) => ({ name, value: new Secret(value) }));
      const owner = { workspaceId, deploymentId: id };
      await vault.prepare();
      const secretsVersion = await store.write((trx) => replaceSecrets({ vault, trx }, owner, 0, given));
      const revisionId = await scene.addRevision(deployment, {
        ...{ config, secretsVersion },
        source: { source_tarball_path: objectPath, langgraph_config_path: configPath ?? null },
      });
      await notify(store.db, 'deployments', id);
      return revisionId;
    },
    /** Runs until it is disposed. */
    async start(options: SceneOptions = {}) {
      const { settings = {}, env, onError, workloads = createPlainWorkloads() } = options;
      const runnerId = randomUUID();
      await registerRunner(store.db, { id: runnerId, machineId, host: 'host', pid: process.pid });
      const ends = new Map<string, string>();
      const builder = createOne({
        workloads,
        claimer: { runnerId, machineId },
        settings: { ...defaultBuilderSettings, ...settings },
        onEnd: ({ revisionId, outcome }) => ends.set(revisionId, outcome),
        ...(env === undefined ? {} : { env }),
        ...(options.patienceMs === undefined ? {} : { patienceMs: options.patienceMs }),
        ...(onError === undefined ? {} : { log: { ...log, error: onError } as Log }),
      });
      const ending = new AbortController();
      const running = builder.run(ending.signal);
      const stop = async (): Promise<void> => {
        ending.abort();
        await running;
      };
      return { builder, workloads, runnerId, ends, stop, [Symbol.asyncDispose]: stop };
    },
    /** By a runner that is killed then: the id of the build. */
    async claimAndDie(): Promise<string> {
      const claimer = { runnerId: randomUUID(), machineId };
      await registerRunner(store.db, { id: claimer.runnerId, machineId, host: 'host', pid: 1 });
      const task = await claimNextBuild(store, claimer);
      if (task === undefined) throw new Error('nothing waits to be built');
      return task.buildId;
    },
    async statusOf(revisionId: string) {
      const found = store.db.selectFrom('revisions').select('status').where('id', '=', revisionId);
      return (await found.executeTakeFirst())?.status;
    },
    /** Of the last move. */
    async reasonOf(revisionId: string): Promise<string | null | undefined> {
      return (await listMoves(store.db, revisionId)).at(-1)?.reason;
    },
    async logOf({ id, workspaceId }: Deployment, revisionId: string): Promise<readonly string[]> {
      const page = {
        workspaceId,
        deploymentId: id,
        revisionId,
        kind: 'build',
        limit: 5_000,
        order: 'asc',
      } as const;
      return (await queryLogs(store.db, page)).map(({ level, message }) => `${level} ${message}`);
    },
    async directoryOf(revisionId: string): Promise<string> {
      const rows = store.db.selectFrom('builds as b').innerJoin('revisions as r', 'r.build_id', 'b.id');
      const row = await rows.select('b.directory').where('r.id', '=', revisionId).executeTakeFirst();
      if (typeof row?.directory !== 'string') throw new Error('the revision has no build');
      return row.directory;
    },
    async [Symbol.asyncDispose]() {
      await notifications.close();
      await scene[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

export function pack(files: Files): Buffer {
  const entries = Object.entries(files).map(([name, content]) => ({
    ...{ name, mode: 0o644 },
    content: typeof content === 'string' ? content : JSON.stringify(content),
  }));
  return gzipSync(archive(entries));
}

async function* one(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}
