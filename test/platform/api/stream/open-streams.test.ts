// Streams that outlive what they were authorized by: they are confirmed together, and end with it.
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DomainError } from '../../../../src/base/domain-error.ts';
import { EndedEarly } from '../../../../src/base/http/http-response.ts';
import { createLog } from '../../../../src/base/log.ts';
import { type Access, type Grant, inOrganization, inWorkspace } from '../../../../src/platform/api/access.ts';
import { defaultLimits } from '../../../../src/platform/api/limits.ts';
import { createApi } from '../../../../src/platform/api/pipeline.ts';
import { byteStream, eventStream } from '../../../../src/platform/api/responses.ts';
import { defineRoute, type Streaming } from '../../../../src/platform/api/route.ts';
import { type Admission, createAdmission } from '../../../../src/platform/api/shares/admission.ts';
import {
  createOpenStreams,
  type OpenStream,
  type OpenStreams,
  type OpenStreamsOptions,
} from '../../../../src/platform/api/stream/open-streams.ts';
import { createApiRequest } from '../../../support/api-request.ts';
import { onePool } from '../../../support/platform-database.ts';
import { createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';

const lines: string[] = [];
const log = createLog('info', { write: (line) => void lines.push(line) });

/** One event, then nothing until the stream is ended. */
async function* wait<T>({ signal }: Streaming, first: T): AsyncGenerator<T> {
  yield first;
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
}

const shared = { method: 'GET', tag: 'Test', summary: 'A test', tracking: { untracked: 'a test' } } as const;
const routes = [
  defineRoute({
    ...{ ...shared, path: '/organization', access: inOrganization('organization:read') },
    responses: { 200: eventStream() },
    handle: async () => ({}),
    stream: (call) => wait(call, { data: 1 }),
  }),
  defineRoute({
    ...{ ...shared, path: '/workspace', access: inWorkspace('sandboxes:read') },
    responses: { 200: eventStream() },
    handle: async () => ({}),
    stream: (call) => wait(call, { data: 1 }),
  }),
  defineRoute({
    ...{ ...shared, path: '/bytes', access: inOrganization('organization:read') },
    responses: { 200: byteStream('text/plain') },
    handle: async () => ({}),
    stream: (call) => wait(call, Buffer.from('a')),
  }),
];

const REVOKED =
  'event: error\ndata: {"error":"unauthenticated","message":"The access to this stream was revoked"}\n\n';

describe('a stream of the platform', () => {
  let api: PlatformApi;
  let admission: Admission;
  let streams: OpenStreams;
  let organization: string;
  let workspace: string;
  beforeAll(async () => {
    api = await createPlatformApi();
    const { authenticator, database } = api;
    admission = createAdmission({
      pools: onePool(database.store),
      authenticator,
      log,
      limits: defaultLimits,
    });
    streams = admission.streams;
    organization = await api.addOrganization();
    workspace = await api.addWorkspace(organization);
  });
  afterAll(() => api[Symbol.asyncDispose]());

  /** The stream after its first piece. */
  async function open(path: string, key: string) {
    const { authenticator, database } = api;
    const parts = { pools: onePool(database.store), authenticator, log, limits: defaultLimits, admission };
    const left = new AbortController();
    const headers = { 'x-api-key': key, ...(path === '/workspace' ? { 'x-tenant-id': workspace } : {}) };
    const { status, body } = await createApi(
      routes,
      parts,
    )(createApiRequest(path, { headers, left: left.signal }));
    expect(status).toBe(200);
    const pieces = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    expect((await pieces.next()).done).toBe(false);
    const next = async (): Promise<string> => {
      const { done, value } = await pieces.next();
      return done === true ? 'ended' : Buffer.from(value).toString();
    };
    return { next, leave: () => left.abort(new Error('left')) };
  }

  it('ends with an error when its key is deleted, and the others go on', async () => {
    const [key, another] = [
      await api.addServiceKey(organization, 'ORGANIZATION_ADMIN'),
      await api.addServiceKey(organization, 'ORGANIZATION_ADMIN'),
    ];
    const gone = [await open('/organization', key), await open('/workspace', key)];
    const bytes = await open('/bytes', key);
    const kept = await open('/organization', another);
    await streams.sweep();
    const { keyId } = await api.authenticator.authenticate(api.database.store.db, {
      ...{ apiKey: key, bearer: undefined, peer: '192.0.2.1' },
    });
    await api.database.owner.db.deleteFrom('api_keys').where('id', '=', keyId).execute();
    await streams.sweep();
    for (const stream of gone) expect([await stream.next(), await stream.next()]).toEqual([REVOKED, 'ended']);
    // A client must not take the part for the whole: the server cuts the connection.
    const cut = await bytes.next().catch((error: unknown) => error);
    expect(cut).toBeInstanceOf(EndedEarly);
    expect(String(cut)).toContain('revoked');
    const next = kept.next();
    kept.leave();
    expect(await next).toBe('ended');
    expect(lines.filter((line) => line.includes('a stream was ended') && line.includes(keyId))).toHaveLength(
      3,
    );
  });

  it.each(['the membership', 'the workspace', 'the role'])(
    'ends when %s of its caller is gone',
    async (what) => {
      const { db } = api.database.owner;
      const id = await api.addWorkspace(organization);
      const key = await api.addMemberKey(organization, 'ORGANIZATION_USER', { id, role: 'WORKSPACE_ADMIN' });
      const { authenticator, database } = api;
      const { userId } = await authenticator.authenticate(database.store.db, {
        ...{ apiKey: key, bearer: undefined, peer: '192.0.2.1' },
      });
      workspace = id;
      const stream = await open('/workspace', key);
      await streams.sweep();
      if (what === 'the membership')
        await db.deleteFrom('organization_members').where('user_id', '=', userId!).execute();
      else if (what === 'the workspace') await db.deleteFrom('workspaces').where('id', '=', id).execute();
      else
        await db
          .updateTable('workspace_members')
          .set({ role: 'NONE' })
          .where('user_id', '=', userId!)
          .execute();
      await streams.sweep();
      expect([await stream.next(), await stream.next()]).toEqual([REVOKED, 'ended']);
    },
  );
});

describe('a route that takes access away', () => {
  let api: PlatformApi;
  let organization: string;
  let workspace: string;
  let admin: string;
  beforeAll(async () => {
    api = await createPlatformApi({ routes });
    organization = await api.addOrganization();
    [workspace] = await Promise.all([api.addWorkspace(organization), api.addWorkspace(organization)]);
    admin = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const keys = '/api/v1/orgs/current/service-keys';
  const members = '/api/v1/orgs/current/members';
  const inside = '/api/v1/workspaces/current/members';
  const post = async (path: string, body: unknown) =>
    (await api.ask('POST', path, { key: admin, tenant: workspace, body })).body;
  const addMember = async (role: string) => {
    const { id, user_id } = await post(members, { email: `${randomUUID()}@example.test`, role });
    const { key } = await post('/api/v1/orgs/current/personal-access-tokens', { user_id });
    return { id, user_id, key };
  };
  const rows: readonly (readonly [
    string,
    string,
    () => Promise<readonly [string, string, string, unknown?]>,
  ])[] = [
    [
      'deletes the key',
      '/organization',
      async () => {
        const { id, key } = await post(keys, {});
        return [key, 'DELETE', `${keys}/${id}`];
      },
    ],
    [
      'removes the member',
      '/organization',
      async () => {
        const { id, key } = await addMember('ORGANIZATION_USER');
        return [key, 'DELETE', `${members}/${id}`];
      },
    ],
    [
      'changes the role of the member',
      '/workspace',
      async () => {
        await addMember('ORGANIZATION_ADMIN');
        const { id, key } = await addMember('ORGANIZATION_ADMIN');
        return [key, 'PATCH', `${members}/${id}`, { role: 'ORGANIZATION_USER' }];
      },
    ],
    [
      'removes the member from the workspace',
      '/workspace',
      async () => {
        const { key, user_id } = await addMember('ORGANIZATION_USER');
        const { id } = await post(inside, { user_id, role: 'WORKSPACE_ADMIN' });
        return [key, 'DELETE', `${inside}/${id}`];
      },
    ],
    [
      'deletes the workspace',
      '/workspace',
      async () => [
        await api.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace),
        ...(['DELETE', `/api/v1/workspaces/${workspace}`] as const),
      ],
    ],
  ];

  it.each(rows)('ends the streams that had it, in its process at once: it %s', async (_, path, prepare) => {
    const [key, method, target, body] = await prepare();
    const headers = { 'x-api-key': key, ...(path === '/workspace' ? { 'x-tenant-id': workspace } : {}) };
    const response = await api.api(createApiRequest(path, { headers }));
    const pieces = (response.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    expect(String((await pieces.next()).value)).toContain('data: 1');
    const next = pieces.next();
    const revoked = await api.ask(method, target, { key: admin, tenant: workspace, body });
    expect(revoked.status).toBe(200);
    // Without a sweep a heartbeat comes first.
    expect(Buffer.from((await next).value ?? '').toString()).toBe(REVOKED);
  });

  it('says so', () => {
    const said = api.routes.filter(({ revokes }) => revokes === true);
    // The transaction of a tracked route has the lock and the notice of a revocation.
    expect(said.every(({ tracking }) => 'operation' in tracking)).toBe(true);
    expect(said.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      'DELETE /api/v1/api-key/current/{pat_id}',
      'DELETE /api/v1/api-key/{api_key_id}',
      'DELETE /api/v1/orgs/current/members/{identity_id}',
      'DELETE /api/v1/orgs/current/personal-access-tokens/{pat_id}',
      'DELETE /api/v1/orgs/current/service-keys/{api_key_id}',
      'DELETE /api/v1/workspaces/current/members/{identity_id}',
      'DELETE /api/v1/workspaces/{workspace_id}',
      'DELETE /v1/sandboxes/{sandbox}/tokens/{token_id}',
      'DELETE /v2/sandboxes/boxes/{name}/service-urls/{service_url_id}',
      'PATCH /api/v1/orgs/current/members/{identity_id}',
      'PATCH /api/v1/workspaces/current/members/{identity_id}',
    ]);
  });
});

describe('the open streams of a process', () => {
  afterEach(() => vi.useRealTimers());

  type Fake = {
    readonly access: Access;
    asked: (readonly OpenStream[])[];
    revoked: Set<OpenStream>;
    isAway: boolean;
  };
  function createFake(): Fake {
    const fake: Fake = {
      ...{ asked: [], revoked: new Set(), isAway: false },
      access: {
        ...inOrganization('organization:read'),
        // oxlint-disable-next-line typescript/no-explicit-any
        async findRevoked(_: unknown, given: readonly any[]): Promise<any> {
          fake.asked.push(given);
          if (fake.isAway) throw new DomainError('unavailable', 'away');
          return fake.revoked;
        },
      } as unknown as Access,
    };
    return fake;
  }
  const create = (over: Partial<OpenStreamsOptions> = {}): OpenStreams =>
    createOpenStreams({ pools: { authentication: { db: {} } }, authenticator: {}, log, ...over } as never);
  const stream = (access: Access): OpenStream & { readonly reasons: DomainError[] } => {
    const reasons: DomainError[] = [];
    const granted: Grant = {};
    return {
      ...{ access, granted, reasons, requestId: 'a' },
      toEntry: () => ({}) as never,
      end: (reason) => void reasons.push(reason),
    };
  };

  it('are confirmed by one query, every half minute while there are any', async () => {
    // The API of the tests above, which is being closed, has timeouts of its own.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const fake = createFake();
    const streams = create();
    const all = Array.from({ length: 500 }, () => stream(fake.access));
    const added = all.map((one) => streams.add(one));
    await vi.advanceTimersByTimeAsync(90_000);
    expect(fake.asked.map(({ length }) => length)).toEqual([500, 500, 500]);
    fake.revoked.add(all[7]!);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(all.filter(({ reasons }) => reasons.length > 0)).toEqual([all[7]]);
    for (const one of added) one[Symbol.dispose]();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('are confirmed again where a sweep is asked for while one runs, and at most once', async () => {
    const fake = createFake();
    const streams = create();
    using _ = streams.add(stream(fake.access));
    const sweeps = [streams.sweep(), streams.sweep(), streams.sweep()];
    await Promise.all(sweeps);
    expect(fake.asked).toHaveLength(2);
    await streams.sweep();
    expect(fake.asked).toHaveLength(3);
  });

  it('are asked about by organization, which pays nothing for the streams of another one', async () => {
    const fake = createFake();
    const streams = create();
    const of = (granted: Grant): OpenStream => ({ ...stream(fake.access), granted });
    const [one, another, nobodys] = [of({ organizationId: 'a' }), of({ organizationId: 'b' }), of({})];
    for (const each of [one, another]) streams.add(each);
    await streams.sweep('c');
    expect(fake.asked).toEqual([]);
    await Promise.all([streams.sweep('a'), streams.sweep('a'), streams.sweep('b')]);
    expect(fake.asked).toEqual([[one], [one, another]]);
    // It does not say whose it is.
    streams.add(nobodys);
    await streams.sweep('c');
    expect(fake.asked.at(-1)).toEqual([nobodys]);
  });

  it('go on for two minutes when the database is away, and end then', async () => {
    let nowMs = 0;
    const fake = createFake();
    const streams = create({ now: () => nowMs });
    const one = stream(fake.access);
    using _ = streams.add(one);
    nowMs = 60_000;
    await streams.sweep();
    fake.isAway = true;
    nowMs = 179_999;
    await streams.sweep();
    expect(one.reasons).toEqual([]);
    nowMs = 180_000;
    await streams.sweep();
    expect(one.reasons.map(({ kind }) => kind)).toEqual(['unavailable']);
  });

  it('are swept again after one that could not be ended, whatever was wrong with it', async () => {
    const fake = createFake();
    const streams = create();
    const bad: OpenStream = {
      ...stream(fake.access),
      end() {
        throw new Error('a test');
      },
    };
    const [one, another] = [stream(fake.access), stream(fake.access)];
    streams.add(bad);
    streams.add(one);
    fake.revoked = new Set([bad, one]);
    await streams.sweep();
    expect([one.reasons.length, lines.some((line) => line.includes('could not be ended'))]).toEqual([
      1,
      true,
    ]);
    streams.add(another);
    fake.revoked = new Set([another]);
    await streams.sweep();
    expect(another.reasons).toHaveLength(1);
  });

  it('that could not be confirmed for too long, and not ended either, hold up no other', async () => {
    let nowMs = 0;
    const fake = createFake();
    const streams = create({ now: () => nowMs });
    fake.isAway = true;
    const one = stream(fake.access);
    streams.add({
      ...stream(fake.access),
      end() {
        throw new Error('a test');
      },
    });
    streams.add(one);
    nowMs = 120_000;
    await streams.sweep();
    expect(one.reasons.map(({ kind }) => kind)).toEqual(['unavailable']);
  });

  it('of an access that confirms one grant at a time are confirmed by it', async () => {
    const responses = ['unauthenticated', 'forbidden', 'valid', 'unavailable'] as const;
    const confirmed: Grant[] = [];
    const accesses = responses.map(
      (response) =>
        ({
          async confirm(_: unknown, granted: Grant) {
            confirmed.push(granted);
            if (response !== 'valid') throw new DomainError(response, 'a test');
          },
        }) as unknown as Access,
    );
    const streams = create();
    const all = accesses.map(stream);
    for (const one of all) streams.add(one);
    await streams.sweep();
    expect(confirmed).toHaveLength(4);
    expect(all.map(({ reasons }) => reasons.length)).toEqual([1, 1, 0, 0]);
  });
});
