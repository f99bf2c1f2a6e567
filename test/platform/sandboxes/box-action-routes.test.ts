import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BOXES, type BoxScene, createBoxScene } from './box-scene.ts';

let scene: BoxScene;
beforeAll(async () => {
  scene = await createBoxScene({
    sandboxes: {
      ...{ max_boxes: 8, max_cpu_millicores: 4_000, max_memory_bytes: 4_000, max_storage_bytes: 80_000_000 },
      ...{ default_cpu_millicores: 10, default_memory_bytes: 5, default_storage_bytes: 8_388_608 },
      runtime: 'bubblewrap',
    },
  });
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => {
  scene.runtime.onCall = () => undefined;
  scene.runtime.needsToken = false;
});

async function clear(): Promise<void> {
  const { body } = await scene.ask('GET', BOXES);
  for (const { id } of body.items) await scene.ask('DELETE', `${BOXES}/${id}`);
}

function holdStop(): { readonly reached: Promise<void>; now(): void } {
  const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  scene.runtime.onCall = ({ call }) => {
    if (call !== 'stop') return;
    reached.resolve();
    return held.promise;
  };
  return { reached: reached.promise, now: () => held.resolve() };
}

describe('stop and start', () => {
  it('responds when it has stopped; start brings back the same box', async () => {
    const { name, id } = await scene.create();
    const stopped = await scene.ask('POST', `${BOXES}/${name}/stop`, {});
    expect([stopped.status, stopped.text, scene.runtime.boxes.get(id)?.state]).toEqual([204, '', 'stopped']);
    const shown = (await scene.ask('GET', `${BOXES}/${name}`)).body;
    expect([shown.status, typeof shown.stopped_at]).toEqual(['stopped', 'string']);
    const started = await scene.ask('POST', `${BOXES}/${name}/start`, {});
    expect([started.status, started.body.status]).toEqual([202, 'provisioning']);
    expect((await scene.until(id, 'ready')).stopped_at).toBeNull();
    expect((await scene.moves(id)).slice(2)).toEqual([
      'ready>stopped:stop_requested',
      'stopped>provisioning:start_requested',
      'provisioning>ready:started',
    ]);
  });

  it('may be repeated', async () => {
    const { name } = await scene.create();
    expect((await scene.ask('POST', `${BOXES}/${name}/start`)).status).toBe(202);
    expect((await scene.ask('POST', `${BOXES}/${name}/stop`)).status).toBe(204);
    expect((await scene.ask('POST', `${BOXES}/${name}/stop`)).status).toBe(204);
    expect((await scene.ask('GET', `${BOXES}/${name}/status`)).body.status).toBe('stopped');
  });

  it('stops a box that is still being started', async () => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    scene.runtime.onCall = ({ call }) => {
      if (call !== 'start') return undefined;
      begun.resolve();
      return held.promise;
    };
    const { body } = await scene.ask('POST', BOXES);
    await begun.promise;
    const stopped = scene.ask('POST', `${BOXES}/${body.name}/stop`);
    while ((await scene.row(body.id))?.desired !== 'stopped') continue;
    held.resolve();
    expect((await stopped).status).toBe(204);
    expect([scene.runtime.boxes.get(body.id)?.state, (await scene.row(body.id))?.status]).toEqual([
      'stopped',
      'stopped',
    ]);
  });

  it('starts a box again that was still being stopped when the start was asked for', async () => {
    const { name, id } = await scene.create();
    const release = holdStop();
    const stopped = scene.ask('POST', `${BOXES}/${name}/stop`);
    await release.reached;
    expect((await scene.ask('POST', `${BOXES}/${name}/start`)).status).toBe(202);
    release.now();
    expect((await stopped).status).toBe(204);
    const starts = () => scene.runtime.calls.filter((one) => one.call === 'start' && one.id === id);
    await scene.until(id, 'ready', () => starts().length === 2);
    expect(scene.runtime.boxes.get(id)?.state).toBe('running');
  });

  it('counts a box that is started while it is still being stopped', async () => {
    await clear();
    const { name, id } = await scene.create({ mem_bytes: 3_000 });
    const release = holdStop();
    const stopped = scene.ask('POST', `${BOXES}/${name}/stop`);
    await release.reached;
    expect((await scene.ask('POST', BOXES, { mem_bytes: 3_000 })).status).toBe(201);
    expect((await scene.ask('POST', `${BOXES}/${name}/start`)).status).toBe(429);
    release.now();
    await stopped;
    expect((await scene.row(id))?.status).toBe('stopped');
    await clear();
  });

  it('of a box that does not exist is 404', async () => {
    for (const action of ['start', 'stop', 'refresh-secrets', 'proxy-token', 'snapshot', 'service-url'])
      expect([action, (await scene.ask('POST', `${BOXES}/none/${action}`, { port: 80 })).status]).toEqual([
        action,
        404,
      ]);
    await clear();
  });
});

