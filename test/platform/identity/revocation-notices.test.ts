// Access that one process takes away ends the streams of another process on the same database within a moment.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { inOrganization } from '../../../src/platform/api/access.ts';
import { eventStream } from '../../../src/platform/api/responses.ts';
import { defineRoute } from '../../../src/platform/api/route.ts';
import { formTokenOf, MAX_SESSIONS } from '../../../src/platform/identity/sessions.ts';
import { createFirstOrganization } from '../../../src/platform/management/first-organization.ts';
import type { Module } from '../../../src/platform/module.ts';
import { modules } from '../../../src/platform/modules.ts';
import { openPlatform, type Platform } from '../../../src/platform/platform.ts';
import { openStorage } from '../../../src/platform/storage.ts';
import { connectOnce } from '../../../src/platform/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestConfig } from '../../support/test-wiring.ts';

/** One event, then nothing. */
const streaming: Module = {
  name: 'streaming',
  routes: () => [
    defineRoute({
      ...{ method: 'GET', path: '/v1/stream', tag: 'Test', summary: 'A stream' },
      access: inOrganization('organization:read'),
      tracking: { untracked: 'a test' },
      responses: { 200: eventStream() },
      handle: async () => ({}),
      async *stream({ signal }) {
        yield { data: 1 };
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    }),
  ],
};

const log = createLog('silent', { write: () => undefined });
const opened = new AsyncDisposableStack();
let database: TestDatabase;
let here: Platform;
let elsewhere: Platform;
let admin: string;

beforeAll(async () => {
  database = opened.use(await createTestDatabase());
  const { createdKey = '' } = await database.store.write((trx) =>
    createFirstOrganization(trx, { name: 'One' }),
  );
  admin = createdKey;
  here = opened.adopt(await open(), (one) => one.close());
  elsewhere = opened.adopt(await open(), (one) => one.close());
});
afterAll(() => opened.disposeAsync());

async function open(): Promise<Platform> {
  const scratch = opened.use(await createScratch());
  const config = createTestConfig({
    ...{ role: 'serve', listen: '127.0.0.1:0', data_dir: join(scratch.path, 'data') },
    database: { url: database.url },
  });
  const storage = openStorage(config, log);
  return openPlatform(config, {
    log,
    version: '0.0.0',
    program: [],
    storage,
    modules: [...modules, streaming],
  });
}

type Headers = Readonly<Record<string, string>>;

async function ask({ url }: Platform, method: string, path: string, body?: object) {
  const headers = { 'X-Api-Key': admin, 'Content-Type': 'application/json' };
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  const response = await fetch(url + path, init);
  expect([path, response.ok]).toEqual([path, true]);
  return (await response.json()) as { readonly id: string; readonly key: string; readonly user_id: string };
}

/** The pieces of a stream of this process after its first one. */
async function openStream(headers: Headers): Promise<() => Promise<string>> {
  const { body, status } = await fetch(`${here.url}/v1/stream`, { headers });
  expect(status).toBe(200);
  const pieces = (body as ReadableStream<Uint8Array>).getReader();
  const next = async (): Promise<string> => {
    for (;;) {
      const piece = Buffer.from((await pieces.read()).value ?? []).toString();
      if (piece !== ': heartbeat\n') return piece;
    }
  };
  expect(await next()).toBe('data: 1\n\n');
  return next;
}

async function post({ url }: Platform, path: string, fields: Record<string, string>, headers: Headers = {}) {
  const body = new URLSearchParams(fields);
  return fetch(url + path, { method: 'POST', body, headers, redirect: 'manual' });
}

/** The cookie of a new session. */
async function signIn(platform: Platform, key: string): Promise<string> {
  const { status, headers } = await post(platform, '/login', { key });
  expect(status).toBe(303);
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

const keys = '/api/v1/orgs/current/service-keys';
const members = '/api/v1/orgs/current/members';

async function addKey(): Promise<readonly [Headers, string]> {
  const { id, key } = await ask(elsewhere, 'POST', keys, {});
  return [{ 'X-Api-Key': key }, id];
}

async function addMember() {
  const email = `${crypto.randomUUID()}@example.test`;
  const { id, user_id } = await ask(elsewhere, 'POST', members, { email, role: 'ORGANIZATION_USER' });
  const { key } = await ask(elsewhere, 'POST', '/api/v1/orgs/current/personal-access-tokens', { user_id });
  return { id, headers: { 'X-Api-Key': key } };
}

/** A way to be let in, and what takes it away. */
type Row = readonly [string, () => Promise<readonly [Headers, () => Promise<unknown>]>];

const rows: readonly Row[] = [
  // The first waits for the notices, or is confirmed when they begin to arrive.
  ...['deletes a key', 'deletes another key'].map(
    (name): Row => [
      name,
      async () => {
        const [headers, id] = await addKey();
        return [headers, () => ask(elsewhere, 'DELETE', `${keys}/${id}`)];
      },
    ],
  ),
  [
    'removes a member',
    async () => {
      const { id, headers } = await addMember();
      return [headers, () => ask(elsewhere, 'DELETE', `${members}/${id}`)];
    },
  ],
  [
    'ends a session',
    async () => {
      const cookie = await signIn(here, admin);
      const csrf_token = formTokenOf(cookie.split('=')[1] ?? '');
      return [{ cookie }, () => post(elsewhere, '/logout', { csrf_token }, { cookie })];
    },
  ],
  [
    'signs in again with the cookie of a session',
    async () => {
      const cookie = await signIn(here, admin);
      return [{ cookie }, () => post(elsewhere, '/login', { key: admin }, { cookie })];
    },
  ],
  [
    'begins more sessions than a key may have',
    async () => {
      const cookie = await signIn(here, admin);
      return [
        { cookie },
        async () => {
          for (let count = 0; count < MAX_SESSIONS; count += 1) await signIn(elsewhere, admin);
        },
      ];
    },
  ],
];

const REVOKED =
  'event: error\ndata: {"error":"unauthenticated","message":"The access to this stream was revoked"}\n\n';

/** Shorter than the half minute after which all streams are confirmed. */
const timeout = 20_000;

it.each(rows)('a process that %s ends its streams in other processes', { timeout }, async (_, begin) => {
  const [headers, revoke] = await begin();
  const next = await openStream(headers);
  const end = next();
  await revoke();
  expect(await end).toBe(REVOKED);
  expect(await next()).toBe('');
});

it('what was revoked while the connection of the notices was lost ends its streams once it is there again', {
  timeout,
}, async () => {
  const [headers, id] = await addKey();
  const end = (await openStream(headers))();
  const { db } = database.owner;
  // Without a notice, as if it was lost.
  await db.deleteFrom('api_keys').where('id', '=', id).execute();
  await connectOnce(database.ownerConnection, (client) =>
    client.query(`select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where application_name = 'sallyport notifications' and datname = current_database()`),
  );
  expect(await end).toBe(REVOKED);
});
