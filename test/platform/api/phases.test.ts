// The phases of a route: what waits holds no connection and no turn, what is written is written once, and what follows
// the commit follows it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import { RequestError } from '../../../src/base/http/request-body.ts';
import { z } from '../../../src/base/schema.ts';
import { inWorkspace } from '../../../src/platform/api/access.ts';
import type { RequestFacts } from '../../../src/platform/api/api-request.ts';
import { eventStream } from '../../../src/platform/api/responses.ts';
import {
  defineRoute,
  type Handling,
  type Preparing,
  type Responding,
  type Route,
  type Waiting,
} from '../../../src/platform/api/route.ts';
import { createApiRequest } from '../../support/api-request.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

type Work = {
  prepare?(call: Preparing): Promise<string>;
  handle?(call: Handling, prepared: string): Promise<void>;
  discard?(prepared: string): Promise<void>;
  after?(call: Waiting): Promise<void> | void;
  settle?(prepared: string): void;
  respond?(call: Responding, id: string): Promise<string>;
};

let work: Work = {};
/** Creates a listener, by a name that `prepare` chooses. */
const route: Route = defineRoute({
  method: 'POST',
  path: '/prepared',
  tag: 'Test',
  summary: 'a route with three phases',
  access: inWorkspace('deployments:create'),
  tracking: { operation: 'create_listener' },
  responses: { 201: z.strictObject({ id: z.uuid() }) },
  failures: [404],
  prepare: async (call) => (await work.prepare?.(call)) ?? 'one',
  async handle(call, prepared) {
    await work.handle?.(call, prepared);
    const { db, workspaceId: workspace_id } = call;
    const values = {
      workspace_id,
      compute_type: 'k8s',
      compute_id: prepared,
      compute_config: '{}',
      version: null,
    } as const;
    const body = await db.insertInto('listeners').values(values).returning('id').executeTakeFirstOrThrow();
    return { body, resources: [body.id] };
  },
  discard: async (prepared) => work.discard?.(prepared),
  after: (call) => work.after?.(call),
  settle: (prepared) => work.settle?.(prepared),
});

/** Creates a listener, then streams its name as an event. */
const streamed: Route = defineRoute({
  method: 'POST',
  path: '/streamed',
  tag: 'Test',
  summary: 'a route that writes and then streams',
  access: inWorkspace('deployments:create'),
  tracking: { operation: 'create_listener' },
  responses: { 200: eventStream<{ readonly name: string }>() },
  failures: [404],
  async handle(call) {
    const { db, workspaceId: workspace_id } = call;
    const name = 'streamed';
    const values = {
      workspace_id,
      compute_type: 'k8s',
      compute_id: name,
      compute_config: '{}',
      version: null,
    } as const;
    await db.insertInto('listeners').values(values).execute();
    await work.handle?.(call, name);
    return { source: { name }, fields: { 'Content-Location': '/streamed/1' } };
  },
  async *stream({ workspaceId }, { name }) {
    yield { event: 'created', data: { name, seen: await listeners(), in: workspaceId !== '' }, id: '0' };
  },
});

/** Creates a listener, and responds with an id of its own. */
const waiting: Route = defineRoute({
  method: 'POST',
  path: '/waiting',
  tag: 'Test',
  summary: 'a route that waits after its commit',
  access: inWorkspace('deployments:create'),
  tracking: { operation: 'create_listener' },
  responses: { 201: z.strictObject({ id: z.string() }) },
  failures: [404, 408],
  async handle({ db, workspaceId: workspace_id }) {
    const values = { workspace_id, compute_type: 'k8s', compute_config: '{}', version: null } as const;
    const insert = db.insertInto('listeners').values({ ...values, compute_id: `waiting-${(waits += 1)}` });
    const body = await insert.returning('id').executeTakeFirstOrThrow();
    return { body, resources: [body.id] };
  },
  after: (call) => work.after?.(call),
  async respond(call, { body }) {
    return { body: { id: (await work.respond?.(call, String(body.id))) ?? body.id } };
  },
});
let waits = 0;

/** Streams the names of the listeners, before and after another one is created. */
const following: Route = defineRoute({
  method: 'GET',
  path: '/following',
  tag: 'Test',
  summary: 'a stream that reads the database',
  access: inWorkspace('deployments:read'),
  tracking: { untracked: 'a test' },
  responses: { 200: eventStream() },
  handle: async () => ({}),
  async *stream({ db, workspaceId }) {
    const names = db.selectFrom('listeners').select('compute_id').where('workspace_id', '=', workspaceId);
    yield { data: await names.execute() };
    await createListener('late');
    yield { data: await names.execute() };
  },
});