describe('secrets that were changed', () => {
  it('reach the box when it is asked for, and not by themselves', async () => {
    const set = (value: string) =>
      scene.ask('POST', '/api/v1/workspaces/current/secrets', [{ key: 'TOKEN', value }]);
    await set('first');
    const header = { name: 'Authorization', type: 'workspace_secret', value: '{TOKEN}' };
    const proxy_config = { rules: [{ match_hosts: ['api.example.com'], headers: [header] }] };
    const { name, id } = await scene.create({ proxy_config });
    const value = (text: string) => scene.runtime.boxes.get(id)?.policy?.secrets.get('TOKEN')?.equals(text);
    expect((await set('second')).status).toBe(200);
    scene.runtime.losePolicies();
    await scene.until(id, 'ready', () => (scene.runtime.boxes.get(id)?.version ?? 0) > 0);
    expect(value('first')).toBe(true);
    const { status, body } = await scene.ask('POST', `${BOXES}/${name}/refresh-secrets`, {});
    expect([status, body.proxy_config_applied_version, value('second')]).toEqual([200, 2, true]);
    await clear();
  });
});

describe('the token of a proxy that other machines reach', () => {
  it('is in the response that made it, and in no other', async () => {
    scene.runtime.needsToken = true;
    const { name, id, proxy_url: url } = await scene.create();
    const token = new URL(url).password;
    expect([new URL(url).username, token.length]).toEqual(['sandbox', 43]);
    expect(scene.runtime.boxes.get(id)?.spec?.proxyToken.equals(token)).toBe(true);
    expect((await scene.ask('GET', `${BOXES}/${name}`)).body.proxy_url).toBe('http://127.0.0.1:41234');
    const renewed = await scene.ask('POST', `${BOXES}/${name}/proxy-token`, {});
    const second = new URL(renewed.body.proxy_url).password;
    expect([renewed.status, second.length, second === token]).toEqual([201, 43, false]);
    expect(scene.runtime.boxes.get(id)?.spec?.proxyToken.equals(second)).toBe(true);
  });

  it('does not exist where none is needed', async () => {
    const { name } = await scene.create();
    const { status, body } = await scene.ask('POST', `${BOXES}/${name}/proxy-token`, {});
    expect([status, body.detail.error]).toEqual([400, 'NotReady']);
    await clear();
  });
});

describe('several boxes', () => {
  it('are deleted together; those that do not exist are named', async () => {
    const [one, two] = [await scene.create(), await scene.create()];
    const body = { names: [one.name, two.id, 'none'] };
    const { status, body: said } = await scene.ask('POST', `${BOXES}/batch-delete`, body);
    expect([status, said.deleted.toSorted(), said.skipped]).toEqual([
      200,
      [one.name, two.id].toSorted(),
      [{ name: 'none', reason: 'not found' }],
    ]);
    for (const { id } of [one, two]) await scene.until(id, 'gone');
  });
});

