// The tracing project of a deployment: made with it, and deleted with it where the caller asks for that.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Permission } from '../../../../src/platform/identity/permission.ts';
import { toDeletionScope } from '../../../../src/platform/control-plane/deployments/deployment-deleting.ts';
import { type ControlPlaneScene, createControlPlaneScene, DEPLOYMENTS } from '../control-plane-scene.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  scene = await createControlPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const findProjects = async (name: string, key = scene.key): Promise<readonly string[]> => {
  const { body } = await scene.ask('GET', `/sessions?name=${name}`, undefined, { key });
  return body.map(({ id }: { readonly id: string }) => id);
};
const remove = (query: string) => scene.ask('DELETE', `${DEPLOYMENTS}${query}`);
const resourcesOfLastEvent = async (): Promise<unknown> => {
  const { operation, record } = await scene.lastEvent();
  return [operation, record.enrichments.resource_ids];
};

describe('the tracing project of a deployment', () => {
  it('is made with it, in its workspace alone', async () => {
    const { name } = await scene.create();
    expect(await findProjects(name)).toHaveLength(1);
    expect(await findProjects(name, scene.otherKey)).toEqual([]);
  });

  it('is the one of its name, where there is one', async () => {
    const name = randomUUID();
    const { body } = await scene.ask('POST', '/sessions', { name, description: 'of experiments' });
    await scene.create({ name });
    expect(await findProjects(name)).toEqual([body.id]);
    expect((await scene.ask('GET', `/sessions/${body.id}`)).body).toEqual(body);
  });

  it('is not made by a creation that is refused', async () => {
    const [name, config] = [randomUUID(), { source_config: {}, source_revision_config: {}, secrets: [] }];
    const refused = await scene.ask('POST', DEPLOYMENTS, { name, source: 'github', ...config });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('github')]);
    expect(await findProjects(name)).toEqual([]);
  });

  it.each(['', '?delete_tracing_project=false', '?delete_tracing_project=0'])(
    'stays after a deletion with the query %j',
    async (query) => {
      const { id, name } = await scene.create();
      expect((await remove(`/${id}${query}`)).status).toBe(204);
      expect(await findProjects(name)).toHaveLength(1);
      expect(await resourcesOfLastEvent()).toEqual(['delete_deployment', [id]]);
    },
  );

  it.each(['true', 'True', '1'])('goes with its runs by delete_tracing_project=%s', async (value) => {
    const { id, name } = await scene.create();
    await scene.create({ name }, { key: scene.otherKey });
    const [project] = await findProjects(name);
    expect((await remove(`/${id}?delete_tracing_project=${value}`)).status).toBe(204);
    expect(await findProjects(name)).toEqual([]);
    expect(await findProjects(name, scene.otherKey)).toHaveLength(1);
    const { db } = scene.api.database.owner;
    const removals = await db.selectFrom('trace_removals').select('session_id').execute();
    expect(removals.map(({ session_id }) => session_id)).toContain(project);
    expect(await resourcesOfLastEvent()).toEqual(['delete_deployment', [id, project]]);
  });

  it('goes with each of several deployments of the workspace', async () => {
    const own = [await scene.create(), await scene.create()];
    const foreign = await scene.create({}, { key: scene.otherKey });
    const ids = [...own, foreign].map(({ id }) => `deployment_ids=${id}`).join('&');
    expect((await remove(`?${ids}&delete_tracing_project=true`)).status).toBe(207);
    for (const { name } of own) expect(await findProjects(name)).toEqual([]);
    expect(await findProjects(foreign.name, scene.otherKey)).toHaveLength(1);
  });

  it('is that of a new deployment, once the former one of its name is being deleted', async () => {
    const { id, name } = await scene.create();
    const path = await scene.upload(id);
    await scene.ask('PATCH', `${DEPLOYMENTS}/${id}`, {
      source_revision_config: { source_tarball_path: path },
    });
    await scene.build(id);
    await remove(`/${id}`);
    const again = await scene.create({ name });
    expect((await remove(`/${id}?delete_tracing_project=true`)).status).toBe(204);
    expect(await findProjects(name)).toHaveLength(1);
    await remove(`/${again.id}`);
    expect((await remove(`/${id}?delete_tracing_project=true`)).status).toBe(204);
    expect(await findProjects(name)).toEqual([]);
  });

  it('is not deleted by another workspace, nor by a value that is no truth value', async () => {
    const { id, name } = await scene.create();
    const path = `${DEPLOYMENTS}/${id}?delete_tracing_project=`;
    const foreign = await scene.ask('DELETE', `${path}true`, undefined, { key: scene.otherKey });
    expect([foreign.status, (await scene.ask('DELETE', `${path}yes`)).status]).toEqual([404, 422]);
    expect(await findProjects(name)).toHaveLength(1);
  });

  it('is deleted by those who may delete a project', () => {
    const of = (permissions: readonly Permission[], delete_tracing_project: boolean) => () =>
      toDeletionScope({ permissions: new Set(permissions), query: { delete_tracing_project } });
    expect(of(['deployments:delete', 'runs:create'], true)).toThrow('projects:delete');
    expect(of(['deployments:delete'], false)()).toEqual({ withTracingProject: false });
    expect(of(['deployments:delete', 'projects:delete'], true)()).toEqual({ withTracingProject: true });
  });
});
