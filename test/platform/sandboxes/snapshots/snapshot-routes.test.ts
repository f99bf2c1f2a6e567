// The API of snapshots with a reconciler on a fake runtime: what is made, what is refused, and whose it is.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { BASE_ID } from '../../../../src/platform/sandboxes/snapshots/snapshots.ts';
import type { Asked } from '../../../support/platform-api.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';
import { rejects } from '../fake-runtime.ts';

const SNAPSHOTS = '/v2/sandboxes/snapshots';
let scene: BoxScene;
let otherKey: string;
beforeAll(async () => {
  const settings = { snapshot_directories: ['/srv/snapshots/'], max_snapshot_bytes: 1_000 };
  scene = await createBoxScene({ sandboxes: { runtime: 'bubblewrap', ...settings } });
  const other = await scene.api.addWorkspace(scene.organizationId);
  otherKey = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', other);
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  scene.runtime.onCall = () => undefined;
  for (const { id } of (await scene.ask('GET', BOXES)).body.items)
    await scene.ask('DELETE', `${BOXES}/${id}`);
  await scene.api.database.owner.db.deleteFrom('snapshots').execute();
  scene.runtime.files.clear();
});

const named = (): string => `snapshot-${randomUUID().slice(0, 8)}`;
const send = (raw: string | Uint8Array, query: string, type = 'application/x-tar'): Promise<Asked> =>
  scene.ask('POST', `/v1/sandbox-snapshots?${query}`, undefined, { raw, headers: { 'content-type': type } });

/** Resolves when the snapshot is no longer being made. */
async function settled(id: string): Promise<Asked['body']> {
  const { db } = scene.api.database.owner;
  await expect
    .poll(async () => {
      const row = await db.selectFrom('snapshots').select('status').where('id', '=', id).executeTakeFirst();
      return row?.status;
    })
    .not.toBe('building');
  return (await scene.ask('GET', `${SNAPSHOTS}/${id}`)).body;
}

describe('a snapshot of a directory', () => {
  it('is made by a machine, and boxes of it run there', async () => {
    const name = named();
    const body = { name, directory: '/srv/snapshots/tools', fs_capacity_bytes: 9_000_000 };
    const { status, body: made } = await scene.ask('POST', SNAPSHOTS, body);
    expect([status, made.status, made.source]).toEqual([201, 'building', 'directory']);
    expect(await settled(made.id)).toMatchObject({ status: 'ready', size_bytes: 5, entries: 1 });
    expect(scene.runtime.calls).toContainEqual({ call: 'importDirectory', id: made.id, version: 1_000 });
    for (const by of [{ snapshot_id: made.id }, { snapshot_name: name }, { snapshot: name }]) {
      const box = await scene.create(by);
      expect(box).toMatchObject({ snapshot_id: made.id, fs_capacity_bytes: 9_000_000 });
      expect(scene.runtime.boxes.get(box.id)?.spec?.snapshotId).toBe(made.id);
      const row = await scene.row(box.id);
      expect(row?.machine_id).toMatch(/^[0-9a-f-]{36}$/);
    }
    const { body: usage } = await scene.ask('GET', '/v2/sandboxes/usage');
    expect(usage).toMatchObject({ snapshot_bytes: 5, snapshot_bytes_limit: 1_000 });
  });

  it.each([
    '/srv/snapshots-too',
    '/srv',
    '/srv/snapshots/../secrets',
    '/srv/snapshots/a/../../..',
    'srv/snapshots/a',
    '/etc',
    '/srv/snapshots/./a',
  ])('%s is not allowed: 400 that says which are', async (directory) => {
    const { status, body } = await scene.ask('POST', SNAPSHOTS, { name: named(), directory });
    expect([status, body.detail.message]).toEqual([400, expect.stringContaining('snapshot_directories')]);
    expect(scene.runtime.files.size).toBe(0);
  });

  it('that cannot be read fails with the reason; one that could not be tried stays', async () => {
    let attempts = 0;
    scene.runtime.onCall = async ({ call }) => {
      if (call !== 'importDirectory') return;
      attempts += 1;
      await rejects(attempts === 1 ? 'unavailable' : 'invalid_snapshot', 'it has a device')();
    };
    const directory = '/srv/snapshots/tools';
    const { body } = await scene.ask('POST', SNAPSHOTS, { name: named(), directory });
    await expect.poll(() => attempts).toBe(1);
    // Whatever changes has it tried again.
    await scene.ask('POST', SNAPSHOTS, { name: named(), directory });
    expect(await settled(body.id)).toMatchObject({ status: 'failed', status_message: 'it has a device' });
    const { status, body: rejected } = await scene.ask('POST', BOXES, { snapshot_id: body.id });
    expect([status, rejected.detail.message]).toEqual([400, expect.stringContaining('not ready')]);
  });
});

