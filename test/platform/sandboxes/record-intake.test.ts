import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordOf } from '../sandbox-records/record-scene.ts';
import { BOXES, type BoxScene, createBoxScene } from './box-scene.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('the records of a box', () => {
  it('are stored once, however often they are offered, and listed by the name of the box', async () => {
    const { id, name } = await scene.create();
    const batch = {
      boxId: id,
      source: randomUUID(),
      records: [recordOf({ number: 1 }), recordOf({ number: 2 })],
    };
    await scene.runtime.offer(batch);
    await scene.runtime.offer(batch);
    const { status, body } = await scene.ask('GET', `${BOXES}/${name}/records`);
    expect([status, body.records.map(({ number }: { number: number }) => number), body.next_cursor]).toEqual([
      200,
      [2, 1],
      null,
    ]);
    const page = (await scene.ask('GET', `${BOXES}/${name}/records?limit=1`)).body;
    expect(page.records).toHaveLength(1);
    expect(
      (await scene.ask('GET', `${BOXES}/${name}/records?limit=1&cursor=${page.next_cursor}`)).body.records,
    ).toHaveLength(1);
  });

  it('are those of the box and not of its name', async () => {
    const first = await scene.create({ name: 'reused' });
    await scene.runtime.offer({ boxId: first.id, source: randomUUID(), records: [recordOf({ number: 1 })] });
    await scene.ask('DELETE', `${BOXES}/reused`);
    await scene.create({ name: 'reused' });
    expect((await scene.ask('GET', `${BOXES}/reused/records`)).body.records).toEqual([]);
  });

  it('are traffic: the box is not idle', async () => {
    const { id } = await scene.create();
    const { db } = scene.api.database.owner;
    await db
      .updateTable('boxes')
      .set({ active_at: new Date(0) })
      .where('id', '=', id)
      .execute();
    await scene.runtime.offer({ boxId: id, source: randomUUID(), records: [recordOf({ number: 1 })] });
    expect((await scene.row(id))?.active_at.getTime()).toBeGreaterThan(0);
  });

  it('of a box that is gone, or with what no sidecar writes, are dropped and never offered again', async () => {
    const { id, name } = await scene.create();
    await scene.runtime.offer({
      boxId: randomUUID(),
      source: randomUUID(),
      records: [recordOf({ number: 1 })],
    });
    await scene.runtime.offer({
      boxId: id,
      source: randomUUID(),
      records: [{ number: 1, secret: 'canary' }],
    });
    expect((await scene.ask('GET', `${BOXES}/${name}/records`)).body.records).toEqual([]);
    expect(scene.logged.join('')).toContain('do not fit');
    expect(scene.logged.join('')).not.toContain('canary');
  });

  it('are stored although one beside them does not fit', async () => {
    const { id, name } = await scene.create();
    const records = [recordOf({ number: 1 }), { number: 2, secret: 'canary' }, recordOf({ number: 3 })];
    await scene.runtime.offer({ boxId: id, source: randomUUID(), records });
    const { body } = await scene.ask('GET', `${BOXES}/${name}/records`);
    expect(body.records.map(({ number }: { number: number }) => number)).toEqual([3, 1]);
    expect(scene.logged.join('')).not.toContain('canary');
  });
});
