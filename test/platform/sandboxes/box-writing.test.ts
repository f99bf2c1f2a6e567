// Writes that meet another change of the same box, and what is read of a box whose sealed values are large.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createBoxChanges } from '../../../src/platform/sandboxes/box-changes.ts';
import { createBoxSecrets } from '../../../src/platform/sandboxes/box-secrets.ts';
import { createBoxWaiting } from '../../../src/platform/sandboxes/box-waiting.ts';
import { type BoxWriting, changeBox, prepareChange } from '../../../src/platform/sandboxes/box-writing.ts';
import { listBoxes } from '../../../src/platform/sandboxes/boxes.ts';
import { BOXES, type BoxScene, createBoxScene } from './box-scene.ts';

let scene: BoxScene;
let parts: BoxWriting;
beforeAll(async () => {
  scene = await createBoxScene({ sandboxes: { max_memory_bytes: 4_000, default_memory_bytes: 1 } });
  const { vault } = scene.api;
  const quotas = {
    boxes: 100,
    cpuMillicores: 4_000,
    memoryBytes: 4_000,
    storageBytes: 4_000,
    snapshotBytes: 1,
  };
  const policies = { vault, rules: { allowsPrivateCallbacks: true } };
  const defaultSizes = { cpuMillicores: 1, memoryBytes: 1, storageBytes: undefined };
  parts = { secrets: createBoxSecrets(vault), policies, quotas, defaultSizes };
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('a change of the rules', () => {
  it('that was prepared for one box is not stored in another one, which has got its name', async () => {
    const { workspaceId } = scene;
    const { store } = scene.api.database;
    const box = 'wanted';
    const proxy_config = { no_proxy: ['example.com'] };
    await scene.create({ name: box });
    const other = await scene.create({ name: 'other' });
    const prepared = await prepareChange(parts, { db: store.db, workspaceId, box }, { proxy_config });
    await scene.ask('PATCH', `${BOXES}/${box}`, { name: 'former' });
    await scene.ask('PATCH', `${BOXES}/other`, { name: box });
    const caller = { keyId: workspaceId } as Parameters<typeof changeBox>[1]['caller'];
    await expect(
      store.write((db) => changeBox(parts, { db, workspaceId, caller, box }, {}, prepared)),
    ).rejects.toMatchObject({ kind: 'unavailable' });
    expect((await scene.row(other.id))?.proxy_config).toBeNull();
  });

  it('does not depend on a quota that was lowered; new sizes do', async () => {
    const { id, name } = await scene.create({ mem_bytes: 2_000 });
    const { db } = scene.api.database.owner;
    await db.updateTable('boxes').set({ mem_bytes: '9000' }).where('id', '=', id).execute();
    const path = `${BOXES}/${name}`;
    expect((await scene.ask('PATCH', path, { proxy_config: { no_proxy: ['example.com'] } })).status).toBe(
      200,
    );
    expect((await scene.ask('POST', `${path}/refresh-secrets`)).status).toBe(200);
    expect((await scene.ask('PATCH', path, { mem_bytes: 8_000 })).status).toBe(429);
    await scene.ask('DELETE', path);
  });
});

describe('a box without a name that nobody waits for any more', () => {
  it('is deleted, also when it becomes ready at this moment', async () => {
    await scene.stopReconciling();
    const { store, owner } = scene.api.database;
    const { body } = await scene.ask('POST', BOXES);
    const waiting = createBoxWaiting(createBoxChanges());
    const call = {
      db: store.db,
      write: async <T>(work: Parameters<typeof store.write<T>>[0]): Promise<T> => {
        const ready = { status: 'ready', machine_id: randomUUID() } as const;
        await owner.db.updateTable('boxes').set(ready).where('id', '=', body.id).execute();
        return store.write(work);
      },
      signal: AbortSignal.abort(),
    };
    await expect(waiting.untilReady(call as never, body.id, 30)).rejects.toThrow('aborted');
    expect((await scene.row(body.id))?.status).toBe('deleting');
  });
});

describe('a list', () => {
  it('does not read what is sealed', async () => {
    await scene.ask('POST', BOXES, { name: 'listed', env_vars: { KEY: 'value' } });
    const query = { offset: 0, sort_by: 'created_at', sort_direction: 'desc' } as const;
    const { boxes } = await listBoxes(scene.api.database.store.db, scene.workspaceId, query);
    const columns = boxes.flatMap((box) => Object.keys(box));
    expect(columns.filter((column) => column.startsWith('sealed'))).toEqual([]);
  });
});