describe('a snapshot of an archive', () => {
  it('is ready with its response, and counts against the quota', async () => {
    const name = named();
    const made = await send('x'.repeat(600), `name=${name}&fs_capacity_bytes=8388608`);
    expect([made.status, made.body]).toMatchObject([
      201,
      { name, status: 'ready', source: 'archive', size_bytes: 600, fs_capacity_bytes: 8_388_608 },
    ]);
    expect((await send('x', `name=${name}`)).status).toBe(409);
    // The runtime gets how much is left, and whatever it accepts is counted again.
    const over = await send('x'.repeat(401), `name=${named()}`);
    expect([over.status, over.body.detail.message]).toEqual([429, expect.stringContaining('storage')]);
    expect(scene.runtime.calls.findLast(({ call }) => call === 'importArchive')).toMatchObject({
      version: 400,
    });
    expect((await scene.ask('GET', SNAPSHOTS)).body.snapshots).toHaveLength(2);
    const [first] = [...scene.runtime.files.keys()];
    expect(first).toBe(made.body.id);
  });

  it('counts by its files and directories too, however small they are', async () => {
    const { body } = await send('', `name=${named()}`);
    const { db } = scene.api.database.owner;
    await db.updateTable('snapshots').set({ entries: 999_999 }).where('id', '=', body.id).execute();
    expect((await send('', `name=${named()}`)).status).toBe(201);
    const over = await send('', `name=${named()}`);
    expect([over.status, over.body.detail.message]).toEqual([
      429,
      expect.stringContaining('quota of snapshots in files and directories of 1000000'),
    ]);
  });

  it.each([
    ['invalid_snapshot', 422],
    ['no_capacity', 503],
    ['not_supported', 501],
    ['failed', 503],
  ] as const)('that the runtime rejects as %s is %i, and nothing is written', async (kind, status) => {
    scene.runtime.onCall = ({ call }) => (call === 'importArchive' ? rejects(kind, 'why')() : undefined);
    const asked = await send('x', `name=${named()}`);
    expect([asked.status, asked.text]).toEqual([status, expect.stringContaining('why')]);
    expect((await scene.ask('GET', SNAPSHOTS)).body.snapshots).toHaveLength(1);
  });

  it('without a name is 422, of another type 415, and base is taken', async () => {
    expect((await send('x', '')).status).toBe(422);
    expect((await send('x', `name=${named()}`, 'image/png')).status).toBe(415);
    expect((await send('x', 'name=base')).status).toBe(409);
    expect(scene.runtime.files.size).toBe(0);
  });
});

it('files that no row names are removed once their request must have ended', async () => {
  const { body: kept } = await send('x', `name=${named()}`);
  const [old, young] = [randomUUID(), randomUUID()];
  for (const id of [kept.id, old]) scene.runtime.files.set(id, { bytes: 1, ageMs: 3_600_000 });
  scene.runtime.files.set(young, { bytes: 1, ageMs: 1_000 });
  await scene.create();
  await expect.poll(() => [...scene.runtime.files.keys()].toSorted()).toEqual([kept.id, young].toSorted());
});

it('files that a box without a row uses stay, and keep no others from being removed', async () => {
  const [used, old] = [randomUUID(), randomUUID()];
  for (const id of [used, old]) scene.runtime.files.set(id, { bytes: 1, ageMs: 3_600_000 });
  const { snapshots } = scene.runtime;
  const remove = snapshots.remove.bind(snapshots);
  const refuse = rejects('invalid_snapshot', 'The snapshot is used: remove its boxes first');
  const spy = vi.spyOn(snapshots, 'remove').mockImplementation((id) => (id === used ? refuse() : remove(id)));
  await scene.create();
  await expect.poll(() => [...scene.runtime.files.keys()]).not.toContain(old);
  expect([...scene.runtime.files.keys()]).toContain(used);
  spy.mockRestore();
});

