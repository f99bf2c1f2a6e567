import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { createBoxExpiry } from '../../../../src/platform/sandboxes/reconciliation/box-expiry.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

async function expire(): Promise<void> {
  const { store } = scene.api.database;
  const log = createLog('silent', { write: () => undefined });
  await createBoxExpiry(() => ({ machineLostAfterSeconds: 86_400 })).run(
    {},
    { id: '1', signal: new AbortController().signal, store, log, send: async () => undefined },
  );
}

async function age(id: string, column: 'active_at' | 'stopped_at', seconds: number): Promise<void> {
  await sql`update boxes set ${sql.ref(column)} = now() - make_interval(secs => ${seconds}) where id = ${id}`.execute(
    scene.api.database.owner.db,
  );
}

describe('each minute', () => {
  it('boxes without traffic for the time that they named are stopped, and others are not', async () => {
    const [idle, busy, endless] = [
      await scene.create({ idle_ttl_seconds: 60 }),
      await scene.create({ idle_ttl_seconds: 60 }),
      await scene.create(),
    ];
    await age(idle.id, 'active_at', 61);
    await age(busy.id, 'active_at', 50);
    await age(endless.id, 'active_at', 1e6);
    await expire();
    await scene.until(idle.id, 'stopped');
    expect((await scene.moves(idle.id)).at(-1)).toBe('ready>stopped:idle');
    for (const { id } of [busy, endless]) expect((await scene.row(id))?.status).toBe('ready');
    // Started again, it has its whole time.
    await scene.ask('POST', `${BOXES}/${idle.name}/start`);
    await scene.until(idle.id, 'ready');
    await expire();
    expect((await scene.row(idle.id))?.desired).toBe('running');
  });

  it('boxes that stopped long enough ago are deleted', async () => {
    const [old, young] = [
      await scene.create({ delete_after_stop_seconds: 60 }),
      await scene.create({ delete_after_stop_seconds: 60 }),
    ];
    for (const { name } of [old, young]) await scene.ask('POST', `${BOXES}/${name}/stop`);
    await age(old.id, 'stopped_at', 61);
    await expire();
    await scene.until(old.id, 'gone');
    expect(await scene.moves(old.id)).toContain('stopped>deleting:expired');
    expect((await scene.row(young.id))?.status).toBe('stopped');
  });

  it('what is known of moves is forgotten after a month', async () => {
    const { id } = await scene.create();
    await sql`update box_transitions set at = now() - interval '31 days' where box_id = ${id}`.execute(
      scene.api.database.owner.db,
    );
    await expire();
    expect(await scene.moves(id)).toEqual([]);
  });
});
