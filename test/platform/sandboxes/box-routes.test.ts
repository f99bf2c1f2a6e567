// The API of boxes with a reconciler on a fake runtime: shapes, waiting, errors as public clients read them, and what the runtime gets.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { BOXES, type BoxScene, createBoxScene } from './box-scene.ts';
import { rejects } from './fake-runtime.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene({ sandboxes: { runtime: 'bubblewrap' } });
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => {
  scene.runtime.onCall = () => undefined;
});

const rules = (value: string, more: object = {}) => ({
  rules: [{ match_hosts: ['api.example.com'], headers: [{ name: 'X-Key', type: 'opaque', value }], ...more }],
});
const SECRETS = '/api/v1/workspaces/current/secrets';
/** With a member that only JSON.parse makes. */
const own = (value: unknown): object => JSON.parse(`{"__proto__":${JSON.stringify(value)}}`);
const named = (): string => `box-${randomUUID().slice(0, 8)}`;

/** The secret values that the runtime got with the policy of a box. */
function policyOf(id: string): {
  readonly document: string;
  readonly secrets: readonly (readonly [string, boolean])[];
} {
  const { document = {}, secrets = new Map() } = scene.runtime.boxes.get(id)?.policy ?? {};
  return {
    document: JSON.stringify(document),
    secrets: [...secrets].map(([name, value]) => [
      name,
      value.satisfies((text: string) => text.startsWith('canary')),
    ]),
  };
}

