// Requests at the gate: whom each kind of access lets in, what their handlers decide, and what becomes of handlers that fail.
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Auth, HTTPException } from '@langchain/langgraph-sdk/auth';
import '../../../../src/platform/agent-server/access/handler-access.ts';
import '../../../../src/platform/agent-server/access/handler-calls.ts';
import '../../../../src/platform/agent-server/access/handler-turns.ts';
import '../../../../src/platform/agent-server/access/key-access.ts';
import '../../../../src/platform/agent-server/access/keys.ts';
import '../../../../src/platform/agent-server/access/loopback.ts';
import '../../../../src/platform/agent-server/access/open-access.ts';
import '../../../../src/platform/agent-server/access/studio.ts';
import type { Gate } from '../../../../src/platform/agent-server/access/gate.ts';
import { openKeyFile } from '../../../../src/platform/agent-server/access/key-file.ts';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import { createLog } from '../../../../src/base/log.ts';
import { z } from '../../../../src/base/schema.ts';
import { defineRoute, type Route } from '../../../../src/platform/api/route.ts';
import { createTestGate, handlerGate, openGate, ownerAuth } from '../../../support/agent-gate.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createScratch, type Scratch } from '../../../support/scratch.ts';

const KEY = 'a-key-of-the-file-0001';
const STUDIO = { 'x-auth-scheme': 'langsmith' };

/** What the handlers of `/changing` do. */
let authenticate: (request: Request) => unknown = () => 'ada';
let authorize: (given: { value: Record<string, unknown>; user: object }) => unknown = () => true;
const logged: string[] = [];
const changing = new Auth()
  .authenticate(((request: Request) => authenticate(request)) as never)
  .on('*', ((given: never) => authorize(given)) as never);

let api: PlatformApi;
let scratch: Scratch;
let keyFile: string;

function routesOf(path: string, gate: Gate, access = gate.access): readonly Route[] {
  const shared = {
    ...{ path: `/${path}`, tag: 'Test', access, tracking: { untracked: 'a test' } },
    responses: { 200: z.record(z.string(), z.unknown()) },
  } as const;
  return [
    defineRoute({
      ...shared,
      method: 'GET',
      summary: 'who was let in',
      handle: async ({ user, isStudio, headers }) => ({ body: { user: user ?? null, isStudio, headers } }),
    }),
    defineRoute({
      ...shared,
      method: 'POST',
      summary: 'what was authorized',
      body: z.object({ metadata: z.record(z.string(), z.unknown()).optional() }),
      prepare: (call) => gate.authorize(call, 'threads:create', { metadata: call.body.metadata }),
      handle: async (_, { filter, value }) => ({ body: { filter: filter ?? null, value } }),
    }),
  ];
}

beforeAll(async () => {
  scratch = await createScratch();
  keyFile = join(scratch.path, 'keys');
  await writeFile(keyFile, `# keys\n\n${KEY}\n`, { mode: 0o600 });
  const keys = await openKeyFile(keyFile, createLog('info', { write: (line) => void logged.push(line) }));
  const onLine = (line: string): void => void logged.push(line);
  const handlers = handlerGate(changing, { keys, onLine });
  const impatient = handlerGate(changing, { onLine, handlerTimeoutMs: 500 });
  const loopback = { access: 'handler', isStudio: true } as const;
  const cors = {
    ...{ originPattern: undefined, methods: undefined, headers: undefined, exposed: [] },
    ...{ allowsCredentials: false, maxAgeSeconds: 0 },
  };
  const localGate = (origins: readonly string[]): Gate =>
    createTestGate({
      settings: { access: 'none', isLoopback: true, isStudio: false },
      http: { cors: { ...cors, origins } },
    });
  const lost = { call: () => Promise.reject(new WorkerError('lost')) };
  api = await createPlatformApi({
    routes: [
      ...routesOf('open', openGate()),
      ...routesOf('loopback', localGate(['https://app.example.com'])),
      ...routesOf('loopback-of-all', localGate(['*'])),
      ...routesOf('keys', createTestGate({ settings: { access: 'key_file', isStudio: false }, keys })),
      ...routesOf('owners', handlerGate(ownerAuth())),
      ...routesOf('changing', handlers),
      ...routesOf('impatient', impatient),
      ...routesOf('app', handlers, handlers.appAccess),
      ...routesOf('studio', handlerGate(ownerAuth(), { settings: loopback })),
      ...routesOf(
        'studio-of-page',
        handlerGate(ownerAuth(), {
          settings: loopback,
          http: { cors: { ...cors, origins: ['*', 'https://studio.example.com'] } },
        }),
      ),
      ...routesOf('no-studio', handlerGate(ownerAuth(), { settings: loopback, keys, disableStudio: true })),
      ...routesOf('keyless', handlerGate(ownerAuth())),
      ...routesOf('lost', handlerGate(ownerAuth(), { workers: lost })),
    ],
  });
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await scratch?.[Symbol.asyncDispose]();
});