describe('quotas', () => {
  it('of a workspace are counted and shown', async () => {
    await clear();
    const { name } = await scene.create({ cpu_millicores: 1_000, mem_bytes: 500, fs_capacity_bytes: 100 });
    const used = { sandbox_count: 1, cpu_millicores: 1_000, memory_bytes: 500, storage_bytes: 100 };
    const { body } = await scene.ask('GET', '/v2/sandboxes/usage');
    expect(body).toMatchObject({ ...used, sandbox_limit: 8, memory_bytes_limit: 4_000 });
    await scene.ask('POST', `${BOXES}/${name}/stop`);
    const stopped = (await scene.ask('GET', '/v2/sandboxes/usage')).body;
    expect(stopped).toMatchObject({ ...used, cpu_millicores: 0, memory_bytes: 0 });
  });

  it('count a box that asks for no size by the default sizes, which it has', async () => {
    await clear();
    const { id, vcpus, cpu_millicores, mem_bytes, fs_capacity_bytes } = await scene.create({ vcpus: null });
    expect({ vcpus, cpu_millicores, mem_bytes }).toEqual({ vcpus: 0.01, cpu_millicores: 10, mem_bytes: 5 });
    expect(fs_capacity_bytes).toBe(8_388_608);
    expect(scene.runtime.boxes.get(id)?.spec?.limits).toEqual({
      ...{ cpuMillicores: 10, memBytes: 5, fsCapacityBytes: 8_388_608 },
    });
    const { body } = await scene.ask('GET', '/v2/sandboxes/usage');
    expect(body).toMatchObject({ cpu_millicores: 10, memory_bytes: 5, storage_bytes: 8_388_608 });
    const given = await scene.create({ vcpus: 0.02, mem_bytes: 7 });
    expect(given).toMatchObject({ cpu_millicores: 20, mem_bytes: 7 });
  });

  it.each([
    ['sandbox', /sandbox.*(?:count|limit)/, {}],
    ['cpu', /cpu/, { cpu_millicores: 4_001 }],
    ['memory', /memory/, { mem_bytes: 4_001 }],
    ['storage', /storage/, { fs_capacity_bytes: 80_000_001 }],
  ])('that are used up are 429 with the word %s, and nothing is written', async (word, message, body) => {
    await clear();
    if (word === 'sandbox') for (let n = 0; n < 8; n += 1) await scene.ask('POST', BOXES);
    const before = (await scene.ask('GET', BOXES)).body.items.length;
    const response = await scene.ask('POST', BOXES, body);
    expect([response.status, response.body.detail.error]).toEqual([429, 'QuotaExceeded']);
    expect(response.body.detail.message).toMatch(message);
    expect((await scene.ask('GET', BOXES)).body.items).toHaveLength(before);
  });

  it('that are used up leave an event before the response, as every rejection of what is asked', async () => {
    await clear();
    const { db } = scene.api.database.owner;
    const rejections = async (): Promise<number> => {
      const events = await db.selectFrom('audit_events').select('record').execute();
      return events.filter(({ record }) => record.includes('"response_status_code":429')).length;
    };
    await scene.api.settle();
    const before = await rejections();
    expect((await scene.ask('POST', BOXES, { mem_bytes: 4_001 })).status).toBe(429);
    expect(await rejections()).toBe(before + 1);
  });

  it('hold when many ask at the same time, for changes, and for boxes that are started again', async () => {
    await clear();
    const asked = await Promise.all(
      Array.from({ length: 12 }, () => scene.ask('POST', BOXES, { mem_bytes: 1 })),
    );
    expect(asked.map(({ status }) => status).toSorted()).toEqual([
      ...Array(8).fill(201),
      ...Array(4).fill(429),
    ]);
    await clear();
    const [one, two] = [await scene.create({ mem_bytes: 3_000 }), await scene.create()];
    expect((await scene.ask('PATCH', `${BOXES}/${two.name}`, { mem_bytes: 2_000 })).status).toBe(429);
    await scene.ask('POST', `${BOXES}/${one.name}/stop`);
    expect((await scene.ask('PATCH', `${BOXES}/${two.name}`, { mem_bytes: 2_000 })).status).toBe(200);
    expect((await scene.ask('POST', `${BOXES}/${one.name}/start`)).status).toBe(429);
    expect((await scene.row(one.id))?.status).toBe('stopped');
  });
});

describe('what this version does not have', () => {
  it('is 501 in the form of the contract', async () => {
    await clear();
    const { name } = await scene.create();
    for (const [method, path] of [
      ['POST', `${BOXES}/${name}/snapshot`],
      ['POST', `${BOXES}/${name}/service-url`],
      ['GET', '/v2/sandboxes/registries'],
      ['POST', '/api/v2/sandboxes/registries'],
    ] as const) {
      const { status, body } = await scene.ask(
        method,
        path,
        method === 'POST' ? { name: 'x', port: 1 } : undefined,
      );
      expect([status, body.detail.error, typeof body.detail.message]).toEqual([
        501,
        'NotSupported',
        'string',
      ]);
    }
  });
});