describe('creating a box', () => {
  it('responds at once with what is being made, and with a name', async () => {
    const { status, body } = await scene.ask('POST', BOXES);
    expect([status, body.status, body.proxy_config, body.proxy_config_applied_version]).toEqual([
      201,
      'provisioning',
      null,
      0,
    ]);
    expect(body.name).toMatch(/^sandbox-[a-z0-9]{10}$/);
    const row = await scene.until(body.id, 'ready');
    expect([row.applied_version, row.proxy_url]).toEqual([1, 'http://127.0.0.1:41234']);
    expect(await scene.moves(body.id)).toEqual(['new>provisioning:created', 'provisioning>ready:started']);
  });

  it('waits until it is ready where the caller asks for it, and gives the runtime everything', async () => {
    const name = named();
    const body = await scene.create({
      ...{ name, proxy_config: rules('canary-1'), env_vars: { A: '1', PATH: '/x' }, labels: { team: 'b' } },
      ...{ vcpus: 0.5, mem_bytes: 2 ** 30, fs_capacity_bytes: 2 ** 31, idle_ttl_seconds: 60 },
      ...{ delete_after_stop_seconds: 120, a_field_of_the_future: [1] },
    });
    expect(body).toMatchObject({
      ...{ name, status: 'ready', status_message: null, labels: { team: 'b' }, dataplane_url: null },
      ...{ vcpus: 0.5, cpu_millicores: 500, mem_bytes: 2 ** 30, fs_capacity_bytes: 2 ** 31 },
      ...{ idle_ttl_seconds: 60, delete_after_stop_seconds: 120, snapshot_id: null, size_class: null },
      ...{ proxy_url: 'http://127.0.0.1:41234', ca_pem: 'a certificate', runtime: 'bubblewrap' },
      ...{ proxy_config_version: 1, proxy_config_applied_version: 1, stopped_at: null, mount_config: null },
    });
    expect(body.proxy_config.rules[0].headers).toEqual([{ name: 'X-Key', type: 'opaque', is_set: true }]);
    const { spec } = scene.runtime.boxes.get(body.id) ?? {};
    expect(spec).toMatchObject({
      ...{ id: body.id, name, workspaceId: scene.workspaceId, organizationId: scene.organizationId },
      ...{ envVars: { A: '1', PATH: '/x' }, snapshotId: undefined, runtime: undefined },
      limits: { cpuMillicores: 500, memBytes: 2 ** 30, fsCapacityBytes: 2 ** 31 },
    });
    expect(policyOf(body.id).document).toContain('canary-1');
  });

  it('stores neither opaque values nor variables as they are, and shows them to nobody', async () => {
    const body = await scene.create({
      proxy_config: rules('canary-hidden'),
      env_vars: { KEY: 'canary-env' },
    });
    const { body: read, text } = await scene.ask('GET', `${BOXES}/${body.name}`);
    expect(read).toEqual(body);
    expect(text).not.toContain('canary');
    const row = await scene.row(body.id);
    const stored =
      JSON.stringify(row) +
      (row?.sealed_policy?.toString('latin1') ?? '') +
      row?.sealed_env?.toString('latin1');
    expect(stored).not.toContain('canary');
    expect(scene.logged.join('')).not.toContain('canary');
  });

  it('counts processors in whole thousandths', async () => {
    const { vcpus, cpu_millicores } = await scene.create({ vcpus: 2.007 });
    expect([vcpus, cpu_millicores]).toEqual([2.007, 2007]);
    expect((await scene.create({ vcpus: 0.0705 })).cpu_millicores).toBe(71);
  });

  it('resolves workspace secrets; a missing one is an issue at the value of its header', async () => {
    const proxy_config = {
      rules: [
        {
          match_hosts: ['api.example.com'],
          headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {MISSING_ONE}' }],
        },
      ],
    };
    const missing = await scene.ask('POST', BOXES, { proxy_config });
    expect([
      missing.status,
      missing.body.detail.map(({ loc, type }: { loc: unknown; type: string }) => [loc, type]),
    ]).toEqual([422, [[['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value'], 'value_error']]]);
    await scene.ask('POST', SECRETS, [{ key: 'MISSING_ONE', value: 'canary-2' }], { key: await admin() });
    const { id } = await scene.create({ proxy_config });
    expect(policyOf(id).secrets).toEqual([['MISSING_ONE', true]]);
  });

  it.each([
    ['a name with capitals', { name: 'Box' }, ['body', 'name']],
    ['a name like an id', { name: randomUUID() }, ['body', 'name']],
    ['a time that is no multiple of a minute', { idle_ttl_seconds: 61 }, ['body', 'idle_ttl_seconds']],
    [
      'a host that is none',
      { proxy_config: rules('x', { match_hosts: ['https://x'] }) },
      ['body', 'proxy_config', 'rules', 0, 'match_hosts', 0],
    ],
    ['a variable with =', { env_vars: { 'A=B': '1' } }, ['body', 'env_vars', 'A=B']],
    ['mounts', { mount_config: { mounts: [] } }, ['body', 'mount_config']],
    ['memory beyond 16 TiB', { mem_bytes: 2 ** 44 + 1 }, ['body', 'mem_bytes']],
    ['files beyond 16 TiB', { fs_capacity_bytes: Number.MAX_SAFE_INTEGER }, ['body', 'fs_capacity_bytes']],
    ['a number that no double holds', { mem_bytes: 2 ** 53 }, ['body', 'mem_bytes']],
    ['a variable __proto__', { env_vars: own('1') }, ['body', 'env_vars', '__proto__']],
    ['a label __proto__', { labels: own({ admin: true }) }, ['body', 'labels', '__proto__']],
    ['rules with __proto__', { proxy_config: own({}) }, ['body', 'proxy_config', '__proto__']],
  ])('with %s is a list with one value_error, and writes nothing', async (_, body, loc) => {
    const before = await count();
    const response = await scene.ask('POST', BOXES, body);
    expect([response.status, response.body.detail.map((one: { loc: unknown }) => one.loc)]).toEqual([
      422,
      [loc],
    ]);
    expect(response.body.detail[0].type).toBe('value_error');
    expect(await count()).toBe(before);
  });

  it('with a name that exists is 409, also when the first attempt was not ready in time', async () => {
    const name = named();
    const held = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call }) => (call === 'start' ? held.promise : undefined);
    const late = await scene.ask('POST', BOXES, { name, wait_for_ready: true, timeout: 0.05 });
    expect([late.status, late.body.detail.error]).toEqual([408, 'Timeout']);
    const again = await scene.ask('POST', BOXES, { name, wait_for_ready: true, timeout: 0.05 });
    expect([again.status, again.body.detail.error]).toEqual([409, 'Conflict']);
    held.resolve();
    const { body } = await scene.ask('GET', `${BOXES}/${name}`);
    await scene.until(body.id, 'ready');
  });

  it('without a name leaves no box that its caller cannot know, when it is not ready in time', async () => {
    const before = await count();
    const held = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call }) => (call === 'start' ? held.promise : undefined);
    const { status } = await scene.ask('POST', BOXES, { wait_for_ready: true, timeout: 0.05 });
    expect(status).toBe(408);
    const id = await notAwaited();
    held.resolve();
    await scene.until(id, 'gone');
    expect([await count(), scene.runtime.boxes.has(id)]).toEqual([before, false]);
    expect(await scene.moves(id)).toContain('provisioning>deleting:not_awaited');
  });

  it('without a name leaves none either when the caller has left, or the process shuts down', async () => {
    const held = Promise.withResolvers<void>();
    const ids: string[] = [];
    for (const reason of ['left', 'draining'] as const) {
      const ending = new AbortController();
      const reached = Promise.withResolvers<string>();
      scene.runtime.onCall = ({ call, id }) => {
        if (call !== 'start') return undefined;
        reached.resolve(id);
        return held.promise;
      };
      const asked = scene.ask('POST', BOXES, { wait_for_ready: true }, { [reason]: ending.signal });
      const id = await reached.promise;
      ending.abort(new DomainError('unavailable', 'This process is shutting down', 1000));
      expect((await asked).status).toBe(503);
      expect((await scene.row(id))?.status).toBe('deleting');
      ids.push(id);
    }
    held.resolve();
    for (const id of ids) await scene.until(id, 'gone');
  });

  it('that cannot start is 422 with the reason, and the box stays as failed', async () => {
    scene.runtime.onCall = ({ call }) =>
      call === 'start' ? rejects('failed', 'exit code 127\nno such program')() : undefined;
    const name = named();
    const { status, body } = await scene.ask('POST', BOXES, { name, wait_for_ready: true });
    expect([status, body.detail.error]).toEqual([422, 'StartFailed']);
    expect(body.detail.message).toContain('no such program');
    const shown = await scene.ask('GET', `${BOXES}/${name}/status`);
    expect(shown.body).toEqual({ status: 'failed', status_message: 'exit code 127\nno such program' });
  });

  it('with a profile that does not exist is 404', async () => {
    const { status, body } = await scene.ask('POST', BOXES, { proxy_profile_id: randomUUID() });
    expect([status, body.detail.error]).toEqual([404, 'NotFound']);
  });

  it('from a snapshot is 400: there is none', async () => {
    const { status, body } = await scene.ask('POST', BOXES, { snapshot_id: randomUUID() });
    expect([status, body.detail.error]).toEqual([400, 'Unusable']);
  });

  it('leaves an event, and none of its text', async () => {
    const { id, name } = await scene.create({ proxy_config: rules('canary-event') });
    const { db } = scene.api.database.owner;
    const events = await db.selectFrom('audit_events').select(['operation', 'record']).execute();
    const { operation, record } = events.find((one) => one.record.includes(id)) ?? {
      operation: '',
      record: '',
    };
    expect(operation).toBe('create_sandbox');
    expect([record.includes(name), record.includes('canary')]).toEqual([true, false]);
  });
});