const get = (path: string, options: Ask = {}): Promise<Asked> => api.ask('GET', path, options);
const post = (path: string, metadata?: object, options: Ask = {}): Promise<Asked> =>
  api.ask('POST', path, { ...options, body: { metadata } });

describe('without keys and handlers', () => {
  it('everybody is let in, and the fields for runs are those of the rules', async () => {
    const headers = { 'x-team': 'one', 'x-api-key': KEY, 'user-agent': 'test', accept: '*/*' };
    const { status, body } = await get('/open', { headers });
    expect([status, body]).toEqual([
      200,
      { user: null, isStudio: false, headers: { 'x-team': 'one', 'user-agent': 'test' } },
    ]);
    expect((await post('/open', { a: 1 })).body).toEqual({ filter: null, value: { metadata: { a: 1 } } });
  });
});

describe('without keys and handlers on loopback', () => {
  const asked = async (path: string, headers: Record<string, string>) => {
    const { status, body } = await get(path, { headers, peer: '127.0.0.1' });
    return status === 200 ? 200 : `${status} ${body.detail}`;
  };

  it('a request must name a host of loopback', async () => {
    for (const host of ['localhost:2024', '127.0.0.1:2024', '[::1]:2024'])
      expect(await asked('/loopback', { host })).toBe(200);
    for (const path of ['/loopback', '/loopback-of-all'])
      expect(await asked(path, { host: 'rebound.example.com:2024' })).toContain('403 Host must be localhost');
  });

  it('a page must be of loopback or of an origin that is configured', async () => {
    const from = (path: string, origin: string) => asked(path, { host: 'localhost:2024', origin });
    for (const origin of ['http://localhost:3000', 'https://app.example.com'])
      expect(await from('/loopback', origin)).toBe(200);
    for (const origin of ['https://example.com', 'null', 'http://localhost.example.com'])
      expect(await from('/loopback', origin)).toContain('403 Pages of this origin may not call');
    expect(await from('/loopback-of-all', 'https://example.com')).toBe(200);
  });
});

describe('a key file', () => {
  it('lets in whoever has a key, by either field, as the owner', async () => {
    const owner = { identity: 'owner', display_name: 'owner', is_authenticated: true, permissions: [] };
    for (const options of [{ key: KEY }, { bearer: KEY }, { key: KEY, bearer: KEY }])
      expect((await get('/keys', options)).body).toMatchObject({ user: owner });
    expect((await post('/keys', undefined, { key: KEY })).body).toEqual({ filter: null, value: {} });
  });

  it.each<readonly [string, Ask]>([
    ['no key', {}],
    ['another key', { key: `${KEY}2` }],
    ['a part of the key', { key: KEY.slice(0, -1) }],
    ['two keys that differ', { key: KEY, bearer: `${KEY}2` }],
    ['a comment of the file', { key: '# keys' }],
    ['another scheme', { headers: { authorization: `Basic ${KEY}` } }],
    ['the field of the studio', { headers: STUDIO }],
  ])('rejects %s', async (_, options) => {
    const { status, body } = await get('/keys', options);
    expect([status, body.code]).toEqual([401, 'unauthenticated']);
  });

  it('rejects many wrong keys of one address as too many, and a right one never', async () => {
    const statuses = new Set<number>();
    for (let n = 0; n < 35; n += 1)
      statuses.add((await get('/keys', { key: `wrong-key-${n}`, peer: '192.0.2.7' })).status);
    expect([...statuses]).toEqual([401, 429]);
    expect((await get('/keys', { key: KEY, peer: '192.0.2.7' })).status).toBe(200);
  });
});

