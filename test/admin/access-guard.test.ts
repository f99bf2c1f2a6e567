import { describe, expect, it } from 'vitest';
import { createAdminScene, field, readResponse, request, TOKEN } from './admin-scene.ts';

const LOCAL = 'Host: localhost';
const BEARER = `Authorization: Bearer ${TOKEN}`;
const KEY = `X-Api-Key: ${TOKEN}`;

describe('the token', () => {
  it.each([
    ['as Bearer', [BEARER], 200],
    ['as bearer in small letters', [`authorization: bearer ${TOKEN}`], 200],
    ['as X-Api-Key', [KEY], 200],
    ['in both fields', [BEARER, KEY], 200],
    ['not at all', [], 401],
    ['wrong', ['Authorization: Bearer wrong'], 401],
    ['empty', ['X-Api-Key:'], 401],
    ['as a prefix of itself', [`X-Api-Key: ${TOKEN.slice(0, -1)}`], 401],
    ['under another scheme', [`Authorization: Basic ${TOKEN}`], 401],
    ['without a scheme', [`Authorization: ${TOKEN}`], 401],
    ['right beside a wrong key', [BEARER, 'X-Api-Key: wrong'], 401],
    ['right beside a wrong Bearer', ['Authorization: Bearer wrong', KEY], 401],
    ['twice', [BEARER, BEARER], 401],
    ['twice, the second wrong', [KEY, 'X-Api-Key: wrong'], 401],
    ['twice, the first wrong', ['X-Api-Key: wrong', KEY], 401],
    ['as a cookie', [`Cookie: token=${TOKEN}`], 401],
  ])('%s', async (_, fields, status) => {
    await using scene = await createAdminScene();
    const response = await scene.ask('GET', '/v1/proxy_config', { fields: [LOCAL, ...fields] });
    expect(response.head.status).toBe(status);
    if (status === 200) return;
    expect(field(response, 'www-authenticate')).toMatch(/^Bearer/);
    expect(JSON.parse(response.text).detail).toContain('Authorization: Bearer TOKEN');
  });

  it('in the query does not count, and the parameter is rejected', async () => {
    await using scene = await createAdminScene();
    const path = `/v1/proxy_config?token=${TOKEN}`;
    expect((await scene.ask('GET', path, { fields: [LOCAL] })).head.status).toBe(401);
    const response = await scene.ask('GET', path);
    expect(response.head.status).toBe(422);
    expect(JSON.parse(response.text).detail).toEqual([
      { loc: ['query', 'token'], msg: 'Unknown query parameter: remove it', type: 'extra_forbidden' },
    ]);
  });

  it('that is wrong is a 401 five times in a minute, then a 429, and the right one is always accepted', async () => {
    await using scene = await createAdminScene();
    const statuses: number[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      const wrong = await scene.ask('GET', '/v1/proxy_config', { fields: [LOCAL, `X-Api-Key: ${turn}`] });
      statuses.push(wrong.head.status);
      if (wrong.head.status === 429) expect(Number(field(wrong, 'retry-after'))).toBeGreaterThan(50);
      expect((await scene.ask('GET', '/v1/proxy_config')).head.status).toBe(200);
      const none = await scene.ask('GET', '/v1/proxy_config', { fields: [LOCAL] });
      expect(none.head.status).toBe(401);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429]);
  });

  it('that is wrong is rejected where none is needed, and counted', async () => {
    await using scene = await createAdminScene({ limits: { wrongTokensPerMinute: 1 } });
    const statuses: number[] = [];
    for (const path of ['/healthz', '/', '/v1/ca.pem'])
      statuses.push((await scene.ask('GET', path, { fields: [LOCAL, 'X-Api-Key: wrong'] })).head.status);
    expect(statuses).toEqual([401, 429, 429]);
  });

  it('decides whether a path that is not there is a 401 or a 404', async () => {
    await using scene = await createAdminScene();
    for (const path of ['/nothing', '/v1', '/v1/sandboxes/x/y', '/%2e', '/v1/sandboxes/-']) {
      expect((await scene.ask('GET', path, { fields: [LOCAL] })).head.status).toBe(401);
      const response = await scene.ask('GET', path);
      expect(response.head.status).toBe(404);
      expect(response.text).toMatch(/GET \//);
    }
  });
});

