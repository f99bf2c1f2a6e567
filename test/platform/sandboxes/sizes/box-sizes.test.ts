// What a caller asks for against what machines hold: a capacity that nothing limits is not accepted.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sizesOf, withDefaults } from '../../../../src/platform/sandboxes/sizes/box-sizes.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';

const defaults = { cpuMillicores: 2_000, memoryBytes: 3, storageBytes: 4 };

describe('the sizes of a new box', () => {
  it.each([
    [{}, { cpu_millicores: 2_000, mem_bytes: '3', fs_capacity_bytes: '4' }],
    [{ vcpus: 2.007 }, { cpu_millicores: 2_007, mem_bytes: '3', fs_capacity_bytes: '4' }],
    [
      { vcpus: 1, cpu_millicores: 5, mem_bytes: null },
      { cpu_millicores: 5, mem_bytes: '3' },
    ],
    [
      { mem_bytes: 8, fs_capacity_bytes: 9 },
      { mem_bytes: '8', fs_capacity_bytes: '9' },
    ],
  ])('of %j', (given, expected) => {
    expect(sizesOf(withDefaults(given, defaults))).toMatchObject(expected);
  });

  it('have no storage where nothing holds it', () => {
    expect(sizesOf(withDefaults({}, { ...defaults, storageBytes: undefined }))).not.toHaveProperty(
      'fs_capacity_bytes',
    );
  });
});

describe('a capacity', () => {
  let scene: BoxScene;
  beforeAll(async () => {
    scene = await createBoxScene();
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  const note = (id: string, holds_storage: boolean, seen_at: Date) =>
    scene.api.database.owner.db.insertInto('box_machines').values({
      ...{ id, holder: null, held_until: null, runtime: null, holds_storage, seen_at },
    });
  const body = { fs_capacity_bytes: 10_000_000 };

  it('that no machine holds is 422 at its place, also for a box that is there, and nothing is written', async () => {
    const { status, body: response } = await scene.ask('POST', BOXES, body);
    expect([status, response.detail[0].loc]).toEqual([422, ['body', 'fs_capacity_bytes']]);
    const { id, fs_capacity_bytes } = await scene.create();
    expect(fs_capacity_bytes).toBeNull();
    expect((await scene.ask('PATCH', `${BOXES}/${id}`, body)).status).toBe(422);
    expect((await scene.ask('GET', BOXES)).body.items).toHaveLength(1);
  });

  it('is accepted where one of the machines that are there holds it', async () => {
    const id = randomUUID();
    const longAgo = new Date(Date.now() - 120_000);
    await note(id, true, longAgo).execute();
    expect((await scene.ask('POST', BOXES, body)).status).toBe(422);
    const { db } = scene.api.database.owner;
    await db.updateTable('box_machines').set({ seen_at: new Date() }).where('id', '=', id).execute();
    expect((await scene.ask('POST', BOXES, body)).status).toBe(201);
  });
});