describe('finding boxes', () => {
  it('is possible by name and by id, under both paths, and not from another workspace', async () => {
    const { id, name } = await scene.create();
    for (const path of [`${BOXES}/${id}`, `${BOXES}/${name}`, `/api${BOXES}/${name}`])
      expect((await scene.ask('GET', path)).body.id).toBe(id);
    const other = await scene.api.addWorkspace(scene.organizationId);
    const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', other);
    for (const box of [id, name]) {
      const { status, body } = await scene.ask('GET', `${BOXES}/${box}`, undefined, { key });
      expect([status, body.detail.error]).toEqual([404, 'NotFound']);
    }
  });

  it('lists both shapes, filtered, sorted and page by page', async () => {
    const other = await scene.api.addWorkspace(scene.organizationId);
    const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', other);
    const list = async (query: string) =>
      (await scene.ask('GET', `${BOXES}${query}`, undefined, { key })).body;
    for (const name of ['alpha', 'beta', 'gamma_'.replace('_', ''), 'alpha-2'])
      await scene.ask('POST', BOXES, { name, wait_for_ready: true }, { key });
    const names = (body: { readonly items: readonly { readonly name: string }[] }) =>
      body.items.map(({ name }) => name);
    const all = await list('');
    expect([names(all), all.offset, all.next_cursor, all.sandboxes]).toEqual([
      ['alpha-2', 'gamma', 'beta', 'alpha'],
      4,
      null,
      all.items,
    ]);
    expect(names(await list('?sort_by=name&sort_direction=asc'))).toEqual([
      'alpha',
      'alpha-2',
      'beta',
      'gamma',
    ]);
    expect(names(await list('?name_contains=pha&sort_by=name'))).toEqual(['alpha-2', 'alpha']);
    expect(names(await list('?name_contains=%25'))).toEqual([]);
    expect(names(await list('?status=stopped'))).toEqual([]);
    expect(names(await list('?limit=2&offset=1'))).toEqual(['gamma', 'beta']);
    const first = await list('?page_size=3');
    const second = await list(`?page_size=3&cursor=${first.next_cursor}`);
    expect([names(first), names(second), second.next_cursor]).toEqual([
      ['alpha-2', 'gamma', 'beta'],
      ['alpha'],
      null,
    ]);
    const wrong = await scene.ask('GET', `${BOXES}?status=ready&cursor=${first.next_cursor}`, undefined, {
      key,
    });
    expect([wrong.status, wrong.body.detail[0].type]).toEqual([422, 'value_error']);
  });
});