describe('the authentication handler', () => {
  it('decides who is let in, and its user is what the route gets', async () => {
    authenticate = (request) => ({ identity: 'ada', path: new URL(request.url).pathname, org: { id: 1 } });
    expect((await get('/changing')).body.user).toEqual({
      ...{ identity: 'ada', display_name: 'ada', is_authenticated: true, permissions: [] },
      ...{ path: '/changing', org: { id: 1 } },
    });
  });

  it('rejects with its status, its fields and {detail}', async () => {
    authenticate = () => {
      const headers = {
        ...{ 'WWW-Authenticate': 'Bearer realm="x"', 'X-Hint': 'one', 'Content-Length': '7' },
        ...{ Connection: 'close', 'Transfer-Encoding': 'chunked', 'Content-Type': 'text/html' },
        ...{ 'Set-Cookie': 'sid=1', Server: 'internal', 'X-Accel-Redirect': '/etc' },
      };
      throw new HTTPException(401, { message: 'who are you?', headers });
    };
    const { status, headers, body } = await get('/changing');
    expect([status, body.detail]).toEqual([401, 'who are you?']);
    expect(headers.get('www-authenticate')).toBe('Bearer realm="x"');
    expect(headers.get('x-hint')).toBe('one');
    expect(headers.get('content-type')).toBe('application/json');
    for (const name of ['transfer-encoding', 'set-cookie', 'server', 'x-accel-redirect'])
      expect(headers.get(name), name).toBeNull();
    for (const [chosen, code] of [
      [402, 'unusable'],
      [429, 'too_many'],
      [503, 'unavailable'],
    ]) {
      authenticate = () => Promise.reject(new HTTPException(chosen as 402, { message: 'no' }));
      expect(await get('/changing')).toMatchObject({ status: chosen, body: { detail: 'no', code } });
    }
  });

  it.each<readonly [string, () => unknown, number]>([
    ['throws something else', () => Promise.reject(new TypeError(`no such column ${KEY}`)), 500],
    [
      'throws the error of an HTTP client',
      () => Promise.reject(Object.assign(new Error(KEY), { status: 401, headers: { 'x-internal': KEY } })),
      500,
    ],
    ['returns no identity', () => ({ name: 'ada' }), 500],
    ['returns nothing', () => undefined, 500],
    ['returns the identity of the studio', () => 'langgraph-studio-user', 403],
    ['returns a user of the kind of the studio', () => ({ identity: 'a', kind: 'StudioUser' }), 403],
    ['does not respond', () => new Promise(() => undefined), 503],
  ])('lets nobody in that %s, and nothing of the request into the log', async (_, handler, status) => {
    authenticate = handler;
    logged.length = 0;
    const asked = await get(status === 503 ? '/impatient' : '/changing', { bearer: KEY });
    expect([asked.status, typeof asked.body.detail]).toEqual([status, 'string']);
    expect(asked.text + logged.join('')).not.toContain(KEY);
    if (status === 500) expect(logged.join('')).toContain('authenticate');
  });

  it('lets nobody in when its worker is lost', async () => {
    expect(await get('/lost', { bearer: 'ada' })).toMatchObject({
      status: 503,
      body: { code: 'unavailable' },
    });
  });

  it('that waits for long keeps nobody of another address waiting', async () => {
    const released = Promise.withResolvers<string>();
    authenticate = (request) => (request.headers.has('x-slow') ? released.promise : 'eve');
    const slow = Array.from({ length: 20 }, () => get('/changing', { headers: { 'x-slow': '1' } }));
    expect((await get('/changing', { peer: '192.0.2.9' })).status).toBe(200);
    const key = await api.addServiceKey(await api.addOrganization(), 'ORGANIZATION_ADMIN');
    expect((await get('/api/v1/orgs/current', { key })).status).not.toBe(503);
    released.resolve('ada');
    expect(new Set((await Promise.all(slow)).map(({ status }) => status))).toEqual(new Set([200]));
  });

  it('is not asked for the routes of the application, unless that is configured', async () => {
    authenticate = () => Promise.reject(new HTTPException(401));
    expect((await get('/app')).status).toBe(200);
  });
});

