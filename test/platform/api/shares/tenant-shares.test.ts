// What one tenant uses up, another one still has: connections, requests that wait, streams, and a rate.
import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { z } from '../../../../src/base/schema.ts';
import { inOrganization } from '../../../../src/platform/api/access.ts';
import { mapList } from '../../../../src/platform/api/json-text.ts';
import { eventStream } from '../../../../src/platform/api/responses.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import { sharesOf } from '../../../../src/platform/api/shares/tenant-shares.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import {
  type Asked,
  createPlatformApi,
  type PlatformApi,
  type PlatformApiOptions,
} from '../../../support/platform-api.ts';

it.each([
  [1, 1, 1],
  [2, 1, 1],
  [3, 2, 2],
  [5, 4, 3],
  [8, 6, 5],
  [51, 39, 38],
])('of %i connections an organization may have %i, a key %i', (places, perOrganization, perKey) => {
  expect(sharesOf(places)).toEqual({ places, perOrganization, perKey });
});

type Tenant = { readonly id: string; readonly key: string; readonly workspace: string };
type Scene = AsyncDisposable & { readonly api: PlatformApi; readonly a: Tenant; readonly b: Tenant };

async function open(options: PlatformApiOptions = {}): Promise<Scene> {
  const api = await createPlatformApi(options);
  const addTenant = async (): Promise<Tenant> => {
    const id = await api.addOrganization();
    const workspace = await api.addWorkspace(id);
    return { id, workspace, key: await api.addServiceKey(id, 'ORGANIZATION_ADMIN') };
  };
  const [a, b] = [await addTenant(), await addTenant()];
  return { api, a, b, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() };
}

const create = ({ api }: Scene, { key, workspace }: Tenant): Promise<Asked> =>
  api.ask('POST', '/v2/listeners', {
    key,
    tenant: workspace,
    body: { compute_type: 'k8s', compute_id: randomUUID(), compute_config: {} },
  });

const signIn = ({ api }: Scene, { key }: Tenant, peer: string): Promise<Asked> =>
  api.ask('POST', '/login', {
    raw: new URLSearchParams({ key }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    peer,
  });

describe('connections', () => {
  it('for writes that one organization uses up hold up no other', async () => {
    await using scene = await open();
    const { api, a, b } = scene;
    expect((await create(scene, a)).status).toBe(201);
    const held = await api.database.owner.db.startTransaction().execute();
    await sql`select from audit_heads where organization_id = ${a.id} for update`.execute(held);
    // More than the platform has connections here.
    const waiting = Array.from({ length: 20 }, () => create(scene, a));
    for (let count = 0; count < 5; count += 1) expect((await create(scene, b)).status).toBe(201);
    await held.rollback().execute();
    const statuses = new Set((await Promise.all(waiting)).map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 201 && status !== 429)).toEqual([]);
  });

  it('for sign-ins with the keys of one organization hold up no other', async () => {
    await using scene = await open();
    const { api, a, b } = scene;
    expect((await create(scene, a)).status).toBe(201);
    const held = await api.database.owner.db.startTransaction().execute();
    await sql`select from audit_heads where organization_id = ${a.id} for update`.execute(held);
    const waiting = Array.from({ length: 12 }, (_, at) => signIn(scene, a, `192.0.2.${at}`));
    for (let count = 0; count < 5; count += 1) expect((await create(scene, b)).status).toBe(201);
    await held.rollback().execute();
    const statuses = new Set((await Promise.all(waiting)).map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 303 && status !== 429)).toEqual([]);
  });

  it('for reads that one organization uses up hold up neither others nor its own writes', async () => {
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let running = 0;
    const slow: Route = defineRoute({
      ...described('/slow'),
      responses: { 204: null },
      // Holds its connection, as a query does.
      handle: (call) =>
        call.db.connection().execute(async () => {
          running += 1;
          if (running === 5) begun.resolve();
          await released.promise;
        }),
    });
    await using scene = await open({ routes: [slow] });
    const { api, a, b } = scene;
    const waiting = Array.from({ length: 40 }, () => api.ask('GET', '/slow', { key: a.key }));
    await begun.promise;
    const read = await api.ask('GET', '/api/v1/workspaces', { key: b.key });
    expect([read.status, running]).toEqual([200, 5]);
    released.resolve();
    const statuses = new Set((await Promise.all(waiting)).map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 204 && status !== 429)).toEqual([]);
  });
});

