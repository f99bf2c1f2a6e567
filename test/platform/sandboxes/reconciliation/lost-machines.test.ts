// A machine that does not come back: its boxes fail, and can be deleted without it. One that comes back removes what no row knows.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { giveUpLostMachines } from '../../../../src/platform/sandboxes/reconciliation/lost-machines.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
beforeEach(() => scene.reset());
afterAll(() => scene[Symbol.asyncDispose]());

const DAY_S = 86_400;
const giveUp = () => giveUpLostMachines(scene.api.database.store, DAY_S);

/** Nothing runs on the machine any more. */
async function silence(seconds: number): Promise<void> {
  await scene.stopReconciling();
  const { db } = scene.api.database.owner;
  await sql`update box_machines set seen_at = now() - make_interval(secs => ${seconds})`.execute(db);
}

async function passTime(seconds: number): Promise<void> {
  const { db } = scene.api.database.owner;
  await sql`update box_machines set lost_at = lost_at - make_interval(secs => ${seconds})`.execute(db);
}

describe('the boxes of a machine that is silent', () => {
  it('fail after the time that is set, once it had some minutes to come back', async () => {
    const { id, name } = await scene.create();
    await silence(DAY_S - 60);
    expect([await giveUp(), (await scene.row(id))?.status]).toEqual([{ failed: 0, removed: 0 }, 'ready']);
    await silence(DAY_S + 1);
    expect([await giveUp(), (await scene.row(id))?.status]).toEqual([{ failed: 0, removed: 0 }, 'ready']);
    await passTime(121);
    expect(await giveUp()).toEqual({ failed: 1, removed: 0 });
    const { body } = await scene.ask('GET', `${BOXES}/${name}`);
    expect([body.status, body.status_message]).toEqual(['failed', expect.stringContaining('not been seen')]);
    expect((await scene.moves(id)).at(-1)).toBe('ready>failed:machine_lost');
    expect(await giveUp()).toEqual({ failed: 0, removed: 0 });
  });

  it('go on when the machine is seen in time, also after the database was away for long', async () => {
    const { id } = await scene.create();
    await silence(10 * DAY_S);
    await giveUp();
    await scene.restart();
    await scene.create();
    await passTime(3_600);
    expect([await giveUp(), (await scene.row(id))?.status]).toEqual([{ failed: 0, removed: 0 }, 'ready']);
  });

  it('are deleted without it, and it removes them when it comes back', async () => {
    const [one, two] = [await scene.create(), await scene.create()];
    await scene.stopReconciling();
    const asked = scene.ask('DELETE', `${BOXES}/${one.name}`);
    while ((await scene.row(one.id))?.status !== 'deleting') continue;
    await silence(DAY_S + 1);
    await giveUp();
    await passTime(121);
    expect(await giveUp()).toEqual({ failed: 1, removed: 1 });
    // By a notification in other processes; this one looks by itself.
    expect((await asked).status).toBe(204);
    expect((await scene.ask('DELETE', `${BOXES}/${two.name}`)).status).toBe(204);
    expect([await scene.row(one.id), await scene.row(two.id)]).toEqual([undefined, undefined]);
    expect((await scene.moves(two.id)).slice(-2)).toEqual([
      'failed>deleting:delete_requested',
      'deleting>gone:machine_lost',
    ]);
    expect([...scene.runtime.boxes.keys()].toSorted()).toEqual([one.id, two.id].toSorted());
    const removed = new Promise<void>((resolve) => {
      const left = new Set([one.id, two.id]);
      scene.runtime.onCall = ({ call, id }) => {
        if (call === 'remove' && left.delete(id) && left.size === 0) resolve();
      };
    });
    await scene.restart();
    await removed;
  });

  it('of another machine are not touched', async () => {
    const { id } = await scene.create();
    const { db } = scene.api.database.owner;
    const old = new Date(0);
    await db.insertInto('box_machines').values({ id: randomUUID(), lost_at: old, seen_at: old }).execute();
    expect([await giveUp(), (await scene.row(id))?.status]).toEqual([{ failed: 0, removed: 0 }, 'ready']);
  });

  it('that failed and still run when it comes back are stopped, and can be started again', async () => {
    const { id, name } = await scene.create();
    await silence(DAY_S + 1);
    await giveUp();
    await passTime(121);
    await giveUp();
    const halted = new Promise<void>((resolve) => {
      scene.runtime.onCall = ({ call }) => (call === 'stop' ? resolve() : undefined);
    });
    await scene.restart();
    await halted;
    await scene.ask('POST', `${BOXES}/${name}/start`);
    await scene.until(id, 'ready');
  });
});
