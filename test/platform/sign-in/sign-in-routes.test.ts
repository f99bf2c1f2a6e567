// Sessions of browsers: how they begin, what they may do, and how they end.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hashKey } from '../../../src/platform/identity/api-key.ts';
import { MAX_SESSIONS, removeExpiredSessions } from '../../../src/platform/identity/sessions.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

let api: PlatformApi;
let organization: string;
let key: string;
const clock = { offsetMs: 0 };
const SITE = 'https://platform.example.com';

beforeAll(async () => {
  api = await createPlatformApi({ now: () => Date.now() + clock.offsetMs });
});
afterAll(() => api[Symbol.asyncDispose]());
beforeEach(async () => {
  clock.offsetMs = 0;
  organization = await api.addOrganization();
  key = await api.addMemberKey(organization, 'ORGANIZATION_ADMIN');
});

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

function post(path: string, fields: Record<string, string>, asked: Ask = {}): Promise<Asked> {
  const raw = new URLSearchParams(fields).toString();
  return api.ask('POST', path, { raw, ...asked, headers: { ...FORM, ...asked.headers } });
}

/** The cookie of a new session, as a browser sends it back. */
async function signIn(text: string = key, asked: Ask = {}): Promise<string> {
  const { status, headers } = await post('/login', { key: text }, asked);
  expect(status).toBe(303);
  return headers.get('set-cookie')?.split(';')[0] ?? '';
}

async function tokenOf(cookie: string): Promise<string> {
  const { text } = await api.ask('GET', '/login', { headers: { cookie } });
  return /name="csrf_token" type="hidden" value="([^"]+)"/.exec(text)?.[1] ?? '';
}

const me = (cookie: string, asked: Ask = {}): Promise<Asked> =>
  api.ask('GET', '/api/v1/orgs/current', { ...asked, headers: { cookie, ...asked.headers } });

async function events(): Promise<readonly Asked['body'][]> {
  return (await api.ask('GET', '/api/v1/audit-logs', { key })).body.items;
}

describe('a session', () => {
  it('begins with a key, which nothing repeats, and has what the key has', async () => {
    const begun = await post('/login', { key, next: '/docs?a=1' });
    expect([begun.status, begun.text, begun.headers.get('location')]).toEqual([303, '', '/docs?a=1']);
    const cookie = begun.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^sallyport=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/);
    expect((await me(cookie.split(';')[0] ?? '')).body.id).toBe(organization);
    const stored = await api.database.owner.db.selectFrom('sessions').selectAll().execute();
    const id = cookie.slice('sallyport='.length, 50);
    expect(JSON.stringify([stored, api.logged, begun.text])).not.toContain(id);
    expect(JSON.stringify([stored, api.logged, begun.text])).not.toContain(key.slice(10, -4));
  });

  it('has a cookie that no other host can set over TLS', async () => {
    const cookie = await signIn(key, { origin: SITE, headers: { origin: SITE } });
    expect(cookie).toMatch(/^__Host-sallyport=/);
    expect((await me(cookie, { origin: SITE })).status).toBe(200);
    expect((await me(cookie.replace('__Host-', ''), { origin: SITE })).status).toBe(401);
    expect((await me(`${cookie}; ${cookie}x`, { origin: SITE })).status).toBe(401);
  });

  it('changes something only with its token, from a page of its own site', async () => {
    const cookie = await signIn();
    const token = await tokenOf(cookie);
    const other = await tokenOf(await signIn());
    const rename = (headers: Record<string, string>): Promise<Asked> =>
      api.ask('PATCH', '/api/v1/orgs/current/info', {
        body: { display_name: 'Acme' },
        headers: { cookie, ...headers },
      });
    const own = { 'x-csrf-token': token };
    for (const headers of [
      {},
      { 'x-csrf-token': other },
      { ...own, origin: 'https://evil.example' },
      { ...own, origin: 'null' },
      { ...own, 'sec-fetch-site': 'cross-site' },
      { ...own, 'sec-fetch-site': 'same-site' },
    ])
      expect((await rename(headers)).status).toBe(403);
    expect((await rename(own)).status).toBe(200);
    const page = { origin: 'http://127.0.0.1:8080', 'sec-fetch-site': 'same-origin' };
    expect((await rename({ ...own, ...page })).status).toBe(200);
  });

  it('leaves events without a credential, and login one with the key', async () => {
    const cookie = await signIn();
    const headers = { cookie, 'x-csrf-token': await tokenOf(cookie) };
    await api.ask('PATCH', '/api/v1/orgs/current/info', { body: { display_name: 'Acme' }, headers });
    const [used, begun] = await events();
    expect(begun.api.operation).toBe('login');
    expect(begun.actor.user.credential_uid).toEqual(expect.any(String));
    expect(used.actor.user).toMatchObject({ uid: begun.actor.user.uid, credential_uid: null });
    const { api_key_id, enrichments } = used.unmapped.original_audit_log;
    expect(api_key_id).toBeNull();
    expect(enrichments).toMatchObject({
      session_id: begun.resources[0].uid,
      session_key_id: begun.actor.user.credential_uid,
    });
  });

  it('of a service key names the key as its user, and no credential', async () => {
    const service = await api.addServiceKey(organization, 'ORGANIZATION_ADMIN');
    const cookie = await signIn(service);
    const headers = { cookie, 'x-csrf-token': await tokenOf(cookie) };
    await api.ask('PATCH', '/api/v1/orgs/current/info', { body: { display_name: 'Acme' }, headers });
    const [used, begun] = await events();
    const { credential_uid } = begun.actor.user;
    expect(used.actor.user).toMatchObject({ uid: credential_uid, credential_uid: null, type: 'Service' });
  });

  it('is a use of its key', async () => {
    const cookie = await signIn();
    const { db } = api.database.owner;
    const lastUse = async (): Promise<number> => {
      await api.authenticator.settle();
      const used = db.selectFrom('api_keys').select('last_used_at').where('hash', '=', hashKey(key));
      return (await used.executeTakeFirstOrThrow()).last_used_at?.getTime() ?? 0;
    };
    const begun = await lastUse();
    clock.offsetMs = 61_000;
    expect((await me(cookie)).status).toBe(200);
    expect((await lastUse()) - begun).toBeGreaterThanOrEqual(60_000);
  });

  it('that is wrong counts as a failed attempt, like a wrong key', async () => {
    const peer = '203.0.113.10';
    const statuses: number[] = [];
    for (let at = 0; at < 31; at += 1) {
      const cookie = `sallyport=${at % 2 === 0 ? 'x'.repeat(43) : 'wrong'}`;
      statuses.push((await me(cookie, { peer })).status);
    }
    expect([new Set(statuses.slice(0, 30)), statuses[30]]).toEqual([new Set([401]), 429]);
    expect((await me(await signIn(), { peer })).status).toBe(200);
  });

  it('gives way to a key that is sent with it', async () => {
    const cookie = await signIn();
    expect((await me(cookie, { key: 'wrong' })).status).toBe(401);
  });
});