let api: PlatformApi;
let key: string;
let organizationId: string;
beforeEach(async () => {
  work = {};
  api = await createPlatformApi({ routes: [route, streamed, waiting, following] });
  organizationId = await api.addOrganization();
  const workspaceId = await api.addWorkspace(organizationId);
  key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
});
afterEach(() => api[Symbol.asyncDispose]());

const ask = (): Promise<Asked> => api.ask('POST', '/prepared', { key });
const createListener = (name: string): Promise<Asked> =>
  api.ask('POST', '/v2/listeners', {
    key,
    body: { compute_type: 'k8s', compute_id: name, compute_config: {} },
  });

async function listeners(): Promise<readonly string[]> {
  const rows = await api.database.owner.db
    .selectFrom('listeners')
    .select('compute_id')
    .orderBy('compute_id')
    .execute();
  return rows.map(({ compute_id }) => compute_id);
}

/** Of each event, whether it records a success. */
async function events(): Promise<readonly boolean[]> {
  const rows = await api.database.owner.db
    .selectFrom('audit_events')
    .select('record')
    .orderBy('seq')
    .execute();
  return rows.map(({ record }) => JSON.parse(record).operation_succeeded);
}

describe('discard', () => {
  const discarded: string[] = [];
  beforeEach(() => {
    discarded.length = 0;
    work.discard = async (prepared) => void discarded.push(prepared);
  });
  const reject = (error: Error) => async (): Promise<never> => {
    throw error;
  };

  it('gets what was prepared of a request that is rejected', async () => {
    work.handle = reject(new DomainError('not_found', 'There is no such thing'));
    expect((await ask()).status).toBe(404);
    expect(discarded).toEqual(['one']);
  });

  it('gets nothing of a request that is carried out', async () => {
    expect((await ask()).status).toBe(201);
    expect(discarded).toEqual([]);
  });

  it('gets nothing where the transaction may be committed', async () => {
    work.handle = reject(new DomainError('unavailable', 'The database is not available'));
    expect((await ask()).status).toBe(503);
    expect(discarded).toEqual([]);
  });

  it('that fails leaves the response as it is', async () => {
    work.handle = reject(new DomainError('not_found', 'There is no such thing'));
    work.discard = reject(new Error('the disk is gone'));
    expect((await ask()).status).toBe(404);
  });
});

describe('prepare', () => {
  it('may wait in any number of requests, and holds neither a connection nor a turn of the organization', async () => {
    const held = Promise.withResolvers<void>();
    const allWait = Promise.withResolvers<void>();
    let waiting = 0;
    work.prepare = async () => {
      const name = `prepared-${waiting}`;
      waiting += 1;
      // As many as an organization has turns to write, and connections of the pool besides.
      if (waiting === 12) allWait.resolve();
      await held.promise;
      return name;
    };
    const prepared = Array.from({ length: 12 }, ask);
    await allWait.promise;
    await api.authenticator.settle();
    const { size, idle, waiting: awaited } = api.database.store.connections();
    expect([size - idle, awaited]).toEqual([0, 0]);
    const others = await Promise.all(Array.from({ length: 8 }, (_, n) => createListener(`other-${n}`)));
    expect(others.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 201));
    held.resolve();
    const served = await Promise.all(prepared);
    expect(served.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 201));
    expect(await listeners()).toHaveLength(20);
    expect(await events()).toEqual(Array.from({ length: 20 }, () => true));
  });

  it('cannot outlive the key of its caller', async () => {
    work.prepare = async () => {
      await api.database.owner.db.deleteFrom('api_keys').execute();
      return 'one';
    };
    expect((await ask()).status).toBe(401);
    expect([await listeners(), await events()]).toEqual([[], [false]]);
  });

  it('that fails leaves the event of a failure and nothing else', async () => {
    work.prepare = async () => {
      throw new DomainError('not_found', 'There is no such thing');
    };
    expect((await ask()).status).toBe(404);
    expect([await listeners(), await events()]).toEqual([[], [false]]);
  });

  it('learns that the server drains, and the caller is asked to come back', async () => {
    const draining = new AbortController();
    work.prepare = ({ signal }) => {
      draining.abort(new DomainError('unavailable', 'This process is shutting down', 1000));
      return rejectOnAbort(signal);
    };
    const { status, headers, body } = await api.ask('POST', '/prepared', { key, draining: draining.signal });
    expect([status, headers.get('retry-after'), body.code]).toEqual([503, '1', 'unavailable']);
    expect(await listeners()).toEqual([]);
  });

  it('learns that the caller has left', async () => {
    const left = new AbortController();
    work.prepare = ({ signal }) => {
      left.abort(new RequestError('client_gone'));
      return rejectOnAbort(signal);
    };
    const { body } = await api.ask('POST', '/prepared', { key, left: left.signal });
    expect([body.code, await listeners()]).toEqual(['client_gone', []]);
  });
});