describe('changing a box', () => {
  it('responds when its proxy has the rules, keeps opaque values that are left out, and changes nothing else', async () => {
    const box = await scene.create({ proxy_config: rules('canary-kept'), labels: { a: 'b' } });
    const proxy_config = {
      rules: [
        { ...box.proxy_config.rules[0], env_vars: { KEY: 'x' } },
        { match_hosts: ['other.example.com'], headers: [{ name: 'A', type: 'plaintext', value: '1' }] },
      ],
    };
    const { status, body } = await scene.ask('PATCH', `${BOXES}/${box.name}`, { proxy_config });
    expect([status, body.status, body.proxy_config_version, body.proxy_config_applied_version]).toEqual([
      200,
      'ready',
      2,
      2,
    ]);
    expect([body.labels, body.proxy_config.rules.length]).toEqual([{ a: 'b' }, 2]);
    const { document } = policyOf(box.id);
    expect([document.includes('canary-kept'), document.includes('other.example.com')]).toEqual([true, true]);
    expect(scene.runtime.calls.filter(({ id, call }) => id === box.id && call === 'start')).toHaveLength(1);
  });

  it('shows rules that its proxy does not have yet', async () => {
    const { name, id } = await scene.create();
    await scene.stopReconciling();
    const changed = scene.ask('PATCH', `${BOXES}/${name}`, { proxy_config: { no_proxy: ['example.com'] } });
    while ((await scene.row(id))?.policy_version !== 2) continue;
    const { body } = await scene.ask('GET', `${BOXES}/${name}`);
    expect([body.proxy_config_version, body.proxy_config_applied_version]).toEqual([2, 1]);
    await scene.restart();
    expect((await changed).body.proxy_config_applied_version).toBe(2);
  });

  it('may remove the rules, rename it, and change its times', async () => {
    const box = await scene.create({ proxy_config: rules('canary-3') });
    const name = named();
    const change = { proxy_config: null, name, idle_ttl_seconds: 120, labels: { x: 'y' } };
    const { body } = await scene.ask('PATCH', `${BOXES}/${box.id}`, change);
    expect(body).toMatchObject({ ...change, id: box.id, proxy_config_applied_version: 2 });
    expect(policyOf(box.id).document).toBe('{}');
    expect((await scene.ask('GET', `${BOXES}/${box.name}`)).status).toBe(404);
  });

  it('to a name that exists is 409, with invalid rules 422, and neither changes anything', async () => {
    const [one, two] = [await scene.create(), await scene.create()];
    const taken = await scene.ask('PATCH', `${BOXES}/${one.name}`, { name: two.name, idle_ttl_seconds: 60 });
    expect([taken.status, taken.body.detail.error]).toEqual([409, 'Conflict']);
    const invalid = await scene.ask('PATCH', `${BOXES}/${one.name}`, {
      proxy_config: { rules: [{}] },
      idle_ttl_seconds: 60,
    });
    expect([invalid.status, invalid.body.detail[0].loc.slice(0, 4)]).toEqual([
      422,
      ['body', 'proxy_config', 'rules', 0],
    ]);
    expect((await scene.ask('GET', `${BOXES}/${one.name}`)).body).toEqual(one);
  });

  it('of a stopped box is stored for its next start', async () => {
    const { name, id } = await scene.create();
    await scene.ask('POST', `${BOXES}/${name}/stop`, {});
    const { status, body } = await scene.ask('PATCH', `${BOXES}/${name}`, {
      proxy_config: rules('canary-next'),
    });
    expect([status, body.status, body.proxy_config_version, body.proxy_config_applied_version]).toEqual([
      200,
      'stopped',
      2,
      1,
    ]);
    await scene.ask('POST', `${BOXES}/${name}/start`, {});
    expect((await scene.until(id, 'ready')).applied_version).toBe(2);
    expect(policyOf(id).document).toContain('canary-next');
  });
});