describe('the authorization handler', () => {
  it('gives a filter and metadata, and gets metadata that was left out as null', async () => {
    authenticate = () => 'ada';
    const seen: unknown[] = [];
    authorize = ({ value }) => {
      seen.push(structuredClone(value));
      (value as { metadata?: object | null }).metadata ??= {};
      Object.assign(value['metadata'] as object, { owner: 'ada' });
      return { owner: 'ada', tags: { $contains: ['a'] } };
    };
    expect((await post('/changing')).body).toEqual({
      filter: [
        { key: 'owner', operator: 'equals', value: 'ada' },
        { key: 'tags', operator: 'contains', value: ['a'] },
      ],
      value: { metadata: { owner: 'ada' } },
    });
    expect((await post('/changing', { a: 1 })).body.value).toEqual({ metadata: { a: 1, owner: 'ada' } });
    expect(seen).toEqual([{ metadata: null }, { metadata: { a: 1 } }]);
  });

  it('that leaves metadata as it was sent lets nobody write in the name of another', async () => {
    authenticate = () => 'eve';
    authorize = () => ({ owner: 'eve', tags: { $contains: 'a' } });
    for (const owner of ['ada', null, ['eve'], { $eq: 'eve' }]) {
      const { status, body } = await post('/changing', { owner });
      expect([status, body.detail]).toEqual([403, expect.stringContaining('metadata.owner')]);
    }
    for (const metadata of [{ owner: 'eve' }, { tags: [] }, { of: { owner: 'ada' } }, {}])
      expect((await post('/changing', metadata)).body.value).toEqual({ metadata });
  });

  it.each<readonly [string, () => unknown, number, string]>([
    ['false', () => false, 403, 'Forbidden'],
    ['an exception', () => Promise.reject(new HTTPException(404, { message: 'gone' })), 404, 'gone'],
    ['an unknown operator', () => ({ owner: { $ne: 'ada' } }), 500, 'threads:create'],
    ['an operator on rows', () => ({ $or: [] }), 500, 'threads:create'],
    ['undefined in a filter', () => ({ owner: undefined }), 500, 'threads:create'],
    ['a text', () => 'yes', 500, 'threads:create'],
    ['an error', () => Promise.reject(new Error('x')), 500, 'threads:create'],
    ['no response', () => new Promise(() => undefined), 503, 'threads:create'],
  ])('that gives %s lets nobody go on', async (_, handler, status, detail) => {
    authenticate = () => 'ada';
    authorize = handler;
    const asked = await post(status === 503 ? '/impatient' : '/changing');
    expect([asked.status, asked.body.detail]).toEqual([status, expect.stringContaining(detail)]);
  });

  it.each<readonly [string, unknown]>([
    ['a list', ['a']],
    ['a text', 'a'],
    ['U+0000', { owner: 'a\0' }],
  ])('that puts %s into the metadata lets nobody go on', async (_, metadata) => {
    authorize = ({ value }) => void Object.assign(value, { metadata });
    expect((await post('/changing')).status).toBe(500);
  });
});

