// Which machine takes a new box, and what the row of a box says that a machine attaches although it might have been isolated.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';
import { createFakeRuntime } from '../fake-runtime.ts';

const CAPACITY = { fs_capacity_bytes: 10_000_000 };
const attached = createFakeRuntime('attached');
let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene({ sandboxes: { runtime: 'auto' } }, attached);
});
beforeEach(() => {
  attached.reset();
  return scene.reset();
});
afterAll(() => scene[Symbol.asyncDispose]());

const storageUsed = async (): Promise<number> =>
  (await scene.ask('GET', '/v2/sandboxes/usage')).body.storage_bytes;

describe('where auto attaches boxes', () => {
  it('a box that nobody asked a capacity for counts no storage, the first one as little as others', async () => {
    const first = await scene.create();
    expect([first.runtime, first.fs_capacity_bytes, await storageUsed()]).toEqual(['attached', null, 0]);
    // What the machine holds is known by now, so it is not counted for a moment either.
    const second = await scene.ask('POST', BOXES, {});
    expect([second.status, second.body.fs_capacity_bytes]).toEqual([201, null]);
  });

  it('a box says why, also once it has other rules', async () => {
    attached.statusMessage = 'This machine cannot isolate sandboxes: bwrap is not there';
    const { name, status_message: said } = await scene.create();
    const change = { proxy_config: { no_proxy: ['example.com'] } };
    const changed = await scene.ask('PATCH', `${BOXES}/${name}`, change);
    expect([said, changed.body.proxy_config_applied_version, changed.body.status_message]).toEqual([
      attached.statusMessage,
      2,
      attached.statusMessage,
    ]);
    expect((await scene.ask('GET', `${BOXES}/${name}`)).body.status_message).toBe(attached.statusMessage);
  });

  it('a first box that asks for a capacity is not taken, and fails with the reason', async () => {
    await scene.stopReconciling();
    const { status, body } = await scene.ask('POST', BOXES, CAPACITY);
    expect([status, body.fs_capacity_bytes]).toEqual([201, CAPACITY.fs_capacity_bytes]);
    await scene.restart();
    const row = await scene.until(body.id, 'failed');
    expect([row.machine_id, row.status_message]).toEqual([
      null,
      expect.stringContaining('does not limit their storage'),
    ]);
    expect((await scene.ask('DELETE', `${BOXES}/${body.id}`)).status).toBe(204);
  });

  it('it waits for a machine that holds storage where there is one', async () => {
    await scene.create();
    const { db } = scene.api.database.owner;
    const id = '00000000-0000-4000-8000-000000000001';
    await db.insertInto('box_machines').values({ id, runtime: 'bubblewrap', holds_storage: true }).execute();
    const { status, body } = await scene.ask('POST', BOXES, CAPACITY);
    expect(status).toBe(201);
    const plain = await scene.create();
    expect([
      (await scene.row(body.id))?.machine_id,
      (await scene.row(body.id))?.status,
      plain.status,
    ]).toEqual([null, 'provisioning', 'ready']);
    const other = await scene.openReconciler({ machineId: id, runtime: createFakeRuntime('bubblewrap') });
    const row = await scene.until(body.id, 'ready');
    expect([row.machine_id, row.fs_capacity_bytes]).toEqual([id, String(CAPACITY.fs_capacity_bytes)]);
    await other.close();
  });

  it('fails on a machine that held storage when it took the box', async () => {
    await scene.create();
    const { db } = scene.api.database.owner;
    const [machine] = await db
      .updateTable('box_machines')
      .set({ holds_storage: true })
      .returning('id')
      .execute();
    const { body } = await scene.ask('POST', BOXES, CAPACITY);
    const row = await scene.until(body.id, 'failed');
    expect([row.machine_id, row.status_message]).toEqual([
      machine?.id,
      expect.stringContaining('does not limit their storage'),
    ]);
  });
});
