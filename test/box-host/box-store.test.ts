// The places of boxes: fifty of one workspace in a sidecar, kept across restarts, and nothing of what cannot be read.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BoxStore } from '../../src/box-host/box-store.ts';
import { createScratch } from '../support/scratch.ts';
import { WORKSPACE } from './box-host-scene.ts';

describe('the places of boxes', () => {
  it('are fifty in a sidecar, of one workspace alone', async () => {
    await using scratch = await createScratch();
    const store = await BoxStore.open(scratch.path);
    const ids = Array.from({ length: 51 }, () => randomUUID());
    for (const id of ids) await store.place(id, WORKSPACE);
    expect(ids.map((id) => store.get(id)?.slot)).toEqual([...Array.from({ length: 50 }, () => 0), 1]);
    expect((await store.place(randomUUID(), randomUUID())).slot).toBe(0);
    await store.remove(ids[7] ?? '');
    expect((await store.place(randomUUID(), WORKSPACE)).slot).toBe(0);
  });

  it('are there after a restart, without what cannot be read', async () => {
    await using scratch = await createScratch();
    const store = await BoxStore.open(scratch.path);
    const id = randomUUID();
    const placed = { ...(await store.place(id, WORKSPACE)), port: 4000 };
    await store.set(id, placed);
    const folder = join(scratch.path, 'boxes');
    await writeFile(join(folder, `${randomUUID()}.json`), '{"workspace_id":');
    await writeFile(join(folder, `${id}.json.abcd`), 'half a file');
    await writeFile(join(folder, 'name.json'), JSON.stringify(placed));
    const again = await BoxStore.open(scratch.path);
    expect([again.ids(), again.get(id), again.ports()]).toEqual([[id], placed, new Set([4000])]);
    expect(await readdir(folder)).toEqual([`${id}.json`]);
    expect([again.isUsed(placed), again.isUsed({ ...placed, slot: 1 })]).toEqual([true, false]);
  });

  it('that cannot be stored are not taken, and leave no file', async () => {
    await using scratch = await createScratch();
    const store = await BoxStore.open(scratch.path);
    const [id, other] = [randomUUID(), randomUUID()];
    const placed = await store.place(other, WORKSPACE);
    const folder = join(scratch.path, 'boxes');
    await rm(join(folder, `${other}.json`));
    for (const one of [id, other]) await mkdir(join(folder, `${one}.json`));
    await expect(store.place(id, WORKSPACE)).rejects.toThrow();
    await expect(store.set(other, { ...placed, port: 4000 })).rejects.toThrow();
    expect([store.ids(), store.get(other)]).toEqual([[other], placed]);
    expect((await readdir(folder)).toSorted()).toEqual([`${id}.json`, `${other}.json`].toSorted());
  });
});