describe('the studio', () => {
  const outside = { headers: STUDIO, peer: '192.0.2.1' };
  const local = { headers: { ...STUDIO, host: '127.0.0.1:2024' }, peer: '127.0.0.1' };
  const isStudio = async (path: string, options: Ask) => (await get(path, options)).body.isStudio === true;

  it('is let in by a valid key alone', async () => {
    authenticate = () => 'ada';
    expect(await isStudio('/changing', { ...outside, key: KEY })).toBe(true);
    expect(await isStudio('/changing', { ...outside, key: `${KEY}2` })).toBe(false);
    expect(await isStudio('/changing', outside)).toBe(false);
    expect(await isStudio('/changing', { ...local, bearer: KEY })).toBe(false);
    expect(await isStudio('/keyless', { ...local, key: KEY })).toBe(false);
  });

  it('is let in on loopback where the operator has allowed it, at both ends', async () => {
    expect(await isStudio('/studio', local)).toBe(true);
    const page = { ...local, headers: { ...STUDIO, host: 'rebound.example.com:2024' } };
    const forwarded = { ...local, headers: { ...local.headers, 'x-forwarded-for': '192.0.2.1' } };
    for (const options of [outside, page, forwarded, { ...local, headers: { host: '127.0.0.1:2024' } }])
      expect(await isStudio('/studio', options)).toBe(false);
  });

  it('is no page of any origin, but of loopback and of those that are configured', async () => {
    const from = (origin: string): Ask => ({ ...local, headers: { ...local.headers, origin } });
    const asked = async (origin: string) => isStudio('/studio-of-page', from(origin));
    expect(await asked('http://localhost:3000')).toBe(true);
    expect(await asked('https://studio.example.com')).toBe(true);
    for (const origin of ['https://example.com', 'null', '*', 'http://localhost.example.com'])
      expect([origin, await asked(origin)]).toEqual([origin, false]);
  });

  it('is let in by nothing where it is disabled', async () => {
    expect(await isStudio('/no-studio', { ...local, key: KEY })).toBe(false);
    expect((await get('/no-studio', local)).status).toBe(401);
  });

  it('is a user for the handlers, who decide', async () => {
    authorize = ({ user }) => ('kind' in user && user.kind === 'StudioUser' ? {} : { owner: 'ada' });
    expect((await post('/changing', undefined, { ...outside, key: KEY })).body.filter).toBeNull();
    expect((await post('/changing')).body.filter).not.toBeNull();
  });
});

it('a user has a rate that others do not use up, also with a name of any length', async () => {
  const limits = { keyRequestsPerS: 1, organizationRequestsPerS: 1 };
  await using busy = await createPlatformApi({
    routes: routesOf('owners', handlerGate(ownerAuth())),
    limits,
  });
  const ask = async (bearer: string) => (await busy.ask('GET', '/owners', { bearer })).status;
  const [ada, other] = ['a'.repeat(10_000), `${'a'.repeat(9_999)}b`];
  expect([await ask(ada), await ask(ada), await ask(ada)]).toEqual([200, 200, 429]);
  expect([await ask('eve'), await ask(other)]).toEqual([200, 200]);
});

describe('the key file', () => {
  it('is read again when it has changed, and lets nobody in while it cannot be read', async () => {
    const other = 'a-key-of-the-file-0002';
    await writeFile(keyFile, `${other}\n`);
    expect((await get('/keys', { key: other })).status).toBe(200);
    expect((await get('/keys', { key: KEY })).status).toBe(401);
    expect((await post('/keys', {}, { key: KEY })).status).toBe(401);
    await writeFile(keyFile, 'short\n');
    expect((await get('/keys', { key: other })).status).toBe(503);
    await writeFile(keyFile, `${other}\n`);
    await chmod(keyFile, 0o604);
    expect((await get('/keys', { key: other })).status).toBe(503);
    await chmod(keyFile, 0o600);
    expect((await get('/keys', { key: other })).status).toBe(200);
  });
});