describe('a session ends', () => {
  it('after eight hours, and is removed then', async () => {
    const cookie = await signIn();
    clock.offsetMs = 8 * 3_600_000 - 60_000;
    expect((await me(cookie)).status).toBe(200);
    clock.offsetMs = 8 * 3_600_000 + 1;
    expect((await me(cookie)).status).toBe(401);
    expect(
      await removeExpiredSessions(api.database.owner.db, new Date(Date.now() + clock.offsetMs)),
    ).toBeGreaterThan(0);
    expect(await api.database.owner.db.selectFrom('sessions').select('id').execute()).toEqual([]);
  });

  it('with its key: revoked, expired, demoted', async () => {
    const cookie = await signIn();
    const { db } = api.database.owner;
    await db.updateTable('organization_members').set({ role: 'ORGANIZATION_VIEWER' }).execute();
    expect((await api.ask('GET', '/api/v1/audit-logs', { headers: { cookie } })).status).toBe(403);
    const own = db
      .selectFrom('organization_members')
      .select('user_id')
      .where('organization_id', '=', organization);
    const expiring = { expires_at: new Date(Date.now() + 3_600_000) } as never;
    await db.updateTable('api_keys').set(expiring).where('user_id', 'in', own).execute();
    expect((await me(cookie)).status).toBe(200);
    clock.offsetMs = 3_600_001;
    expect((await me(cookie)).status).toBe(401);
    clock.offsetMs = 0;
    await db.deleteFrom('api_keys').where('user_id', 'in', own).execute();
    expect((await me(cookie)).status).toBe(401);
  });

  it('by signing out with its token, and not without it', async () => {
    const cookie = await signIn();
    const headers = { cookie };
    expect((await post('/logout', { csrf_token: 'wrong' }, { headers })).status).toBe(403);
    expect((await me(cookie)).status).toBe(200);
    const ended = await post('/logout', { csrf_token: await tokenOf(cookie) }, { headers });
    expect([ended.status, ended.headers.get('location')]).toEqual([303, '/login']);
    expect(ended.headers.get('set-cookie')).toMatch(/^sallyport=; Path=\/; Max-Age=0;/);
    expect((await me(cookie)).status).toBe(401);
    expect((await post('/logout', {})).status).toBe(303);
  });

  it('when its browser signs in again: a planted cookie never becomes a session', async () => {
    const planted = await signIn();
    const own = await signIn(key, { headers: { cookie: planted } });
    expect(own).not.toBe(planted);
    expect((await me(planted)).status).toBe(401);
    expect((await me(own)).status).toBe(200);
  });

  it('when its key has begun too many others', async () => {
    const oldest = await signIn();
    const next = await signIn();
    for (let count = 1; count < MAX_SESSIONS; count += 1) await signIn();
    expect((await me(oldest)).status).toBe(401);
    expect((await me(next)).status).toBe(200);
  });
});

