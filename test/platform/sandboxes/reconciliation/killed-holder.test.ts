// The process that starts a box is killed, or stopped for a while, in each phase of the start, while callers go on; another process of
// the machine takes over, and a second machine has the same database. Rows and runtimes agree afterwards.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Runtime } from '../../../../src/platform/runtime/contract.ts';
import type { Reconciler } from '../../../../src/platform/sandboxes/reconciliation/reconciler.ts';
import type { Store } from '../../../../src/platform/store/database.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';
import { createFakeRuntime } from '../fake-runtime.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
beforeEach(() => scene.reset());
afterAll(() => scene[Symbol.asyncDispose]());

const NO_PAUSE = { pauseMs: () => 0, spend: () => undefined };

const phases = [
  'before the runtime is called',
  'after the runtime has started the box',
  'before the row is written',
  'after the row was written',
] as const;
type Phase = (typeof phases)[number];

/** What a caller does in the meantime. */
const meanwhile: Readonly<
  Record<string, { readonly method: string; readonly path?: string; readonly body?: object } | undefined>
> = {
  nothing: undefined,
  'a change of its rules': { method: 'PATCH', body: { proxy_config: { no_proxy: ['two.example'] } } },
  'a stop': { method: 'POST', path: '/stop' },
  'a deletion': { method: 'DELETE' },
};

/** Without waiting for what follows from it: the caller leaves once it is stored. */
async function ask(
  what: string,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<void> {
  const given = meanwhile[what];
  if (given === undefined) return;
  const { method, path = '', body } = given;
  const before = await scene.row(id);
  const isStored = async (): Promise<boolean> => {
    const row = await scene.row(id);
    return [row?.status, row?.desired, row?.policy_version].some(
      (value, at) => value !== [before?.status, before?.desired, before?.policy_version][at],
    );
  };
  const leaving = new AbortController();
  const asked = scene.ask(method, `${BOXES}/${name}${path}`, body, { left: leaving.signal });
  while (!(await isStored())) continue;
  leaving.abort(new Error('left'));
  await asked.catch(() => undefined);
}

/** A process that comes to a halt in the phase, until it goes on. */
async function openVictim(phase: Phase) {
  const [reached, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isStarted = false;
  let isHalted = false;
  const pass = async (at: Phase): Promise<void> => {
    if (at !== phase) return;
    isHalted = true;
    reached.resolve();
    await late.promise;
  };
  const { store } = scene.api.database;
  // A halted process does not renew its lease either.
  const db = new Proxy(store.db, {
    get(target, key) {
      if (isHalted) throw new Error('halted');
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const runtime: Runtime = {
    ...scene.runtime,
    async start(box, policy) {
      await pass('before the runtime is called');
      const started = await scene.runtime.start(box, policy);
      isStarted = true;
      await pass('after the runtime has started the box');
      return started;
    },
  };
  const write: Store['write'] = async (work) => {
    if (isStarted) await pass('before the row is written');
    const written = await store.write(work);
    if (isStarted) await pass('after the row was written');
    return written;
  };
  const reconciler = await scene.openReconciler({ pace: NO_PAUSE, runtime, store: { db, write } });
  const goOn = (): void => {
    isHalted = false;
    late.resolve();
  };
  return { reconciler, reached: reached.promise, goOn };
}

/** What the rows of the machine want, and what its runtime does. */
async function compare() {
  const rows = await scene.api.database.owner.db
    .selectFrom('boxes')
    .select(['id', 'status', 'desired', 'policy_version', 'applied_version'])
    .orderBy('id')
    .execute();
  const wanted = rows.filter(({ status }) => status === 'ready');
  const boxes = [...scene.runtime.boxes].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const running = boxes.filter(([, { state }]) => state === 'running');
  return {
    unsettled: rows.filter(({ status, desired }) => status !== (desired === 'running' ? 'ready' : 'stopped')),
    wanted: wanted.map(({ id, policy_version, applied_version }) => [id, policy_version, applied_version]),
    running: running.map(([id, { version }]) => [id, version, version]),
    known: [...scene.runtime.boxes.keys()].filter((id) => rows.every((row) => row.id !== id)),
  };
}

type Compared = Awaited<ReturnType<typeof compare>>;

function isAgreed({ unsettled, known, wanted, running }: Compared): boolean {
  return unsettled.length + known.length === 0 && JSON.stringify(wanted) === JSON.stringify(running);
}

/** Ends when rows and runtime agree, which these processes bring about. */
async function settle(...reconcilers: readonly Reconciler[]): Promise<Compared> {
  for (;;) {
    for (const one of reconcilers) await one.pass();
    const compared = await compare();
    if (isAgreed(compared)) return compared;
  }
}

describe.each(phases)('a process that is killed %s', (phase) => {
  it.each(Object.keys(meanwhile))('and %s in the meantime', async (what) => {
    await scene.create();
    await scene.stopReconciling();
    const opened: Reconciler[] = [];
    onTestFinished(async () => {
      for (const one of opened) await one.close();
    });
    const victim = await openVictim(phase);
    const { body: box } = await scene.ask('POST', BOXES, { proxy_config: { no_proxy: ['one.example'] } });
    victim.reconciler.wake();
    await victim.reached;
    const { db } = scene.api.database.owner;
    const { id: machineId } = await db.selectFrom('box_machines').select('id').executeTakeFirstOrThrow();
    // A second machine: nothing of this one is its business.
    const elsewhere = createFakeRuntime();
    const other = await scene.openReconciler({ pace: NO_PAUSE, runtime: elsewhere, machineId: randomUUID() });
    opened.push(victim.reconciler, other);
    // The process is gone, and its lease has run out.
    await sql`update box_machines set held_until = now() - interval '1 second'`.execute(db);
    // Of this machine by its id: a renewed lease may have moved its row behind that of the other.
    const next = await scene.openReconciler({ pace: NO_PAUSE, machineId });
    opened.push(next);
    await next.pass();
    await ask(what, box);
    const agreed = await settle(next, other);
    const moves = await scene.moves(box.id);
    expect(moves.filter((move) => move === 'provisioning>ready:started').length).toBeLessThan(2);
    // It was stopped and not killed: what it does now is too late.
    victim.goOn();
    await victim.reconciler.pass();
    await victim.reconciler.close();
    expect(await settle(next, other)).toEqual(agreed);
    expect(await scene.moves(box.id)).toEqual(moves);
    expect(elsewhere.calls.every(({ call }) => call === 'list')).toBe(true);
  });
});
