// Use counts: a box with a call or a WebSocket is not stopped as idle, whatever the time of its last request.
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { type BoxUse, createBoxUse } from '../../../../src/platform/sandboxes/gateway/box-use.ts';
import { createBoxExpiry } from '../../../../src/platform/sandboxes/reconciliation/box-expiry.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createGatewayScene, type GatewayScene } from './gateway-scene.ts';

let scene: GatewayScene;
let use: BoxUse;
const log = createLog('info', { write: () => undefined });
beforeAll(async () => {
  scene = await createGatewayScene();
  use = createBoxUse({ db: scene.api.database.store.db, log });
});
afterAll(async () => {
  await use.close();
  await scene[Symbol.asyncDispose]();
});

/** As if it had last been used so long ago. */
async function age(id: string, seconds: number): Promise<void> {
  await sql`update boxes set active_at = now() - make_interval(secs => ${seconds}) where id = ${id}`.execute(
    scene.api.database.owner.db,
  );
}

async function ageOf(id: string): Promise<number> {
  const { rows } = await sql<{ age: number }>`
    select extract(epoch from now() - active_at)::float8 as age from boxes where id = ${id}`.execute(
    scene.api.database.owner.db,
  );
  return rows[0]?.age ?? Number.NaN;
}

const expire = (): Promise<void> =>
  createBoxExpiry(() => ({ machineLostAfterSeconds: undefined })).run({}, {
    store: scene.api.database.store,
    log,
    signal: new AbortController().signal,
  } as never);

describe('a call', () => {
  it('is a use from its beginning: a box that was about to be stopped goes on', async () => {
    const box = await scene.create({ idle_ttl_seconds: 60 });
    await age(box.id, 100);
    expect((await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST' })).status).toBe(200);
    await expire();
    const { status, desired } = (await scene.row(box.id)) ?? {};
    expect([status, desired]).toEqual(['ready', 'running']);
  });

  it('is written once in twenty seconds', async () => {
    const box = await scene.create({});
    for (const [seconds, isWritten] of [
      [10, false],
      [30, true],
    ] as const) {
      await age(box.id, seconds);
      await (await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST' })).text();
      expect((await ageOf(box.id)) < 9).toBe(isWritten);
    }
  });

  it('that finds its box idle and being stopped starts it', async () => {
    const box = await scene.create({ idle_ttl_seconds: 60 });
    await age(box.id, 100);
    await expire();
    expect((await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST' })).status).toBe(200);
    expect((await scene.row(box.id))?.desired).toBe('running');
  });
});

describe('what runs', () => {
  it('keeps its box, and the time counts from its end', async () => {
    const box = await scene.create({ idle_ttl_seconds: 60 });
    const ended = use.begin(box.id);
    const alsoEnded = use.begin(box.id);
    ended();
    await age(box.id, 100);
    await use.write();
    expect(await ageOf(box.id)).toBeLessThan(50);
    alsoEnded();
    await age(box.id, 100);
    await use.write();
    expect(await ageOf(box.id)).toBeLessThan(50);
    await age(box.id, 100);
    await use.write();
    expect(await ageOf(box.id)).toBeGreaterThan(50);
  });

  it('is written for all boxes by one statement, for none by no statement', async () => {
    const statements: string[] = [];
    const { db } = scene.api.database.store;
    const counting = new Proxy(db, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown;
        if (name !== 'getExecutor') return value;
        statements.push('one');
        return (value as () => unknown).bind(target);
      },
    });
    const counted = createBoxUse({ db: counting, log });
    await counted.write();
    expect(statements).toEqual([]);
    const boxes = [await scene.create({}), await scene.create({})];
    for (const { id } of boxes) {
      counted.begin(id);
      await age(id, 100);
    }
    await counted.write();
    expect(statements).toHaveLength(1);
    for (const { id } of boxes) expect(await ageOf(id)).toBeLessThan(50);
    await counted.close();
  });

  it('a WebSocket as long as it is open', async () => {
    const box = await scene.create({ idle_ttl_seconds: 60 });
    const socket = scene.dial(box.dataplane_url);
    await once(socket, 'open');
    await age(box.id, 100);
    await scene.stopReconciling();
    // The gateway has closed with it, and has written what was in use.
    expect(await ageOf(box.id)).toBeLessThan(50);
    socket.terminate();
    await scene.restart();
  });

  it('does not wake a box that is to be stopped, and waits for no lock', async () => {
    const box = await scene.create({});
    await sql`update boxes set desired = 'stopped' where id = ${box.id}`.execute(scene.api.database.owner.db);
    await age(box.id, 100);
    expect(await use.touch(box.id)).toBe(false);
    const locked = await scene.create({});
    await scene.api.database.store.write(async (trx) => {
      await sql`select id from boxes where id = ${locked.id} for update`.execute(trx);
      expect(await use.touch(locked.id)).toBe(false);
    });
    expect(await use.touch(locked.id)).toBe(true);
  });
});