describe('Host', () => {
  it.each([
    ['localhost', 200],
    ['LocalHost:1234', 200],
    ['127.0.0.1', 200],
    ['127.255.3.4:3129', 200],
    ['[::1]', 200],
    ['[::1]:3129', 200],
    ['admin.internal', 200],
    ['Admin.Internal:80', 200],
    ['other.internal:8443', 200],
    ['other.internal', 421],
    ['attacker.test', 421],
    ['a.localhost', 421],
    ['localhost.attacker.test', 421],
    ['127.0.0.1.attacker.test', 421],
    ['128.0.0.1', 421],
    ['127.0.0.256', 421],
    ['127.1', 421],
    ['[::2]', 421],
    ['localhost:', 400],
    ['localhost:x', 400],
    ['user@localhost', 400],
    ['localhost, localhost', 400],
    ['', 400],
  ])('%s without a token gets the status %i', async (host, status) => {
    await using scene = await createAdminScene({ hosts: ['admin.internal', 'Other.internal:8443'] });
    const response = await scene.ask('GET', '/healthz', { fields: [`Host: ${host}`] });
    expect(response.head.status).toBe(status);
    // Before anything else: also where the path would be a 401.
    const other = await scene.ask('PUT', '/v1/proxy_config', { fields: [`Host: ${host}`], body: {} });
    expect(other.head.status).toBe(status === 200 ? 401 : status);
  });

  it('may be any name for a caller with the token', async () => {
    await using scene = await createAdminScene();
    for (const host of ['proxy.example', '1.2.3.4.5', '0x7f.1', 'name:99999', '[::::]', '-.']) {
      const fields = [`Host: ${host}`, BEARER];
      expect((await scene.ask('GET', '/v1/proxy_config', { fields })).head.status).toBe(200);
    }
    const wrong = ['Host: proxy.example', 'X-Api-Key: wrong'];
    expect((await scene.ask('GET', '/v1/proxy_config', { fields: wrong })).head.status).toBe(421);
  });

  it('must come exactly once, also with the token', async () => {
    await using scene = await createAdminScene();
    for (const fields of [[BEARER], [LOCAL, LOCAL, BEARER]])
      expect((await scene.ask('GET', '/v1/proxy_config', { fields })).head.status).toBe(400);
    await using client = await scene.connect();
    await client.send(`GET /healthz HTTP/1.0\r\n\r\n`);
    expect((await client.readHead()).status).toBe(400);
  });
});

describe('a request that came through a proxy', () => {
  it.each([
    ['Via: 1.1 sallyport'],
    ['Forwarded: for=10.0.0.1'],
    ['X-Forwarded-For: 10.0.0.1'],
    ['x-forwarded-anything: 1'],
    ['Proxy-Connection: keep-alive'],
    ['Proxy-Authorization: Basic eA=='],
    ['Upgrade: websocket'],
    ['Upgrade: h2c'],
  ])('with %s is refused', async (mark) => {
    await using scene = await createAdminScene();
    const response = await scene.ask('PUT', '/v1/proxy_config', { more: [mark], body: {} });
    expect([response.head.status, scene.calls]).toEqual([403, []]);
    expect((await scene.ask('GET', '/healthz', { more: [mark], fields: [LOCAL] })).head.status).toBe(403);
    expect(scene.records).toMatchObject([{ action: 'proxy_config.apply', status: 403, reason: 'proxied' }]);
  });

  it('with an Upgrade that Connection names is refused', async () => {
    await using scene = await createAdminScene();
    const more = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: eA=='];
    expect((await scene.ask('GET', '/v1/proxy_config', { more })).head.status).toBe(403);
  });

  it.each([
    ['GET', 'http://localhost/v1/proxy_config'],
    ['PUT', 'http://127.0.0.1:3129/v1/proxy_config'],
    ['GET', 'https://localhost/'],
    ['OPTIONS', '*'],
    ['CONNECT', 'localhost:3129'],
  ])('by its target is refused: %s %s', async (method, target) => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    await client.send(request(method, target));
    const response = await client.readResponse();
    expect(response.head.status).toBe(403);
    expect(field(response, 'x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(await client.finished).toBe('end');
  });
});

describe('a CONNECT behind a request that has no response yet', () => {
  it('ends the connection and nothing else', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const connect = request('CONNECT', 'localhost:3129');
    await client.send(Buffer.concat([request('PUT', '/v1/proxy_config', { body: {} }), connect]));
    expect(['end', 'ECONNRESET']).toContain(await client.finished);
    expect((await scene.ask('GET', '/healthz')).head.status).toBe(200);
  });
});

