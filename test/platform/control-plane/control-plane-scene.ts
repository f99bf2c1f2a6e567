// The platform with two workspaces of different organizations, and deployments of them by the public API.
import { randomUUID } from 'node:crypto';
import { claimNextBuild, finishBuild } from '../../../src/platform/deployments/builds.ts';
import { moveRevision, SYSTEM } from '../../../src/platform/deployments/revision-moves.ts';
import type { RevisionStatus } from '../../../src/platform/deployments/revision-states.ts';
import { registerRunner } from '../../../src/platform/deployments/runners.ts';
import { claimDeployments } from '../../../src/platform/deployments/wanted-deployments.ts';
import { readMachineId } from '../../../src/platform/store/data-directory/machine-id.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { createScratch } from '../../support/scratch.ts';

export const DEPLOYMENTS = '/v2/deployments';

export type ControlPlaneScene = AsyncDisposable & {
  readonly api: PlatformApi;
  /** Of the process: its sources are below. */
  readonly directory: string;
  readonly workspaceId: string;
  /** Of an administrator of the workspace. */
  readonly key: string;
  /** Of one of another organization. */
  readonly otherKey: string;
  ask(method: string, path: string, body?: unknown, as?: Ask): Promise<Asked>;
  /** Of a new deployment, with these fields over those of the smallest. */
  create(given?: object, as?: Ask): Promise<Asked['body']>;
  /** The path of the source that it sends. */
  upload(deploymentId: string, content?: string): Promise<string>;
  put(
    url: string,
    raw: string | Uint8Array | ReadableStream,
    headers?: Record<string, string>,
  ): Promise<Asked>;
  /** As a builder and a runner of this machine: what waits is built, until it is this deployment. Returns its revision. */
  build(deploymentId: string): Promise<string>;
  move(revisionId: string, ...path: readonly RevisionStatus[]): Promise<void>;
  /** What the latest event of the workspace says. */
  lastEvent(): Promise<{ readonly operation: string; readonly record: Asked['body'] }>;
};

export async function createControlPlaneScene(config: object = {}): Promise<ControlPlaneScene> {
  const scratch = await createScratch();
  const api = await createPlatformApi({ config: { data_dir: scratch.path, ...config } });
  const addKey = async (): Promise<readonly [string, string]> => {
    const organization = await api.addOrganization();
    const workspace = await api.addWorkspace(organization);
    return [workspace, await api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace)];
  };
  const [workspaceId, key] = await addKey();
  const [, otherKey] = await addKey();
  const { store } = api.database;
  const ask: ControlPlaneScene['ask'] = (method, path, body, as = { key }) =>
    api.ask(method, path, { ...as, ...(body === undefined ? {} : { body }) });
  const put: ControlPlaneScene['put'] = (url, raw, headers = {}) => {
    const { pathname, search } = new URL(url);
    const type = { 'content-type': 'application/gzip' };
    return api.ask('PUT', pathname + search, { raw, headers: { ...type, ...headers } });
  };
  const runner = { id: randomUUID(), machineId: await readMachineId(scratch.path) };
  const scene: ControlPlaneScene = {
    ...{ api, directory: scratch.path, workspaceId, key, otherKey, ask, put },
    async create(given = {}, as) {
      const body = {
        ...{ name: `app-${randomUUID()}`, source: 'internal_source', source_config: {} },
        ...{ source_revision_config: {}, secrets: [], ...given },
      };
      const created = await ask('POST', DEPLOYMENTS, body, as);
      if (created.status !== 201) throw new Error(`${created.status} ${created.text}`);
      return created.body;
    },
    async upload(deploymentId, content = 'archive') {
      const { body } = await ask('POST', `${DEPLOYMENTS}/${deploymentId}/upload-url`);
      const sent = await put(body.upload_url, content);
      if (sent.status !== 200) throw new Error(`${sent.status} ${sent.text}`);
      return body.object_path;
    },
    async build(deploymentId) {
      const gatewayUrl = 'http://127.0.0.1:8090';
      await registerRunner(store.db, { ...runner, host: 'host', pid: 1, gatewayUrl });
      const builder = { runnerId: runner.id, machineId: runner.machineId };
      for (;;) {
        const task = await claimNextBuild(store, builder);
        if (task === undefined) throw new Error('nothing waits for a build');
        const directory = `/builds/${task.buildId}`;
        await finishBuild(store, task, builder, { kind: 'ready', directory, sizeBytes: 1 });
        await claimDeployments(store.db, runner);
        if (task.deploymentId === deploymentId) return task.revisionId;
      }
    },
    async move(revisionId, ...path) {
      for (const to of path) await store.write((trx) => moveRevision(trx, { revisionId, to, actor: SYSTEM }));
    },
    async lastEvent() {
      const found = await api.database.owner.db
        .selectFrom('audit_events')
        .select(['operation', 'record'])
        .where('workspace_id', '=', workspaceId)
        .orderBy('seq', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow();
      return { operation: found.operation, record: JSON.parse(found.record) };
    },
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
  return scene;
}