describe('the base', () => {
  it('is in every workspace, and nobody can delete it', async () => {
    const { body } = await scene.ask('GET', SNAPSHOTS);
    expect(body.snapshots).toMatchObject([{ id: BASE_ID, name: 'base', status: 'ready', source: 'base' }]);
    expect((await scene.ask('GET', `${SNAPSHOTS}/${BASE_ID}`)).body.name).toBe('base');
    expect((await scene.ask('DELETE', `${SNAPSHOTS}/${BASE_ID}`)).status).toBe(403);
    for (const by of [{ snapshot_name: 'base' }, { snapshot_id: BASE_ID }, { snapshot: 'base' }])
      expect((await scene.create(by)).snapshot_id).toBeNull();
    const directory = '/srv/snapshots/tools';
    expect((await scene.ask('POST', SNAPSHOTS, { name: 'base', directory })).status).toBe(409);
  });
});

describe('a snapshot', () => {
  it('of another workspace is not found, by its name neither', async () => {
    const { body } = await send('x', `name=${named()}`);
    const asOther = { key: otherKey };
    expect((await scene.ask('GET', `${SNAPSHOTS}/${body.id}`, undefined, asOther)).status).toBe(404);
    expect((await scene.ask('DELETE', `${SNAPSHOTS}/${body.id}`, undefined, asOther)).status).toBe(404);
    for (const by of [{ snapshot_id: body.id }, { snapshot_name: body.name }, { snapshot: randomUUID() }]) {
      const asked = await scene.ask('POST', BOXES, by, asOther);
      expect([asked.status, asked.body.detail.error]).toEqual([400, 'Unusable']);
    }
  });

  it('that a box uses cannot be deleted; later its files go', async () => {
    const { body } = await send('x', `name=${named()}`);
    const box = await scene.create({ snapshot_id: body.id });
    const path = `${SNAPSHOTS}/${body.id}`;
    expect((await scene.ask('DELETE', path)).status).toBe(409);
    await scene.ask('DELETE', `${BOXES}/${box.id}`);
    await scene.until(box.id, 'gone');
    scene.runtime.files.set(body.id, { bytes: 1, ageMs: 3_600_000 });
    expect((await scene.ask('DELETE', path)).status).toBe(204);
    await expect.poll(() => scene.runtime.files.size).toBe(0);
    expect((await scene.ask('GET', path)).status).toBe(404);
  });

  it('is listed in pages, by a part of its name and by its status', async () => {
    const names = ['Tools-1', 'tools-2', 'other'];
    for (const name of names) await send('x', `name=${name}`);
    const list = async (query: string) => {
      const { body } = await scene.ask('GET', `${SNAPSHOTS}?${query}`);
      return [...body.snapshots.map(({ name }: { name: string }) => name), body.offset];
    };
    expect(await list('name_contains=TOOLS')).toEqual(['tools-2', 'Tools-1', 2]);
    expect(await list('limit=2')).toEqual(['base', 'other', 2]);
    expect(await list('limit=2&offset=2')).toEqual(['tools-2', 'Tools-1', 4]);
    expect(await list('status=failed')).toEqual([0]);
  });

  it('of an image is 400 that says what is possible', async () => {
    const body = { name: named(), docker_image: 'debian:13', fs_capacity_bytes: 1e9 };
    const asked = await scene.ask('POST', SNAPSHOTS, body);
    expect([asked.status, asked.body.detail.message]).toEqual([
      400,
      expect.stringContaining('docker export'),
    ]);
  });
});

it('where somebody else runs the boxes, there are no snapshots', async () => {
  await using attached = await createBoxScene();
  for (const [method, path, body] of [
    ['GET', SNAPSHOTS, undefined],
    ['POST', SNAPSHOTS, { name: 'a', directory: '/srv' }],
    ['DELETE', `${SNAPSHOTS}/${BASE_ID}`, undefined],
  ] as const) {
    const asked = await attached.ask(method, path, body);
    expect([asked.status, asked.body.detail.error]).toEqual([501, 'NotSupported']);
  }
});
