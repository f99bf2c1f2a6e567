// State and reality agree again after everything that can be cut off: calls that fail or hang, a runtime that dies or loses its policies,
// a process that is replaced in the middle, boxes that nobody knows.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RuntimeError } from '../../../../src/platform/runtime/contract.ts';
import { BOXES, type BoxScene, createBoxScene } from '../box-scene.ts';
import { createFakeRuntime, rejects } from '../fake-runtime.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene();
});
beforeEach(() => scene.reset());
afterAll(() => scene[Symbol.asyncDispose]());

const stateOf = (id: string): string | undefined => scene.runtime.boxes.get(id)?.state;

describe('a box', () => {
  it('that the runtime lost is started again, with the rules of its row', async () => {
    const { id } = await scene.create({ proxy_config: { no_proxy: ['example.com'] } });
    const before = await scene.row(id);
    scene.runtime.die();
    await scene.until(id, 'ready', (row) => row.updated_at > before!.updated_at);
    expect(stateOf(id)).toBe('running');
    expect(await scene.moves(id)).toEqual([
      'new>provisioning:created',
      'provisioning>ready:started',
      'ready>provisioning:runtime_lost',
      'provisioning>ready:started',
    ]);
    expect(JSON.stringify(scene.runtime.boxes.get(id)?.policy?.document)).toContain('example.com');
  });

  it('whose sidecar lost its rules is not ready until it has those that were acknowledged', async () => {
    const { id, name } = await scene.create();
    await scene.ask('PATCH', `${BOXES}/${name}`, { proxy_config: { no_proxy: ['example.com'] } });
    const held = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call }) => (call === 'start' ? held.promise : undefined);
    scene.runtime.losePolicies();
    await scene.until(id, 'provisioning');
    expect((await scene.ask('GET', `${BOXES}/${name}`)).body.status).toBe('provisioning');
    held.resolve();
    await scene.until(id, 'ready');
    expect([scene.runtime.boxes.get(id)?.version, (await scene.moves(id)).at(-2)]).toEqual([
      2,
      'ready>provisioning:policy_lost',
    ]);
  });

  it('that runs with rules older than those that were acknowledged gets the newer ones', async () => {
    const { id, name } = await scene.create();
    await scene.ask('PATCH', `${BOXES}/${name}`, { proxy_config: { no_proxy: ['example.com'] } });
    const before = await scene.row(id);
    scene.runtime.pretend(id, 1);
    await scene.until(id, 'ready', (row) => row.updated_at > before!.updated_at);
    expect(scene.runtime.boxes.get(id)?.version).toBe(2);
  });

  it('that ended by itself has failed, with the last lines of its log', async () => {
    const { id, name } = await scene.create();
    scene.runtime.kill(id, `${'x'.repeat(3_000)}\0 out of memory`);
    const { status_message: message } = await scene.until(id, 'failed');
    expect([message?.length, message?.endsWith(' out of memory')]).toEqual([2_001, true]);
    await scene.ask('POST', `${BOXES}/${name}/start`);
    await scene.until(id, 'ready');
  });

  it('that ends again and again fails instead of being started for ever', async () => {
    const { id } = await scene.create();
    scene.runtime.onCall = ({ call }) => {
      if (call === 'list') scene.runtime.boxes.get(id)!.state = 'stopped';
    };
    const { status_message: message } = await scene.until(id, 'failed');
    expect(message).toBe('It ended again and again');
    expect(scene.runtime.calls.filter(({ call }) => call === 'start').length).toBeLessThan(8);
  });

  it('that waits until others were started again has not ended again and again', async () => {
    const before: { id: string; updated_at: Date }[] = [];
    for (let count = 0; count < 9; count += 1) {
      const { id } = await scene.create();
      before.push((await scene.row(id))!);
    }
    await scene.stopReconciling();
    scene.runtime.die();
    const narrow = await scene.openReconciler({ concurrency: 1 });
    for (const { id, updated_at } of before)
      await scene.until(id, 'ready', (row) => row.updated_at > updated_at);
    await narrow.close();
  });

  it.each([
    ['no_capacity', 'The machine is full'],
    ['not_supported', 'Storage cannot be limited here'],
    ['invalid_policy', 'The rules were rejected'],
    ['failed', 'exit code 1'],
  ] as const)(
    'whose start is rejected as %s has failed, and nothing of it is tried again',
    async (kind, message) => {
      scene.runtime.onCall = ({ call }) => (call === 'start' ? rejects(kind, message)() : undefined);
      const { body } = await scene.ask('POST', BOXES);
      expect((await scene.until(body.id, 'failed')).status_message).toBe(message);
      expect(scene.runtime.calls.filter(({ call }) => call === 'start')).toHaveLength(1);
    },
  );

  it('whose runtime is away says so, and is started when it is back', async () => {
    scene.runtime.onCall = ({ call }) =>
      call === 'start' ? rejects('unavailable', 'The box host does not respond')() : undefined;
    const { body } = await scene.ask('POST', BOXES);
    const away = await scene.until(body.id, 'provisioning', (row) => row.status_message !== null);
    expect(away.status_message).toBe('The box host does not respond; it is tried again');
    scene.runtime.onCall = () => undefined;
    expect((await scene.until(body.id, 'ready')).status_message).toBeNull();
  });

  it('is left alone while the runtime cannot be asked', async () => {
    const { id } = await scene.create();
    const before = scene.runtime.calls.length;
    scene.runtime.onCall = ({ call }) => (call === 'list' ? rejects('unavailable', 'away')() : undefined);
    scene.runtime.losePolicies();
    scene.runtime.losePolicies();
    const { body } = await scene.ask('POST', BOXES);
    expect([(await scene.row(id))?.status, (await scene.row(body.id))?.status]).toEqual([
      'ready',
      'provisioning',
    ]);
    expect(scene.runtime.calls.slice(before).every(({ call }) => call === 'list')).toBe(true);
    scene.runtime.onCall = () => undefined;
    await scene.until(body.id, 'ready');
  });

  it('that was deleted while it was being started is removed', async () => {
    const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    scene.runtime.onCall = ({ call }) => {
      if (call !== 'start') return undefined;
      reached.resolve();
      return held.promise;
    };
    const { body } = await scene.ask('POST', BOXES);
    await reached.promise;
    const deleted = scene.ask('DELETE', `${BOXES}/${body.name}`);
    await scene.until(body.id, 'deleting');
    held.resolve();
    expect((await deleted).status).toBe(204);
    expect(scene.runtime.boxes.has(body.id)).toBe(false);
  });

  it('that no machine has taken is gone at once when it is deleted', async () => {
    await scene.stopReconciling();
    const { body } = await scene.ask('POST', BOXES);
    expect((await scene.ask('DELETE', `${BOXES}/${body.name}`)).status).toBe(204);
    expect(await scene.row(body.id)).toBeUndefined();
    expect(await scene.moves(body.id)).toEqual([
      'new>provisioning:created',
      'provisioning>deleting:delete_requested',
      'deleting>gone:removed',
    ]);
  });

  it('whose new rules the runtime rejects keeps those before, says why, and they are not sent again', async () => {
    const { id, name } = await scene.create();
    const rejected = async (): Promise<never> => {
      const issues = [{ loc: ['rules', 0], msg: 'Too many', type: 'value_error' as const }];
      throw new RuntimeError('invalid_policy', 'The rules were rejected', issues);
    };
    scene.runtime.onCall = ({ call }) => (call === 'apply' ? rejected() : undefined);
    const { body } = await scene.ask('PATCH', `${BOXES}/${name}`, { proxy_config: {} });
    expect([body.status, body.proxy_config_version, body.proxy_config_applied_version]).toEqual([
      ...['ready', 2, 1],
    ]);
    expect(body.status_message).toBe(
      'The proxy rejects the rules, and those before stay in effect until they are changed: The rules were rejected: rules.0: Too many',
    );
    const applied = () => scene.runtime.calls.filter(({ call }) => call === 'apply');
    await scene.restart();
    await scene.create();
    expect([applied().length, (await scene.row(id))?.status]).toEqual([1, 'ready']);
    scene.runtime.onCall = () => undefined;
    const changed = await scene.ask('PATCH', `${BOXES}/${name}`, {
      proxy_config: { no_proxy: ['a.example'] },
    });
    expect([changed.body.proxy_config_applied_version, changed.body.status_message]).toEqual([3, null]);
  });

  it('that nobody knows is removed; so is that of a workspace that was deleted', async () => {
    const { api, organizationId } = scene;
    const workspaceId = await api.addWorkspace(organizationId);
    const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
    const { id } = (await scene.ask('POST', BOXES, { wait_for_ready: true }, { key })).body;
    const unknown = randomUUID();
    const gone = new Promise<void>((resolve) => {
      const left = new Set([id, unknown]);
      scene.runtime.onCall = (call) => {
        if (call.call === 'remove' && left.delete(call.id) && left.size === 0) resolve();
      };
    });
    await api.database.owner.db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
    scene.runtime.pretend(unknown, 1);
    await gone;
  });

  it('whose sealed values were changed is not started, and says that something is wrong without saying what', async () => {
    const { id, name } = await scene.create({ env_vars: { KEY: 'canary' } });
    await scene.ask('POST', `${BOXES}/${name}/stop`);
    const { db } = scene.api.database.owner;
    await db
      .updateTable('boxes')
      .set({ sealed_env: Buffer.alloc(60, 1) })
      .where('id', '=', id)
      .execute();
    await scene.ask('POST', `${BOXES}/${name}/start`);
    const row = await scene.until(id, 'provisioning', ({ status_message: message }) => message !== null);
    expect(row.status_message).toBe('The platform could not reach what runs sandboxes; it is tried again');
    expect(stateOf(id)).toBe('stopped');
  });
});