describe('a method', () => {
  it.each([
    ['DELETE', '/v1/proxy_config', 'GET, HEAD, PUT, POST'],
    ['PUT', '/v1/sandboxes', 'GET, HEAD, POST'],
    ['POST', '/v1/sandboxes/default', 'GET, HEAD, PATCH, DELETE'],
    ['OPTIONS', '/v1/workspace_secrets', 'GET, HEAD, PUT, POST'],
    ['TRACE', '/healthz', 'GET, HEAD'],
    ['PROPFIND', '/', 'GET, HEAD'],
  ])('%s %s that the path does not have is a 405 with Allow', async (method, path, allow) => {
    await using scene = await createAdminScene();
    const response = await scene.ask(method, path);
    expect([response.head.status, field(response, 'allow')]).toEqual([405, allow]);
    expect(scene.records).toHaveLength(1);
  });

  it('gets a 405 without a token only where the path needs no token', async () => {
    await using scene = await createAdminScene();
    expect((await scene.ask('POST', '/healthz', { fields: [LOCAL] })).head.status).toBe(405);
    expect((await scene.ask('DELETE', '/v1/proxy_config', { fields: [LOCAL] })).head.status).toBe(401);
  });
});

describe('every response', () => {
  it.each([
    ['GET', '/healthz', {}],
    ['GET', '/v1/ca.pem', {}],
    ['HEAD', '/v1/proxy_config', {}],
    ['GET', '/v1/proxy_config', { more: ['If-None-Match: *'] }],
    ['GET', '/nothing', {}],
    ['GET', '/v1/proxy_config', { fields: ['Host: attacker.test'] }],
    ['GET', '/v1/proxy_config', { fields: [LOCAL] }],
    ['PUT', '/v1/proxy_config', { body: {}, more: ['Origin: http://attacker.test'] }],
    ['PUT', '/v1/proxy_config', { body: '{' }],
    ['DELETE', '/v1/sandboxes/default', {}],
    [
      'OPTIONS',
      '/v1/proxy_config',
      { more: ['Origin: http://a.test', 'Access-Control-Request-Method: PUT'] },
    ],
    ['GET', 'not-a-path', {}],
  ])('has the fields that exclude caches and foreign pages: %s %s', async (method, path, options) => {
    await using scene = await createAdminScene();
    const response = await scene.ask(method, path, options);
    expect(field(response, 'cache-control')).toBe('no-store');
    expect(field(response, 'x-content-type-options')).toBe('nosniff');
    expect(field(response, 'x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(response.head.text).not.toMatch(/^(access-control-|set-cookie)/im);
  });

  it('on one connection comes in the order of the requests', async () => {
    await using scene = await createAdminScene();
    await using client = await scene.connect();
    const statuses = [];
    for (const bytes of [
      request('PUT', '/v1/proxy_config', { body: {} }),
      request('GET', '/v1/sandboxes'),
      request('GET', '/nothing'),
    ]) {
      await client.send(bytes);
      statuses.push((await readResponse(client)).head.status);
    }
    expect(statuses).toEqual([200, 200, 404]);
  });
});