describe('a new session', () => {
  it('is kept when the clock of the database was set back', async () => {
    const earlier: string[] = [];
    for (let count = 0; count < MAX_SESSIONS; count += 1) earlier.push(await signIn());
    const { db } = api.database.owner;
    const ahead = { created_at: new Date(Date.now() + 3_600_000) } as never;
    const own = db.selectFrom('api_keys').select('id').where('hash', '=', hashKey(key));
    await db.updateTable('sessions').set(ahead).where('api_key_id', 'in', own).execute();
    expect((await me(await signIn())).status).toBe(200);
    const statuses = await Promise.all(earlier.map(async (cookie) => (await me(cookie)).status));
    expect(statuses.filter((status) => status === 401)).toHaveLength(1);
  });
});

describe('the sign-in', () => {
  it.each([
    ['another site', 'https://evil.example/'],
    ['another site without a scheme', '//evil.example'],
    ['another site behind a backslash', '/\\evil.example'],
    ['another site behind a tab', '/\t/evil.example'],
    ['a script', 'javascript:alert(1)'],
    ['nothing', ''],
  ])('leads to no place but a local path: %s', async (_, next) => {
    expect((await post('/login', { key, next })).headers.get('location')).toBe('/login');
    const { text } = await api.ask('GET', `/login?${new URLSearchParams({ next })}`);
    expect(text).toContain('name="next" type="hidden" value="&#47;login"'.replace('&#47;', '/'));
  });

  it('is refused to pages of other sites, and where the cookie could be read on its way', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
    ])
      expect((await post('/login', { key }, { headers })).status).toBe(403);
    expect((await post('/login', { key }, { origin: '' })).status).toBe(403);
    expect(
      await api.database.owner.db
        .selectFrom('sessions')
        .select('id')
        .where('created_at', '>', new Date(Date.now() + 1e9))
        .execute(),
    ).toEqual([]);
  });

  it('counts wrong keys like those of the API, and never repeats one', async () => {
    const peer = '203.0.113.9';
    const wrong = `<${randomUUID()}>`;
    for (let at = 0; at < 30; at += 1) {
      const refused = await post('/login', { key: wrong }, { peer });
      expect([refused.status, refused.text.includes(wrong.slice(1, -1))]).toEqual([401, false]);
    }
    const refused = await post('/login', { key: wrong }, { peer });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
    expect((await post('/login', { key }, { peer })).status).toBe(303);
  });

  it('is within the rate of its key', async () => {
    await using slow = await createPlatformApi({ limits: { keyRequestsPerS: 1 } });
    const own = await slow.addServiceKey(await slow.addOrganization(), 'ORGANIZATION_ADMIN');
    const raw = new URLSearchParams({ key: own }).toString();
    const statuses: number[] = [];
    for (let at = 0; at < 3; at += 1)
      statuses.push((await slow.ask('POST', '/login', { raw, headers: FORM })).status);
    expect(statuses).toEqual([303, 303, 429]);
  });

  it('has few places for slow forms of one network', async () => {
    const over = Promise.withResolvers<void>();
    const slowly = (): ReadableStream =>
      new ReadableStream({
        async pull(controller) {
          await over.promise;
          controller.enqueue(new TextEncoder().encode(new URLSearchParams({ key }).toString()));
          controller.close();
        },
      });
    const from = (peer: string, raw: ReadableStream | string): Promise<Asked> =>
      api.ask('POST', '/login', { raw, headers: FORM, peer });
    const slow = [1, 2, 3, 4].map((at) => from(`2001:db8::${at}`, slowly()));
    const form = new URLSearchParams({ key }).toString();
    expect((await from('2001:db8::5', form)).status).toBe(429);
    expect((await from('2001:db8:0:1::5', form)).status).toBe(303);
    over.resolve();
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([303, 303, 303, 303]);
  });

  it('has a page that needs no script and cannot be framed', async () => {
    const { headers, text } = await api.ask('GET', '/login', {});
    expect(text).not.toContain('<script');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-frame-options')).toBe('DENY');
  });
});
