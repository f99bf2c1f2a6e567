// What one workspace may have, at the limit and beyond it; another workspace has its own.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlaneScene, createControlPlaneScene, DEPLOYMENTS } from '../control-plane-scene.ts';

let scene: ControlPlaneScene;
beforeAll(async () => {
  const deployments = {
    max_deployments: 3,
    max_pending_revisions: 1,
    max_open_uploads: 2,
    max_source_bytes: 20,
  };
  scene = await createControlPlaneScene({ deployments });
});
afterAll(() => scene[Symbol.asyncDispose]());

const uploadUrl = (id: string) => scene.ask('POST', `${DEPLOYMENTS}/${id}/upload-url`);
const patch = (id: string, source_tarball_path: string) =>
  scene.ask('PATCH', `${DEPLOYMENTS}/${id}`, { source_revision_config: { source_tarball_path } });

describe('a workspace', () => {
  it('has so many deployments, open uploads, bytes of sources and revisions in progress', async () => {
    const made = [await scene.create(), await scene.create(), await scene.create()];
    const body = { name: 'app', source: 'internal_source', source_config: {}, source_revision_config: {} };
    const beyond = await scene.ask('POST', DEPLOYMENTS, body);
    expect([beyond.status, beyond.body.detail]).toEqual([
      429,
      'The workspace would exceed its limit of 3 deployments: delete some',
    ]);
    await scene.create({}, { key: scene.otherKey });

    const [one, two, three] = made.map(({ id }) => String(id));
    const first = (await uploadUrl(one!)).body;
    const second = (await uploadUrl(two!)).body;
    const third = await uploadUrl(three!);
    expect([third.status, third.body.detail]).toEqual([
      429,
      expect.stringMatching(/limit of 2 open uploads/),
    ]);

    expect((await scene.put(first.upload_url, 'x'.repeat(12))).status).toBe(200);
    const large = await scene.put(second.upload_url, 'x'.repeat(9));
    expect([large.status, large.body.detail]).toEqual([
      429,
      'The workspace would exceed its limit of 20 bytes of stored sources: delete deployments',
    ]);
    expect((await scene.put(second.upload_url, 'x'.repeat(8))).status).toBe(200);
    const full = await uploadUrl(three!);
    expect([full.status, full.body.detail]).toEqual([429, expect.stringMatching(/bytes of stored sources/)]);

    expect((await patch(one!, first.object_path)).status).toBe(200);
    const waiting = await patch(two!, second.object_path);
    expect([waiting.status, waiting.body.detail]).toEqual([
      429,
      'The workspace would exceed its limit of 1 revisions that are not deployed yet: wait for them',
    ]);
    const revisionId = await scene.build(one!);
    await scene.move(revisionId, 'DEPLOYING', 'DEPLOYED');
    // What was rejected has used nothing.
    expect((await patch(two!, second.object_path)).status).toBe(200);
  });
});