/** As most functions of Node reject that take a signal. */
async function rejectOnAbort({ aborted, reason }: AbortSignal): Promise<never> {
  throw Object.assign(new Error(`aborted: ${aborted}`, { cause: reason }), { name: 'AbortError' });
}

describe('handle', () => {
  it('runs again after a deadlock with what was prepared once', async () => {
    const seen: string[] = [];
    let prepared = 0;
    let followed = 0;
    work.prepare = async () => `name-${(prepared += 1)}`;
    work.handle = async (_, name) => {
      seen.push(name);
      if (seen.length === 1) throw Object.assign(new Error('a deadlock'), { code: '40P01' });
    };
    work.after = () => void (followed += 1);
    expect((await ask()).status).toBe(201);
    expect([seen, followed, await listeners(), await events()]).toEqual([
      ['name-1', 'name-1'],
      1,
      ['name-1'],
      [true],
    ]);
  });
});

describe('after', () => {
  it('runs once the write and its event are committed', async () => {
    const seen: unknown[] = [];
    work.after = async () => void seen.push(await listeners(), await events());
    expect((await ask()).status).toBe(201);
    expect(seen).toEqual([['one'], [true]]);
  });

  it('does not run for a request that failed', async () => {
    let followed = 0;
    work.handle = async () => {
      throw new DomainError('not_found', 'There is no such thing');
    };
    work.after = () => void (followed += 1);
    expect([(await ask()).status, followed]).toEqual([404, 0]);
  });

  it('is followed by what gives back what was reserved, which also follows a failure', async () => {
    const seen: string[] = [];
    let count = 0;
    work.prepare = async () => `reserved ${(count += 1)}`;
    work.settle = (prepared) => void seen.push(prepared);
    work.after = () => void seen.push('after');
    expect((await ask()).status).toBe(201);
    work.after = () => {
      throw new Error('after');
    };
    expect((await ask()).status).toBe(201);
    work.handle = async () => {
      throw new Error('broken');
    };
    expect((await ask()).status).toBe(500);
    expect(seen).toEqual(['after', 'reserved 1', 'reserved 2', 'reserved 3']);
  });

  it('that fails changes no response, for the caller must not try again, and is logged', async () => {
    work.after = () => {
      throw new TypeError('a bug');
    };
    expect((await ask()).status).toBe(201);
    expect([await listeners(), await events()]).toEqual([['one'], [true]]);
    expect(api.logged.map((line) => JSON.parse(line).msg)).toEqual(['the work after a commit failed']);
  });
});