describe('while another organization reads', () => {
  it('one that reads holds no more than a smaller share of the connections, and all its reads end', async () => {
    const [begun, reached, released] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    let other = '';
    let running = 0;
    let most = 0;
    const slow: Route = defineRoute({
      ...described('/slow'),
      responses: { 204: null },
      handle: (call) =>
        call.db.connection().execute(async (db) => {
          if (call.organizationId === other) {
            begun?.resolve();
            return released?.promise;
          }
          most = Math.max(most, (running += 1));
          if (running === 2) reached?.resolve();
          await reached?.promise;
          await sql`select`.execute(db);
          running -= 1;
        }),
    });
    await using scene = await open({ routes: [slow], limits: { organizationContendedReads: 2 } });
    const { api, a, b } = scene;
    other = b.id;
    const held = api.ask('GET', '/slow', { key: b.key });
    await begun?.promise;
    const responses = await Promise.all(
      Array.from({ length: 12 }, () => api.ask('GET', '/slow', { key: a.key })),
    );
    expect([most, ...new Set(responses.map(({ status }) => status))]).toEqual([2, 204]);
    released?.resolve();
    expect((await held).status).toBe(204);
  });
});

describe('a page of a long list', () => {
  it('is built in slices between which others are served, and at once where there are none', async () => {
    const made: string[] = [];
    const large = defineRoute({
      ...described('/large'),
      responses: { 200: z.strictObject({ items: z.array(z.int()) }) },
      handle: async () => ({
        body: {
          items: mapList([...Array(20).keys()], (row) => {
            made.push('member');
            return row;
          }),
        },
      }),
    });
    await using scene = await open({ routes: [large] });
    const { api, a, b } = scene;
    const read = async (): Promise<number> => {
      made.length = 0;
      const over = new AbortController();
      const reading = api.ask('GET', '/large', { key: a.key }).finally(() => over.abort());
      while (!over.signal.aborted) {
        await setImmediate();
        made.push('turn');
      }
      expect((await reading).body.items).toHaveLength(20);
      const members = made.slice(made.indexOf('member'), made.lastIndexOf('member'));
      return members.filter((each) => each === 'turn').length;
    };
    expect(await read()).toBe(0);
    expect((await api.ask('GET', '/api/v1/workspaces', { key: b.key })).status).toBe(200);
    expect(await read()).toBeGreaterThanOrEqual(2);
  });
});

function described(path: string) {
  return {
    method: 'GET',
    path,
    tag: 'Test',
    summary: 'a test',
    access: inOrganization('organization:manage'),
    tracking: { untracked: 'a test' },
  } as const;
}

describe('requests that wait for others', () => {
  it('are limited for a key and an organization, and fail no write of their own organization', async () => {
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let running = 0;
    const waits: Route = defineRoute({
      ...described('/waits'),
      responses: { 200: z.strictObject({ ok: z.boolean() }) },
      async prepare() {
        running += 1;
        if (running === 4) begun.resolve();
        await released.promise;
      },
      handle: async () => ({ body: { ok: true } }),
    });
    await using scene = await open({ routes: [waits], limits: { organizationPreparing: 8 } });
    const { api, a, b } = scene;
    const waiting = Array.from({ length: 5 }, () => api.ask('GET', '/waits', { key: a.key }));
    await begun.promise;
    for (const tenant of [a, b]) expect((await create(scene, tenant)).status).toBe(201);
    // The fifth found no place within two seconds, by the clock of the process.
    const first = await Promise.race(waiting);
    expect([first.status, running]).toEqual([429, 4]);
    expect(Number(first.headers.get('retry-after'))).toBeGreaterThanOrEqual(2);
    released.resolve();
    expect((await Promise.all(waiting)).map(({ status }) => status).toSorted()).toEqual([
      ...[200, 200, 200, 200, 429],
    ]);
  });
});

