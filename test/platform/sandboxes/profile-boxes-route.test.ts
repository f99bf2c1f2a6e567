import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BoxScene, createBoxScene } from './box-scene.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

it('the boxes of a proxy profile are listed page by page, in its workspace', async () => {
  const made = await scene.ask('POST', '/v1/proxy-profiles', { name: 'one', proxy_config: {} });
  const path = `/v1/proxy-profiles/${made.body.id}/boxes`;
  expect((await scene.ask('GET', path)).body).toEqual({ version: 1, boxes: [], next_cursor: null });
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1)
    ids.push((await scene.create({ proxy_profile_id: made.body.id })).id);
  const first = (await scene.ask('GET', `${path}?limit=2`)).body;
  const second = (await scene.ask('GET', `${path}?limit=2&cursor=${first.next_cursor}`)).body;
  const listed = [...first.boxes, ...second.boxes].map(({ id }: { readonly id: string }) => id);
  expect([listed, second.next_cursor]).toEqual([ids.toSorted(), null]);
  expect((await scene.ask('GET', `${path}?cursor=${first.next_cursor}&filter=behind`)).status).toBe(422);
  const workspaceId = await scene.api.addWorkspace(scene.organizationId);
  const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', workspaceId);
  expect((await scene.ask('GET', path, undefined, { key })).status).toBe(404);
});
