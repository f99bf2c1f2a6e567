// The token with which the runner of a deployment sends runs: what it opens, and for how long.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueTraceToken } from '../../../../src/platform/traces/contract.ts';
import {
  type ControlPlaneScene,
  createControlPlaneScene,
  DEPLOYMENTS,
} from '../../control-plane/control-plane-scene.ts';
import { encodeParts, MULTIPART } from '../ingestion/multipart-body.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  scene = await createControlPlaneScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

const issue = (deploymentId: string, workspaceId = scene.workspaceId) =>
  issueTraceToken(scene.api.database.store.db, { workspaceId, deploymentId });
const open = async (): Promise<{ readonly id: string; readonly name: string; readonly token: string }> => {
  const { id, name } = await scene.create();
  return { id, name, token: (await issue(id))?.reveal() ?? '' };
};
const newRun = (more: object) => ({
  ...{ id: randomUUID(), name: 'agent', run_type: 'chain', inputs: { text: 'hello' } },
  ...{ start_time: new Date().toISOString(), ...more },
});
const post = (body: object, key: string, headers: Readonly<Record<string, string>> = {}) =>
  scene.ask('POST', '/runs', body, { key, headers });

describe('the token of a deployment', () => {
  it('sends runs to its workspace, whatever workspace the request names', async () => {
    const { name, token } = await open();
    const run = newRun({ session_name: name });
    const sent = await post(run, token, { 'x-tenant-id': randomUUID() });
    expect([sent.status, sent.text]).toEqual([202, expect.any(String)]);
    expect((await scene.ask('GET', `/runs/${run.id}`)).body).toMatchObject({ name: 'agent' });
    const patch = { end_time: new Date().toISOString(), outputs: {} };
    expect((await scene.ask('PATCH', `/runs/${run.id}`, patch, { key: token })).status).toBe(202);
    const foreign = await scene.ask('POST', '/sessions', { name: randomUUID() }, { key: scene.otherKey });
    expect((await post(newRun({ session_id: foreign.body.id }), token)).status).toBe(403);
  });

  it('sends runs to the tracing project of its deployment alone, which has those that name none', async () => {
    const { name, token } = await open();
    const find = async (named: string) => (await scene.ask('GET', `/sessions?name=${named}`)).body[0];
    const other = await scene.ask('POST', '/sessions', { name: randomUUID() });
    const unnamed = newRun({});
    expect((await post(unnamed, token)).status).toBe(202);
    const own = await find(name);
    expect((await scene.ask('GET', `/runs/${unnamed.id}`)).body).toMatchObject({ session_id: own.id });
    expect((await post(newRun({ session_id: own.id }), token)).status).toBe(202);
    const name2 = randomUUID();
    for (const project of [
      { session_id: other.body.id },
      { session_name: other.body.name },
      { session_name: name2 },
    ]) {
      const refused = newRun(project);
      const response = await post(refused, token);
      expect([response.status, response.body]).toMatchObject([
        403,
        { detail: /leave session_id and session_name out/ },
      ]);
      expect((await scene.ask('GET', `/runs/${refused.id}`)).status).toBe(404);
    }
    expect(await find(name2)).toBeUndefined();
  });

  it('changes no run of another project, and adds nothing to it', async () => {
    const { name, token } = await open();
    const run = newRun({ session_name: randomUUID(), outputs: { text: 'theirs' } });
    expect((await post(run, scene.key)).status).toBe(202);
    for (const project of [{}, { session_name: name }]) {
      const patch = { outputs: { text: 'changed' }, ...project };
      expect((await scene.ask('PATCH', `/runs/${run.id}`, patch, { key: token })).status).toBe(403);
      expect((await post({ ...run, ...patch }, token)).status).toBe(403);
    }
    for (const part of [
      { name: `attachment.${run.id}.file`, body: 'x' },
      { name: `feedback.${randomUUID()}`, body: JSON.stringify({ run_id: run.id, key: 'k', score: 1 }) },
    ]) {
      const response = await scene.api.ask('POST', '/runs/multipart', {
        ...{ key: token, raw: encodeParts([part]), headers: { 'content-type': MULTIPART } },
      });
      expect([part.name, response.status]).toEqual([part.name, 403]);
    }
    const found = await scene.ask('GET', `/runs/${run.id}`);
    expect(found.body).toMatchObject({ outputs: { text: 'theirs' }, feedback_stats: null, s3_urls: null });
  });

  it.each([
    ['GET', '/sessions'],
    ['POST', '/sessions', { name: 'project' }],
    ['GET', `/runs/${randomUUID()}`],
    ['POST', '/runs/query', {}],
    ['GET', DEPLOYMENTS],
    ['DELETE', `/sessions/${randomUUID()}`],
    ['GET', '/api/v1/workspaces'],
  ] as const)('is rejected by %s %s', async (method, path, body?: object) => {
    const { token } = await open();
    expect((await scene.ask(method, path, body, { key: token })).status).toBe(401);
  });

  it('is rejected beside another credential, as a bearer token, and with another checksum', async () => {
    const { token } = await open();
    const bearer = { authorization: `Bearer ${scene.key}` };
    expect((await post(newRun({}), token, bearer)).status).toBe(401);
    const alone = { headers: { authorization: `Bearer ${token}` } };
    expect((await scene.ask('POST', '/runs', newRun({}), alone)).status).toBe(401);
    expect((await post(newRun({}), `${token.slice(0, -1)}!`)).status).toBe(401);
  });

  it('ends with the next one, and is stored as a hash', async () => {
    const { id, token } = await open();
    const next = (await issue(id))?.reveal() ?? '';
    expect((await post(newRun({}), token)).status).toBe(401);
    expect((await post(newRun({}), next)).status).toBe(202);
    const rows = await scene.api.database.owner.db.selectFrom('trace_tokens').selectAll().execute();
    const stored = rows.map(({ hash, ...row }) => `${JSON.stringify(row)} ${hash.toString('latin1')}`).join();
    expect(stored).toContain(id);
    for (const text of [token, next]) expect(stored.includes(text.slice(6, 40))).toBe(false);
  });

  it('ends with its deployment, whose next project gets no run of it', async () => {
    const { id, name, token } = await open();
    const path = await scene.upload(id);
    await scene.ask('PATCH', `${DEPLOYMENTS}/${id}`, {
      source_revision_config: { source_tarball_path: path },
    });
    await scene.build(id);
    await scene.ask('DELETE', `${DEPLOYMENTS}/${id}?delete_tracing_project=true`);
    expect((await scene.ask('GET', `${DEPLOYMENTS}/${id}`)).body.status).toBe('AWAITING_DELETE');
    expect((await post(newRun({ session_name: name }), token)).status).toBe(401);
    expect(await issue(id)).toBeUndefined();
    expect((await scene.ask('GET', `/sessions?name=${name}`)).body).toEqual([]);
  });

  it('is issued for a deployment of the workspace alone', async () => {
    const { id } = await scene.create({}, { key: scene.otherKey });
    expect(await issue(id)).toBeUndefined();
  });
});