describe('respond', () => {
  const wait = (asked: Ask = {}): Promise<Asked> => api.ask('POST', '/waiting', { key, ...asked });

  it('gives the response, once the write and its event are committed and `after` has run', async () => {
    const seen: unknown[] = [];
    work.after = () => void seen.push('after');
    work.respond = async (call, id) => {
      const stored = await call.db.selectFrom('listeners').select('id').execute();
      seen.push(stored.length, await events());
      await call.write((trx) => trx.updateTable('listeners').set({ version: '2' }).execute());
      return `${id} responded`;
    };
    const { status, body } = await wait();
    expect([status, body.id.endsWith(' responded'), seen]).toEqual([201, true, ['after', 1, [true]]]);
    const rows = await api.database.owner.db.selectFrom('listeners').select('version').execute();
    expect(rows).toEqual([{ version: '2' }]);
  });

  it('that throws is an error, and what is committed stays a success in the audit log', async () => {
    work.respond = async () => {
      throw new DomainError('timeout', 'Not yet');
    };
    const { status, body } = await wait();
    expect([status, body.code, (await listeners()).length]).toEqual([408, 'timeout', 1]);
    await api.authenticator.settle();
    expect(await events()).toEqual([true]);
  });

  it('does not run for a request that failed', async () => {
    let responded = 0;
    work.respond = async (_, id) => `${id}${(responded += 1)}`;
    await api.database.owner.db.deleteFrom('api_keys').execute();
    expect([(await wait()).status, responded, await listeners()]).toEqual([401, 0, []]);
  });

  it('holds neither a connection nor a turn of the organization while it waits', async () => {
    const held = Promise.withResolvers<void>();
    const allWait = Promise.withResolvers<void>();
    let waited = 0;
    work.respond = async (_, id) => {
      if ((waited += 1) === 12) allWait.resolve();
      await held.promise;
      return id;
    };
    const all = Array.from({ length: 12 }, () => wait());
    await allWait.promise;
    await api.authenticator.settle();
    const { size, idle, waiting: queued } = api.database.store.connections();
    expect([size - idle, queued]).toEqual([0, 0]);
    expect((await createListener('other')).status).toBe(201);
    held.resolve();
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual(
      Array.from({ length: 12 }, () => 201),
    );
  });

  it('finds its place to wait before anything is written', async () => {
    await using full = await createPlatformApi({
      routes: [waiting],
      limits: { preparing: 1, organizationPreparing: 1 },
    });
    const organization = await full.addOrganization();
    const workspace = await full.addWorkspace(organization);
    const own = await full.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
    const [held, waits1] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    work.respond = async (_, id) => {
      waits1.resolve();
      await held.promise;
      return id;
    };
    const first = full.ask('POST', '/waiting', { key: own });
    await waits1.promise;
    const second = await full.ask('POST', '/waiting', { key: own });
    const rows = await full.database.owner.db.selectFrom('listeners').select('id').execute();
    expect([second.status, rows.length]).toEqual([429, 1]);
    held.resolve();
    expect((await first).status).toBe(201);
  });

  it('holds no body while it waits, and keeps what it needs of it', async () => {
    const [held, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const seen: unknown[] = [];
    const keeping: Route = defineRoute({
      method: 'POST',
      path: '/keeping',
      tag: 'Test',
      summary: 'a route that waits after its commit, and takes a body',
      access: inWorkspace('deployments:create'),
      tracking: { untracked: 'a test' },
      body: z.strictObject({ waits: z.boolean(), text: z.string() }),
      responses: { 200: z.strictObject({ waited: z.boolean() }) },
      handle: async ({ body }) => ({ body: { waited: body.text === '' } }),
      after: ({ body }) => void seen.push(body.text.length),
      keep: ({ body: { waits: waited } }) => ({ waited }),
      async respond(call, body) {
        seen.push('body' in call);
        begun.resolve();
        if (body.waited) await held.promise;
        return { body };
      },
    });
    const text = 'x'.repeat(1_000);
    // A key has half of it, which is one such body.
    const limits = { organizationIngestBytes: 2_100 };
    await using small = await createPlatformApi({ routes: [keeping], limits });
    const organization = await small.addOrganization();
    const workspace = await small.addWorkspace(organization);
    const own = await small.addServiceKey(organization, 'WORKSPACE_ADMIN', workspace);
    const send = (waits: boolean): Promise<Asked> => {
      const raw = JSON.stringify({ waits, text });
      const headers = { 'content-length': String(raw.length) };
      return small.ask('POST', '/keeping', { key: own, raw, headers });
    };
    const first = send(true);
    await begun.promise;
    expect([(await send(false)).body, seen]).toEqual([{ waited: false }, [1_000, false, 1_000, false]]);
    held.resolve();
    expect((await first).body).toEqual({ waited: true });
  });

  it('learns that the caller has left, and that the server drains', async () => {
    const left = new AbortController();
    work.respond = ({ signal }) => {
      left.abort(new RequestError('client_gone'));
      return rejectOnAbort(signal);
    };
    expect((await wait({ left: left.signal })).body.code).toBe('client_gone');
    const draining = new AbortController();
    work.respond = ({ signal }) => {
      draining.abort(new DomainError('unavailable', 'This process is shutting down', 1000));
      return rejectOnAbort(signal);
    };
    expect((await wait({ draining: draining.signal })).status).toBe(503);
    expect([(await listeners()).length, await events()]).toEqual([2, [true, true]]);
  });
});

describe('the line of a request in the log', () => {
  it('names its key and its organization', async () => {
    let facts: RequestFacts = {};
    const note = (more: RequestFacts): void => void (facts = { ...facts, ...more });
    const response = await api.api(
      createApiRequest('/v2/listeners', { headers: { 'x-api-key': key }, note }),
    );
    expect(response.status).toBe(200);
    expect(facts).toEqual({ route: '/v2/listeners', keyId: expect.any(String), organizationId });
  });
});

describe('a stream', () => {
  it('begins once the write and its event are committed', async () => {
    const { status, headers, text } = await api.ask('POST', '/streamed', { key });
    expect([status, headers.get('content-type'), headers.get('content-location')]).toEqual([
      200,
      'text/event-stream',
      '/streamed/1',
    ]);
    expect(text).toBe('event: created\ndata: {"name":"streamed","seen":["streamed"],"in":true}\nid: 0\n\n');
    expect(await events()).toEqual([true]);
  });

  it('reads the database while it runs', async () => {
    const { text } = await api.ask('GET', '/following', { key });
    expect(text).toBe('data: []\n\ndata: [{"compute_id":"late"}]\n\n');
  });

  it('of a write that failed is an error with a status', async () => {
    work.handle = async () => {
      throw new DomainError('not_found', 'There is no such thing');
    };
    const { status, body } = await api.ask('POST', '/streamed', { key });
    expect([status, body.code, await listeners(), await events()]).toEqual([404, 'not_found', [], [false]]);
  });
});
