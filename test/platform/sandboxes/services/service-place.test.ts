// Services through the gateway: who reaches which port of which box, what the box sees, what browsers may do, and what ends it.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { hashKey } from '../../../../src/platform/identity/api-key.ts';
import { sendRevocation } from '../../../../src/platform/identity/revocation-notices.ts';
import { RuntimeError, type RuntimeErrorKind } from '../../../../src/platform/runtime/contract.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { BOXES } from '../box-scene.ts';
import { createServiceScene, DOMAIN, type ServiceScene, type ServiceUrl } from './service-scene.ts';

const TOKEN = 'X-Langsmith-Sandbox-Service-Token';
let scene: ServiceScene;
let box: { readonly id: string; readonly name: string };
let url: ServiceUrl;
beforeAll(async () => {
  scene = await createServiceScene();
  box = await scene.create({ name: 'service' });
  url = await scene.serviceUrl(box.name);
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => {
  scene.runtime.onCall = () => undefined;
  scene.respond = (_, outgoing) => void outgoing.end('ok');
});

const pathOf = (rest = '/', port = 8000, id = box.id): string => `/services/${id}/${port}${rest}`;
const hostOf = (port = 8000, id = box.id): string => `${port}--${id}.${DOMAIN}`;
const withToken = (token = url.token): { readonly headers: Record<string, string> } => ({
  headers: { [TOKEN]: token },
});
const connects = (): number => scene.runtime.calls.filter(({ call }) => call === 'connect').length;

async function changeExpiry({ token }: ServiceUrl, expiry: string): Promise<void> {
  const { db } = scene.api.database.owner;
  const hash = hashKey(token);
  await sql`update box_service_tokens set expires_at = now() + ${expiry}::interval where hash = ${hash}`.execute(
    db,
  );
}

/** Opens a stream that does not end by itself. */
async function openStream(headers: Record<string, string>): Promise<IncomingMessage> {
  scene.respond = (_, outgoing) => {
    outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' });
    outgoing.write('data: 1\n\n');
  };
  const stream = await scene.open(pathOf(), { headers });
  expect(String((await once(stream, 'data'))[0])).toBe('data: 1\n\n');
  return stream;
}

/** Resolves once the stream is cut, and not ended. */
async function cut(stream: IncomingMessage): Promise<void> {
  await expect(once(stream, 'end')).rejects.toMatchObject({ code: 'ECONNRESET' });
}

describe('a request with a token', () => {
  it('reaches the port of the box, by path and by host, and nothing of ours reaches the box', async () => {
    const headers = {
      ...withToken().headers,
      'X-Api-Key': scene.key,
      Authorization: 'Bearer of-the-service',
      Cookie: `sallyport=s; __Host-sallyport=s; sallyport-service=c; a=1; box-${box.id}-8000-b=2; box-${box.id}-8001-b=3`,
      'X-Tenant-Id': scene.workspaceId,
      'X-Forwarded-For': '1.2.3.4',
    };
    expect((await scene.get(pathOf('/a%2Fb?x&y=1'), { headers })).text).toBe('ok');
    const byPath = scene.seen.at(-1);
    expect(byPath).toMatchObject({ box: box.id, port: 8000, method: 'GET', url: '/a%2Fb?x&y=1' });
    expect(byPath?.headers['cookie']).toBe('b=2');
    expect((await scene.get(pathOf('/a'), { host: hostOf(), headers })).text).toBe('ok');
    const byHost = scene.seen.at(-1);
    expect(byHost).toMatchObject({ port: 8000, url: pathOf('/a') });
    expect(byHost?.headers['cookie']).toBe(`a=1; box-${box.id}-8000-b=2; box-${box.id}-8001-b=3`);
    for (const one of [byPath, byHost]) {
      expect(one?.headers['authorization']).toBe('Bearer of-the-service');
      const text = JSON.stringify(one);
      for (const secret of [url.token, scene.key, scene.workspaceId, 'sallyport'])
        expect(text).not.toContain(secret);
    }
    await scene.get(pathOf(), { headers: { ...headers, Authorization: `Bearer ${scene.key}` } });
    expect(scene.seen.at(-1)?.headers['authorization']).toBeUndefined();
  });

  it('gets the response with what is meant for the service alone', async () => {
    scene.respond = (_, outgoing) =>
      outgoing
        .writeHead(302, { Location: '/next', 'Set-Cookie': 'a=1; Domain=test', 'Clear-Site-Data': '"*"' })
        .end();
    const byPath = await scene.get(pathOf(), withToken());
    expect([byPath.status, byPath.headers.location]).toEqual([302, pathOf('/next')]);
    expect(byPath.headers['set-cookie']).toEqual([`box-${box.id}-8000-a=1; Path=${pathOf('')}`]);
    expect(byPath.headers['content-security-policy']).toMatch(/^sandbox (?!.*allow-same-origin)/);
    expect(byPath.headers).not.toHaveProperty('clear-site-data');
    const byHost = await scene.get('/', { host: hostOf(), ...withToken() });
    expect([byHost.headers.location, byHost.headers['set-cookie']]).toEqual(['/next', ['a=1']]);
    expect(byHost.headers).not.toHaveProperty('content-security-policy');
  });

  it('starts a box that stopped, and no other does', async () => {
    const stopped = await scene.create({ name: 'stopped' });
    const { token } = await scene.serviceUrl('stopped');
    await scene.ask('POST', `${BOXES}/stopped/stop`, {});
    expect((await scene.get(pathOf('/', 8000, stopped.id), withToken(url.token))).status).toBe(401);
    expect((await scene.get(pathOf('/', 8000, stopped.id))).status).toBe(401);
    expect((await scene.row(stopped.id))?.status).toBe('stopped');
    expect((await scene.get(pathOf('/', 8000, stopped.id), withToken(token))).text).toBe('ok');
    expect((await scene.row(stopped.id))?.status).toBe('ready');
    await scene.ask('DELETE', `${BOXES}/stopped`);
  });

  it('learns why the service cannot be reached', async () => {
    const status = async (kind: RuntimeErrorKind): Promise<unknown> => {
      scene.runtime.onCall = ({ call }) => {
        if (call === 'connect') throw new RuntimeError(kind, `because of ${kind}`);
      };
      const { status: code, text } = await scene.get(pathOf(), withToken());
      return [code, JSON.parse(text).detail.message];
    };
    expect(await status('not_listening')).toEqual([502, 'because of not_listening']);
    expect(await status('agent_lost')).toEqual([502, 'because of agent_lost']);
    expect(await status('no_capacity')).toEqual([503, 'because of no_capacity']);
    expect(await status('port_refused')).toEqual([403, 'because of port_refused']);
    expect(await status('unavailable')).toEqual([503, 'because of unavailable']);
  });
});

describe('a request without a token for this port of this box', () => {
  it('dials nothing, and is not shown what is wrong', async () => {
    const other = await scene.create({ name: 'other' });
    const { token: ofOther } = await scene.serviceUrl('other');
    const { token: ofPort } = await scene.serviceUrl(box.name, 8001);
    const expired = await scene.serviceUrl(box.name);
    await changeExpiry(expired, '-1 second');
    const before = connects();
    const tokens = [ofOther, ofPort, expired.token, `${url.token}x`, url.token.slice(0, -1), '', scene.key];
    const responses = await Promise.all(tokens.map((token) => scene.get(pathOf(), withToken(token))));
    const withKey = await scene.get(pathOf(), { headers: { 'X-Api-Key': scene.key } });
    const withBearer = await scene.get(pathOf(), { headers: { Authorization: `Bearer ${url.token}` } });
    const absent = await scene.get(pathOf('/', 8000, '00000000-0000-4000-8000-000000000000'), withToken());
    for (const { status, text } of [...responses, withKey, withBearer, absent])
      expect([status, JSON.parse(text).detail.error]).toEqual([401, 'Unauthenticated']);
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    expect(connects()).toBe(before);
    await scene.ask('DELETE', `${BOXES}/${other.name}`);
  });

  it('is a 404 for what can be no service', async () => {
    for (const host of [`x.${DOMAIN}`, `3000-${box.id}.${DOMAIN}`])
      expect((await scene.get(pathOf(), { host, ...withToken() })).status).toBe(404);
    expect((await scene.get(pathOf('/', 70_000), withToken())).status).toBe(404);
    expect((await scene.get('/services/', withToken())).status).toBe(404);
  });
});

describe('a browser', () => {
  const cookieOf = (fields: readonly string[] = []): string => fields[0]?.split(';')[0] ?? '';

  async function signIn(port = 8000): Promise<{ readonly host: string; readonly cookie: string }> {
    const { browser_url } = await scene.serviceUrl(box.name, port);
    const { host, pathname, search } = new URL(browser_url);
    const { headers } = await scene.get(`${pathname}${search}`, { host });
    return { host, cookie: cookieOf(headers['set-cookie']) };
  }

  it('gets a cookie for its code, once, and the address without it', async () => {
    const { browser_url, service_url } = await scene.serviceUrl(box.name);
    const { host, search } = new URL(browser_url);
    expect(service_url).toBe(`http://${hostOf()}:${scene.port}/`);
    const before = connects();
    const first = await scene.get(`/a?x=1&${search.slice(1)}`, { host });
    expect([first.status, first.headers.location]).toEqual([303, `${service_url}a?x=1`]);
    expect(first.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    const [field = ''] = first.headers['set-cookie'] ?? [];
    expect(field).toMatch(/^sallyport-service=[\w-]{43}; Path=\/; Max-Age=3\d{3}; HttpOnly; SameSite=Lax$/);
    expect((await scene.get(`/${search}`, { host })).status).toBe(401);
    const cookie = cookieOf([field]);
    const again = await scene.get(`/b${search}`, { host, headers: { Cookie: cookie } });
    expect([again.status, again.headers.location, again.headers['set-cookie']]).toEqual([
      ...[303, `${service_url}b`],
      undefined,
    ]);
    expect(connects()).toBe(before);
    const page = await scene.get('/b', { host, headers: { Cookie: `${cookie}; a=1` } });
    expect(page.text).toBe('ok');
    expect(scene.seen.at(-1)?.headers['cookie']).toBe('a=1');
    expect(JSON.stringify(scene.seen)).not.toContain(search.split('=')[1]);
  });

  it('cannot be led to another host by the address', async () => {
    const { browser_url } = await scene.serviceUrl(box.name);
    const { host, search } = new URL(browser_url);
    const { headers } = await scene.get(`//evil.test/${search}`, { host });
    expect(headers.location).toBe(`http://${host}//evil.test/`);
  });

  it('has no access to another port, another box or a path by its cookie', async () => {
    const { cookie } = await signIn();
    const headers = { Cookie: cookie };
    const other = await scene.create({ name: 'neighbour' });
    expect((await scene.get('/', { host: hostOf(8001), headers })).status).toBe(401);
    expect((await scene.get('/', { host: hostOf(8000, other.id), headers })).status).toBe(401);
    const two = await scene.get('/', { host: hostOf(), headers: { Cookie: `${cookie}; ${cookie}x` } });
    expect(two.status).toBe(401);
    await scene.ask('DELETE', `${BOXES}/${other.name}`);
  });

  it('gives no service by path the password that was typed for another one', async () => {
    const { browser_url } = await scene.serviceUrl(box.name);
    const { headers } = await scene.get(pathOf(`/${new URL(browser_url).search}`));
    const fields = { Cookie: cookieOf(headers['set-cookie']), Authorization: 'Basic dXNlcjpwYXNz' };
    expect((await scene.get(pathOf(), { headers: fields })).text).toBe('ok');
    expect(scene.seen.at(-1)?.headers['authorization']).toBeUndefined();
    expect((await scene.get('/', { host: hostOf(), headers: fields })).text).toBe('ok');
    expect(scene.seen.at(-1)?.headers['authorization']).toBe('Basic dXNlcjpwYXNz');
  });

  it('does nothing for pages of other origins', async () => {
    const { host, cookie } = await signIn();
    const ask = async (method: string, fields: object): Promise<unknown> =>
      (await scene.get('/', { method, host, headers: { Cookie: cookie, ...fields } })).status;
    const own = `http://${host}`;
    const before = connects();
    expect(await ask('POST', { Origin: 'http://evil.test', 'Content-Length': 0 })).toBe(403);
    expect(await ask('DELETE', { 'Sec-Fetch-Site': 'same-site' })).toBe(403);
    expect(await ask('GET', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' })).toBe(403);
    expect(connects()).toBe(before);
    expect(await ask('DELETE', { Origin: own })).toBe(200);
    expect(await ask('GET', { 'Sec-Fetch-Site': 'same-origin' })).toBe(200);
  });

  it('opens WebSockets of its own pages alone', async () => {
    const { host, cookie } = await signIn();
    const dial = (origin: string): WebSocket =>
      new WebSocket(`ws://127.0.0.1:${scene.port}/chat`, {
        headers: { Host: host, Cookie: cookie, Origin: origin },
      });
    for (const origin of ['http://evil.test', `http://${hostOf(8001)}:${scene.port}`, 'null']) {
      const [error] = await once(dial(origin), 'error');
      expect(String(error)).toContain('403');
    }
    const accepted = scene.nextSocket();
    const socket = dial(`http://${host}`);
    (await accepted).send('hello');
    expect(String((await once(socket, 'message'))[0])).toBe('hello');
    expect(scene.seen.at(-1)).toMatchObject({ url: '/chat', port: 8000 });
    expect(JSON.stringify(scene.seen.at(-1))).not.toContain(cookie);
    socket.terminate();
  });
});

describe('what runs is cut', () => {
  it('when the service URL is deleted', async () => {
    const { token, expires_at } = await scene.serviceUrl(box.name);
    const stream = await openStream({ [TOKEN]: token });
    const { body } = await scene.ask('GET', `${BOXES}/${box.name}/service-urls`);
    const { id } = body.service_urls.find((one: { expires_at: string }) => one.expires_at === expires_at);
    const ended = cut(stream);
    expect((await scene.ask('DELETE', `${BOXES}/${box.name}/service-urls/${id}`)).status).toBe(204);
    await ended;
    expect((await scene.get(pathOf(), withToken(token))).status).toBe(401);
  });

  it('when it expires', async () => {
    const made = await scene.serviceUrl(box.name);
    await changeExpiry(made, '1500 milliseconds');
    await cut(await openStream({ [TOKEN]: made.token }));
    expect((await scene.get(pathOf(), withToken(made.token))).status).toBe(401);
  });

  it('when the key that made it is revoked, also a WebSocket', async () => {
    const { api, organizationId, workspaceId } = scene;
    const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
    const { body } = await scene.ask('POST', `${BOXES}/${box.name}/service-url`, { port: 8000 }, { key });
    const headers = { [TOKEN]: body.token };
    const accepted = scene.nextSocket();
    const socket = new WebSocket(`ws://127.0.0.1:${scene.port}${pathOf()}`, { headers });
    await accepted;
    const closed = once(socket, 'close');
    await api.database.owner.write(async (trx) => {
      await trx.deleteFrom('api_keys').where('hash', '=', hashKey(key)).execute();
      await sendRevocation(trx, organizationId);
    });
    expect((await closed)[0]).toBe(1006);
    expect((await scene.get(pathOf(), { headers })).status).toBe(401);
  });
});

describe('wrong tokens', () => {
  it('count as failed attempts of their address, for which a valid token is accepted all the same', async () => {
    const statuses: unknown[] = [];
    for (let i = 0; i < 40; i += 1) statuses.push((await scene.get(pathOf(), withToken('wrong'))).status);
    expect(statuses.at(-1)).toBe(429);
    expect((await scene.get(pathOf(), withToken())).text).toBe('ok');
  });
});