describe('deleting a box', () => {
  it('responds when nothing of it is left', async () => {
    const { name, id } = await scene.create();
    const { status, text } = await scene.ask('DELETE', `${BOXES}/${name}`);
    expect([status, text, scene.runtime.boxes.has(id)]).toEqual([204, '', false]);
    expect((await scene.ask('GET', `${BOXES}/${name}`)).status).toBe(404);
    expect(await scene.moves(id)).toEqual([
      'new>provisioning:created',
      'provisioning>ready:started',
      'ready>deleting:delete_requested',
      'deleting>gone:removed',
    ]);
    expect((await scene.ask('DELETE', `${BOXES}/${name}`)).status).toBe(404);
  });

  it('shows it as deleting as long as something is left, and cannot be undone', async () => {
    const { name, id } = await scene.create();
    await scene.stopReconciling();
    const deleted = scene.ask('DELETE', `${BOXES}/${name}`);
    while ((await scene.row(id))?.status !== 'deleting') continue;
    expect((await scene.ask('GET', `${BOXES}/${name}`)).body.status).toBe('deleting');
    const started = await scene.ask('POST', `${BOXES}/${name}/start`, {});
    expect([started.status, started.body.detail.error]).toEqual([400, 'NotReady']);
    await scene.restart();
    expect((await deleted).status).toBe(204);
  });
});

/** Of an organization: it may set secrets. */
async function admin(): Promise<string> {
  return scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', scene.workspaceId);
}

async function count(): Promise<number> {
  return (await scene.api.database.owner.db.selectFrom('boxes').select('id').execute()).length;
}

/** The box that was given up last: it may be gone. */
async function notAwaited(): Promise<string> {
  const moves = scene.api.database.owner.db.selectFrom('box_transitions').select('box_id');
  const last = moves.where('reason', '=', 'not_awaited').orderBy('id', 'desc').limit(1);
  return (await last.executeTakeFirstOrThrow()).box_id;
}