describe('a process that is replaced in the middle', () => {
  it.each(['start', 'apply', 'stop', 'remove'])('of %s leaves it to the next one', async (cut) => {
    const { id, name } = await scene.create();
    const [reached, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    scene.runtime.onCall = async ({ call }) => {
      if (call !== cut) return;
      reached.resolve();
      await late.promise;
    };
    const asks: Readonly<Record<string, () => Promise<unknown>>> = {
      start: () => scene.ask('POST', BOXES, { name: 'cut-off' }),
      apply: () => scene.ask('PATCH', `${BOXES}/${name}`, { proxy_config: { no_proxy: ['example.com'] } }),
      stop: () => scene.ask('POST', `${BOXES}/${name}/stop`),
      remove: () => scene.ask('DELETE', `${BOXES}/${name}`),
    };
    const asked = asks[cut]?.();
    await reached.promise;
    scene.runtime.onCall = () => undefined;
    await using other = await openSecond();
    await other.pass();
    await asked;
    if (cut === 'start') {
      const { body } = await scene.ask('GET', `${BOXES}/cut-off`);
      await scene.until(body.id, 'ready');
    }
    if (cut === 'apply') await scene.until(id, 'ready', (row) => row.applied_version === 2);
    if (cut === 'stop') await scene.until(id, 'stopped');
    if (cut === 'remove') await scene.until(id, 'gone');
    // What the process before hears too late changes nothing.
    const before = await scene.api.database.owner.db.selectFrom('boxes').selectAll().orderBy('id').execute();
    late.resolve();
    await scene.stopReconciling();
    expect(await scene.api.database.owner.db.selectFrom('boxes').selectAll().orderBy('id').execute()).toEqual(
      before,
    );
  });

  it('waits for its lease, so that one reconciles a machine at a time', async () => {
    await scene.create();
    const runtime = createFakeRuntime();
    const second = await scene.openReconciler({ runtime });
    await second.pass();
    expect(runtime.calls).toEqual([]);
    await scene.stopReconciling();
    await second.pass();
    expect(runtime.calls.map(({ call }) => call)).toContain('list');
    await second.close();
  });

  it('does not touch the boxes of another machine', async () => {
    const { id } = await scene.create();
    const runtime = createFakeRuntime();
    runtime.pretend(id, 1);
    const other = await scene.openReconciler({ runtime, machineId: randomUUID() });
    await other.pass();
    await other.close();
    expect([runtime.calls.map(({ call }) => call).filter((call) => call !== 'list'), stateOf(id)]).toEqual([
      [],
      'running',
    ]);
  });
});

/** The next process of the same machine has the lease: the one before was too slow to renew it. */
async function openSecond() {
  const { db } = scene.api.database.owner;
  const [holder, held_until] = [randomUUID(), new Date(Date.now() + 3_600_000)];
  await db.updateTable('box_machines').set({ holder, held_until }).execute();
  const second = await scene.openReconciler({ holder });
  return { ...second, pass: () => second.pass(), [Symbol.asyncDispose]: () => second.close() };
}