describe('requests that wait after their commit', () => {
  it('keep no other organization from waiting, before its write or after it', async () => {
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let running = 0;
    const ok = { responses: { 200: z.strictObject({ ok: z.boolean() }) } } as const;
    const waits: Route = defineRoute({
      ...described('/waits-after'),
      ...ok,
      handle: async () => ({ body: { ok: true } }),
      async respond(_, { body }) {
        running += 1;
        if (running === 2) begun.resolve();
        await released.promise;
        return { body };
      },
    });
    const prepares: Route = defineRoute({
      ...described('/prepares'),
      ...ok,
      prepare: async () => undefined,
      handle: async () => ({ body: { ok: true } }),
    });
    const limits = { preparing: 1, organizationPreparing: 1 };
    await using scene = await open({ routes: [waits, prepares], limits });
    const { api, a, b } = scene;
    const waiting = [a, b].map(({ key }) => api.ask('GET', '/waits-after', { key }));
    const rejected = Promise.race(waiting).then(({ status }) => status);
    expect(await Promise.race([begun.promise, rejected])).toBeUndefined();
    expect((await api.ask('GET', '/prepares', { key: b.key })).status).toBe(200);
    released.resolve();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('streams', () => {
  it('are limited for a key and an organization', async () => {
    const route: Route = defineRoute({
      ...described('/streams'),
      responses: { 200: eventStream() },
      handle: async () => ({}),
      async *stream() {
        yield { event: 'one', data: {}, id: '0' };
      },
    });
    await using scene = await open({ routes: [route], limits: { organizationStreams: 2 } });
    const { api, a, b } = scene;
    const ask = ({ key }: Tenant): Promise<Asked> => api.ask('GET', '/streams', { key, isLeftOpen: true });
    expect((await ask(a)).status).toBe(200);
    const rejected = await ask(a);
    expect([rejected.status, Number(rejected.headers.get('retry-after'))]).toEqual([429, 1]);
    expect((await ask(b)).status).toBe(200);
  });
});

describe('bytes of bodies', () => {
  const MIB = 1024 * 1024;
  const large: Route = defineRoute({
    ...described('/large'),
    method: 'POST',
    body: z.strictObject({ text: z.string() }),
    bodyRules: { maxBytes: 4 * MIB, codings: ['gzip'] },
    responses: { 204: null },
    handle: async () => {},
  });
  const text = JSON.stringify({ text: randomBytes(1.5 * MIB).toString('hex') });

  it.each([
    ['that are longer than those of other routes', text, {}],
    ['that become longer', gzipSync(text), { 'content-encoding': 'gzip' }],
  ])('are limited for a key by what the process may hold of them: those %s', async (_, bytes, headers) => {
    await using scene = await open({ routes: [large], limits: { organizationIngestBytes: 8 * MIB } });
    const { api, a, b } = scene;
    const released = Promise.withResolvers<void>();
    const begun: string[] = [];
    const ask = (name: string, { key }: Tenant): Promise<Asked> => {
      const raw = new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            begun.push(name);
            await released.promise;
            controller.enqueue(Buffer.from(bytes));
            controller.close();
          },
        },
        { highWaterMark: 0 },
      );
      const sent = { 'content-length': String(bytes.length), ...headers };
      return api.ask('POST', '/large', { key, raw, headers: sent });
    };
    const first = ask('first', a);
    while (begun.length < 1) await setImmediate();
    const second = ask('second', a);
    const other = ask('other', b);
    while (!begun.includes('other')) await setImmediate();
    // Requests that come later are served: the second one waits.
    for (let count = 0; count < 3; count += 1)
      expect((await api.ask('GET', '/api/v1/orgs/current', { key: a.key })).status).toBe(200);
    expect(begun).toEqual(['first', 'other']);
    released.resolve();
    const statuses = (await Promise.all([first, second, other])).map(({ status }) => status);
    expect(statuses).toEqual([204, 204, 204]);
  });
});

describe('bytes of responses', () => {
  const PAGE = 1024 * 1024;
  const page = defineRoute({
    ...described('/page'),
    responses: { 200: z.strictObject({ lines: z.array(z.string()) }) },
    handle: async () => ({ body: { lines: Array.from({ length: 16 }, () => 'x'.repeat(PAGE / 16)) } }),
  });

  it('that a client does not read are limited for its key, and those of others are not', async () => {
    await using scene = await open({ routes: [page], limits: { organizationResponseBytes: 5 * PAGE } });
    const { api, a, b } = scene;
    const ask = async ({ key }: Tenant, isLeftOpen: boolean): Promise<Asked> =>
      api.ask('GET', '/page', { key, isLeftOpen });
    for (let count = 0; count < 4; count += 1) expect((await ask(a, false)).status).toBe(200);
    for (let count = 0; count < 2; count += 1) expect((await ask(a, true)).status).toBe(200);
    const rejected = await ask(a, true);
    expect([rejected.status, rejected.headers.has('retry-after')]).toEqual([429, true]);
    expect(rejected.body.detail).toContain('bytes of responses that are not read');
    expect((await api.ask('GET', '/api/v1/orgs/current', { key: a.key })).status).toBe(200);
    expect((await ask(b, true)).status).toBe(200);
  });

  it('wait until the client has read those before', async () => {
    await using scene = await open({ routes: [page], limits: { organizationResponseBytes: 3 * PAGE } });
    const { api, a } = scene;
    const statuses = await Promise.all(
      Array.from({ length: 12 }, async () => (await api.ask('GET', '/page', { key: a.key })).status),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});

describe('the rate', () => {
  it('of a key is limited, also of rejected requests, and says when there is a token', async () => {
    await using scene = await open({ limits: { keyRequestsPerS: 1 } });
    const { api, a, b } = scene;
    const viewer = await api.addMemberKey(a.id, 'ORGANIZATION_USER');
    const statuses: number[] = [];
    for (let count = 0; count < 3; count += 1)
      statuses.push((await api.ask('GET', '/api/v1/audit-logs', { key: viewer })).status);
    expect(statuses).toEqual([403, 403, 429]);
    const { status, headers } = await api.ask('GET', '/api/v1/workspaces', { key: viewer });
    expect([status, headers.get('retry-after')]).toEqual([429, '1']);
    for (const { key } of [a, b])
      expect((await api.ask('GET', '/api/v1/workspaces', { key })).status).toBe(200);
  });
});
