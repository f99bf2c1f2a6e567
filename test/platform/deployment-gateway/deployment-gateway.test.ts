// The gateway of deployments over real sockets: who is let in, what instances and clients see of each other, and where requests go.
import { once } from 'node:events';
import { request as sendRequest } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { createLog } from '../../../src/base/log.ts';
import { noProxies, parseTrustedProxies } from '../../../src/platform/api/client-address.ts';
import { createDeploymentGateway } from '../../../src/platform/deployment-gateway/deployment-gateway.ts';
import {
  createDeploymentScene,
  type DeploymentScene,
  dial,
  type Handle,
  type TestInstance,
  testSettings,
} from './gateway-scene.ts';

let scene: DeploymentScene;
beforeAll(async () => {
  scene = await createDeploymentScene();
});
afterAll(() => scene?.[Symbol.asyncDispose]());

const PLATFORM_KEY = /sp_(?:sk|pt)_/;

describe('without a handler', () => {
  it('a caller with a key of the workspace is named to the instance, which never gets the key', async () => {
    const deployment = scene.deployment();
    const instance = await scene.serve(deployment);
    const url = `${scene.gateway.addressOf(deployment)}/threads/1?a=b`;
    const headers = {
      'X-Sallyport-Gateway-Token': 'forged',
      x_sallyport_caller: 'forged',
      'X-Sallyport-Control-Token': 'forged',
      'X-Forwarded-Prefix': '/forged',
      'X-Team': 'one',
      Cookie: `sallyport=session; deployment-${deployment.id}-a=1; deployment-other-b=2; c=3`,
    };
    const response = await scene.fetch(url, { headers });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    const [seen] = instance.seen;
    expect(seen?.url).toBe('/threads/1?a=b');
    expect(seen?.headers).toMatchObject({
      'x-sallyport-gateway-token': instance.gatewayToken,
      'x-sallyport-caller': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'x-sallyport-caller-key': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'x-forwarded-prefix': `/d/${deployment.id}`,
      'x-forwarded-for': '127.0.0.1',
      'x-team': 'one',
      cookie: 'a=1',
    });
    expect(JSON.stringify(seen?.rawHeaders)).not.toMatch(/forged|session/);
    expect(JSON.stringify(seen?.rawHeaders)).not.toMatch(PLATFORM_KEY);
    expect(seen?.headers['x-sallyport-control-token']).toBeUndefined();
  });

  it('a member is named by the user, and a bearer token counts too', async () => {
    const deployment = scene.deployment();
    const instance = await scene.serve(deployment);
    const member = await scene.api.addMemberKey(scene.organization, 'ORGANIZATION_USER', {
      ...{ id: scene.workspace, role: 'WORKSPACE_USER' },
    });
    const headers = { Authorization: `Bearer ${member}` };
    const url = `${scene.gateway.addressOf(deployment)}/`;
    expect((await scene.fetch(url, { key: '', headers })).status).toBe(200);
    const { caller, key } = {
      caller: instance.seen[0]?.headers['x-sallyport-caller'],
      key: instance.seen[0]?.headers['x-sallyport-caller-key'],
    };
    expect(caller).not.toBe(key);
    expect(instance.seen[0]?.headers.authorization).toBeUndefined();
  });

  it('to others it does not exist, with the same response as for what does not', async () => {
    const other = await scene.api.addOrganization();
    const foreign = await scene.api.addServiceKey(other, 'ORGANIZATION_ADMIN');
    const second = await scene.api.addWorkspace(scene.organization);
    const neighbour = await scene.api.addServiceKey(scene.organization, 'WORKSPACE_ADMIN', second);
    const deployment = scene.deployment();
    const instance = await scene.serve(deployment);
    const ask = async (id: string, key: string) => {
      const response = await scene.fetch(`${scene.gateway.url}/d/${id}/x`, { key });
      const { date: _, ...fields } = Object.fromEntries(response.headers);
      return { status: response.status, text: await response.text(), fields };
    };
    for (const key of [foreign, neighbour, '', 'wrong']) {
      const [there, absent] = [await ask(deployment.id, key), await ask(crypto.randomUUID(), key)];
      expect(there).toEqual(absent);
      expect([404, 401]).toContain(there.status);
    }
    expect((await ask(deployment.id, foreign)).text).toBe('{"detail":"Deployment not found"}\n');
    expect((await ask(crypto.randomUUID(), scene.key)).status).toBe(404);
    expect((await ask(deployment.id, '')).status).toBe(401);
    expect(instance.seen).toEqual([]);
  });

  it('who may only read is not let in to change something', async () => {
    const deployment = scene.deployment();
    await scene.serve(deployment);
    const viewer = await scene.api.addServiceKey(scene.organization, 'WORKSPACE_VIEWER', scene.workspace);
    const ask = async (method: string, path: string) =>
      (await scene.fetch(`${scene.gateway.addressOf(deployment)}${path}`, { method, key: viewer })).status;
    expect(await ask('GET', '/threads/1')).toBe(200);
    expect(await ask('POST', '/threads/search')).toBe(200);
    expect(await ask('POST', '/threads/1/runs')).toBe(403);
  });

  it('a preflight reaches the deployment, which says which pages may call it, and nobody is named', async () => {
    const deployment = scene.deployment();
    const instance = await scene.serve(deployment);
    const headers = { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' };
    const url = `${scene.gateway.addressOf(deployment)}/threads`;
    expect((await scene.fetch(url, { method: 'OPTIONS', key: '', headers })).status).toBe(200);
    expect(instance.seen[0]?.headers['x-sallyport-caller']).toBeUndefined();
    expect((await scene.fetch(url, { method: 'OPTIONS', key: '' })).status).toBe(401);
    expect((await scene.fetch(url, { method: 'GET', key: '', headers })).status).toBe(401);
  });

  it('a key that is revoked ends what it reads', async () => {
    const deployment = scene.deployment();
    const closed = Promise.withResolvers<void>();
    const instance = await scene.serve(deployment, {
      handle: (_, outgoing) => void outgoing.on('close', () => closed.resolve()).write('data: 1\n\n'),
    });
    const key = await scene.api.addServiceKey(scene.organization, 'WORKSPACE_USER', scene.workspace);
    const response = await scene.fetch(`${scene.gateway.addressOf(deployment)}/stream`, { key });
    const reader = response.body?.getReader();
    await reader?.read();
    const id = instance.seen[0]?.headers['x-sallyport-caller-key'];
    await scene.api.database.store.db.deleteFrom('api_keys').where('id', '=', String(id)).execute();
    await scene.api.admission.streams.sweep(scene.organization);
    await expect(reader?.read()).rejects.toThrow();
    await closed.promise;
  });
});

describe('with a handler', () => {
  it('what the client has sent passes, but for keys of the platform', async () => {
    const deployment = scene.deployment();
    const instance = await scene.serve(deployment, { access: 'handler' });
    const url = `${scene.gateway.addressOf(deployment)}/threads`;
    const own = { Authorization: 'Bearer of-the-user', 'X-Api-Key': 'of-the-author', 'X-Tenant-Id': 't' };
    expect((await scene.fetch(url, { key: '', headers: own })).status).toBe(200);
    expect(instance.seen[0]?.headers).toMatchObject({
      ...{ authorization: 'Bearer of-the-user', 'x-api-key': 'of-the-author', 'x-tenant-id': 't' },
      'x-sallyport-gateway-token': instance.gatewayToken,
    });
    expect(instance.seen[0]?.headers['x-sallyport-caller']).toBeUndefined();
    const basic = `Basic ${Buffer.from(`user:${scene.key}`).toString('base64')}`;
    for (const authorization of [`Bearer ${scene.key}`, basic])
      await scene.fetch(url, { headers: { Authorization: authorization, 'X-Sallyport-Caller': 'forged' } });
    for (const { rawHeaders } of instance.seen.slice(1)) {
      expect(JSON.stringify(rawHeaders)).not.toMatch(/sp_|forged/);
      expect(rawHeaders.map((name) => name.toLowerCase())).not.toContain('authorization');
    }
  });

  it('the studio is named where its key is of the workspace, and otherwise the handler decides', async () => {
    const deployment = scene.deployment();
    const instance = await scene.serve(deployment, { access: 'handler' });
    const url = `${scene.gateway.addressOf(deployment)}/threads`;
    const headers = { 'X-Auth-Scheme': 'langsmith' };
    const other = await scene.api.addServiceKey(await scene.api.addOrganization(), 'ORGANIZATION_ADMIN');
    for (const key of [scene.key, other, 'own', '']) await scene.fetch(url, { key, headers });
    const named = instance.seen.map((one) => one.headers['x-sallyport-caller'] !== undefined);
    expect(named).toEqual([true, false, false, false]);
    expect(instance.seen.map((one) => one.headers['x-api-key'])).toEqual([
      undefined,
      undefined,
      'own',
      undefined,
    ]);
  });
});

describe('nothing ready', () => {
  it('is a 503 that says when to try again, for those who are let in', async () => {
    const deployment = scene.deployment();
    const url = `${scene.gateway.addressOf(deployment)}/`;
    scene.gateway.targets.turn(deployment, undefined);
    expect((await scene.fetch(url, { key: '' })).status).toBe(401);
    const response = await scene.fetch(url);
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
      ...[503, '1', { detail: 'No revision of this deployment is ready: try again' }],
    ]);
    scene.gateway.targets.turn(deployment, { id: 'r', access: 'handler', instances: [] });
    expect((await scene.fetch(url, { key: '' })).status).toBe(503);
    scene.gateway.targets.remove(deployment.id);
    expect((await scene.fetch(url)).status).toBe(404);
  });

  it('an instance that has ended is a 503, and others serve meanwhile', async () => {
    const deployment = scene.deployment();
    const [gone, there] = [await scene.addInstance(), await scene.addInstance()];
    const url = `${scene.gateway.addressOf(deployment)}/`;
    scene.gateway.targets.turn(deployment, { id: 'r', access: 'gateway', instances: [gone, there] });
    await gone.end();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i += 1) statuses.push((await scene.fetch(url)).status);
    expect(statuses.filter((status) => status === 503).length).toBeLessThanOrEqual(1);
    expect(statuses.slice(2)).toEqual([200, 200, 200, 200]);
  });

  it('an instance that has just ended is not noticed by clients, while another one of its revision is ready', async () => {
    const deployment = scene.deployment();
    const echo: Handle = (incoming, outgoing) => void incoming.pipe(outgoing);
    const [ended, other, later] = await Promise.all([1, 2, 3].map(() => scene.addInstance(echo)));
    const shared = [ended, other, later].map((one) => ({ ...(one as TestInstance), gatewayToken: 'shared' }));
    const revision = { id: crypto.randomUUID(), access: 'gateway' as const, instances: shared };
    scene.gateway.targets.turn(deployment, revision);
    await ended?.end();
    const url = `${scene.gateway.url}/d/${deployment.id}/x`;
    const bodies = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];
    const responses = await Promise.all(
      bodies.map((body) =>
        scene.fetch(url, { method: 'POST', body }).then(async (one) => [one.status, await one.text()]),
      ),
    );
    expect(responses).toEqual(bodies.map((body) => [200, body]));
    const seen = [other, later].flatMap((one) => one?.seen ?? []);
    expect(seen).toHaveLength(bodies.length);
    expect(new Set(seen.map(({ headers }) => headers['x-sallyport-gateway-token']))).toEqual(
      new Set(['shared']),
    );
    await Promise.all([other?.end(), later?.end()]);
    expect((await scene.fetch(url, { method: 'POST', body: 'x' })).status).toBe(503);
    const inFlight = shared.map(({ id }) => scene.gateway.targets.inFlight(id)?.requests);
    expect(inFlight).toEqual([0, 0, 0]);
  });

  it('a path that names no deployment is a 404 for everybody', async () => {
    for (const path of ['/', '/d/', '/d/x', '/threads']) {
      const response = await scene.fetch(`${scene.gateway.url}${path}`, { key: '' });
      expect([response.status, Object.keys((await response.json()) as object)]).toEqual([404, ['detail']]);
    }
  });
});

describe('what a deployment responds', () => {
  it('leads back to itself in redirects, and leaves what clients append to their address', async () => {
    const deployment = scene.deployment();
    const address = scene.gateway.addressOf(deployment);
    const { host } = new URL(address);
    const prefix = `/d/${deployment.id}`;
    const respond = async (status: number, location: string) => {
      const fields = { Location: location, 'Content-Location': '/threads/1/runs/2', 'Content-Length': '0' };
      await scene.serve(deployment, {
        handle: (_, outgoing) => void outgoing.writeHead(status, fields).end(),
      });
      const { headers } = await scene.fetch(`${address}/x`);
      expect(headers.get('content-location')).toBe('/threads/1/runs/2');
      return headers.get('location');
    };
    expect(await respond(302, '/login')).toBe(`${prefix}/login`);
    expect(await respond(307, `http://${host}/login`)).toBe(`${address}/login`);
    expect(await respond(302, `${prefix}/login`)).toBe(`${prefix}/login`);
    expect(await respond(302, 'https://elsewhere.example.com/')).toBe('https://elsewhere.example.com/');
    expect(await respond(201, '/things/1')).toBe(`${prefix}/things/1`);
    expect(await respond(200, '/threads/1/runs/2/stream')).toBe('/threads/1/runs/2/stream');
  });

  it('sets cookies for itself alone, and says nothing for the origin', async () => {
    const deployment = scene.deployment();
    const fields = [
      'Set-Cookie',
      'a=1; Domain=example.com; Path=/',
      'Set-Cookie',
      'sallyport=x',
      'Service-Worker-Allowed',
      '/',
    ];
    await scene.serve(deployment, { handle: (_, outgoing) => void outgoing.writeHead(200, fields).end() });
    const { headers } = await scene.fetch(`${scene.gateway.addressOf(deployment)}/`);
    expect(headers.getSetCookie()).toEqual([`deployment-${deployment.id}-a=1; Path=/d/${deployment.id}`]);
    expect(headers.get('service-worker-allowed')).toBeNull();
    expect(headers.get('content-security-policy')).toMatch(/^sandbox /);
  });

  it('arrives as it is sent: events of a stream, and an end without a length', async () => {
    const deployment = scene.deployment();
    const next: (() => void)[] = [];
    await scene.serve(deployment, {
      handle(_, outgoing) {
        outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
        next.push(
          () => outgoing.write('data: 1\n\n'),
          () => outgoing.end('data: 2\n\n'),
        );
      },
    });
    const response = await scene.fetch(`${scene.gateway.addressOf(deployment)}/stream`);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      next.shift()?.();
      expect((await reader?.read())?.value).toBe(text);
    }
    expect((await reader?.read())?.done).toBe(true);
  });

  it('that is cut stays cut', async () => {
    const deployment = scene.deployment();
    await scene.serve(deployment, {
      handle: (_, outgoing) => void outgoing.write('part', () => outgoing.destroy()),
    });
    const response = await scene.fetch(`${scene.gateway.addressOf(deployment)}/`);
    await expect(response.text()).rejects.toThrow();
  });

  it('may come to a client that has ended its half', async () => {
    const deployment = scene.deployment();
    await scene.serve(deployment, {
      handle: (incoming, outgoing) => void incoming.on('end', () => outgoing.end('late')).resume(),
    });
    const { hostname, port, host } = new URL(scene.gateway.url);
    const client = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const head = `POST /d/${deployment.id}/x HTTP/1.1\r\nHost: ${host}\r\nX-Api-Key: ${scene.key}\r\n`;
    client.end(`${head}Content-Length: 2\r\n\r\nab`);
    let text = '';
    client.setEncoding('latin1').on('data', (piece: string) => (text += piece));
    await once(client, 'end');
    expect(text).toMatch(/^HTTP\/1\.1 200 [^]*late/);
    client.destroy();
  });
});

describe('WebSockets', () => {
  it('pass, and those of an instance that is drained are asked to connect again', async () => {
    const deployment = scene.deployment();
    const old = await scene.serve(deployment);
    const address = scene.gateway.addressOf(deployment);
    const opened = once(old.sockets, 'connection') as Promise<[WebSocket]>;
    const client = dial(address, '/ws', scene.key);
    const [[inside]] = await Promise.all([opened, once(client, 'open')]);
    inside.on('message', (data) => inside.send(`echo ${String(data)}`));
    client.send('one');
    expect(String((await once(client, 'message'))[0])).toBe('echo one');
    const next = await scene.serve(deployment);
    client.send('two');
    expect(String((await once(client, 'message'))[0])).toBe('echo two');
    const closes = Promise.all([once(client, 'close'), once(inside, 'close')]);
    expect(scene.gateway.targets.inFlight(old.id)).toEqual({ requests: 1, upgraded: 1 });
    await scene.gateway.targets.drained(old.id);
    expect((await closes).map(([code]) => code)).toEqual([1001, 1001]);
    const again = once(next.sockets, 'connection');
    const second = dial(address, '/ws', scene.key);
    await Promise.all([again, once(second, 'open')]);
    second.terminate();
  });

  it('need a key with the permission to change', async () => {
    const deployment = scene.deployment();
    await scene.serve(deployment);
    const viewer = await scene.api.addServiceKey(scene.organization, 'WORKSPACE_VIEWER', scene.workspace);
    for (const [key, status] of [
      ['', 401],
      [viewer, 403],
    ] as const) {
      const client = dial(scene.gateway.addressOf(deployment), '/ws', key);
      const [, response] = await once(client, 'unexpected-response');
      expect(response.statusCode).toBe(status);
      client.terminate();
    }
  });
});

describe('a switch', () => {
  it('lets what is in flight end, sends what comes to the new revision, and is over then', async () => {
    const deployment = scene.deployment();
    const ends: (() => void)[] = [];
    const old = await scene.serve(deployment, {
      handle: (_, outgoing) => void ends.push(() => void outgoing.end('old')),
    });
    const url = `${scene.gateway.addressOf(deployment)}/`;
    const first = scene.fetch(url);
    await once(old.server, 'request');
    await scene.serve(deployment, { handle: (_, outgoing) => void outgoing.end('new') });
    expect(await (await scene.fetch(url)).text()).toBe('new');
    let isDrained = false;
    const drained = scene.gateway.targets.drained(old.id).then(() => (isDrained = true));
    expect([isDrained, scene.gateway.targets.inFlight(old.id)?.requests]).toEqual([false, 1]);
    ends[0]?.();
    expect(await (await first).text()).toBe('old');
    await drained;
    expect(old.seen).toHaveLength(1);
  });

  it('from a handler to the gateway decides again who may call', async () => {
    const deployment = scene.deployment();
    const old = await scene.serve(deployment, { access: 'handler' });
    const url = `${scene.gateway.addressOf(deployment)}/`;
    expect((await scene.fetch(url, { key: '' })).status).toBe(200);
    await scene.serve(deployment);
    expect((await scene.fetch(url, { key: '' })).status).toBe(401);
    expect(old.seen).toHaveLength(1);
  });
});

describe('limits', () => {
  it('an organization has its part of what runs at once, and a key half of that', async () => {
    await using small = await createDeploymentScene({ settings: { organizationRequests: 4 } });
    const deployment = small.deployment();
    const instance = await small.serve(deployment, { handle: () => undefined });
    const url = `${small.gateway.addressOf(deployment)}/`;
    const left = new AbortController();
    const held = [1, 2].map(() => small.fetch(url, { signal: left.signal }).catch(() => undefined));
    while (instance.seen.length < 2) await once(instance.server, 'request');
    const response = await small.fetch(url);
    expect([response.status, Object.keys((await response.json()) as object)]).toEqual([429, ['detail']]);
    const other = await small.api.addServiceKey(small.organization, 'WORKSPACE_USER', small.workspace);
    const third = small.fetch(url, { key: other, signal: left.signal }).catch(() => undefined);
    while (instance.seen.length < 3) await once(instance.server, 'request');
    left.abort();
    await Promise.all([...held, third]);
  });

  it('a large body passes in both directions', { tags: 'long' }, async () => {
    const deployment = scene.deployment();
    await scene.serve(deployment, { handle: (incoming, outgoing) => void incoming.pipe(outgoing) });
    const bytes = 100 * 1024 * 1024;
    const response = await scene.fetch(`${scene.gateway.addressOf(deployment)}/`, {
      ...{ method: 'POST', body: Buffer.alloc(bytes, 'a') },
    });
    let received = 0;
    for await (const piece of response.body ?? []) received += piece.length;
    expect(received).toBe(bytes);
  });
});

describe('by host name', () => {
  it('each deployment has all paths, and its own cookies', async () => {
    const trustedProxies = parseTrustedProxies(['127.0.0.1']);
    if (trustedProxies === undefined) throw new Error('no proxies');
    await using named = await createDeploymentScene({
      ...{ trustedProxies, settings: { domain: 'apps.test', publicUrl: 'https://gw.test' } },
    });
    const deployment = named.deployment({ name: 'My App' });
    const fields = { 'Set-Cookie': 'a=1; Domain=test', Location: '/login' };
    const instance = await named.serve(deployment, {
      handle: (_, outgoing) => void outgoing.writeHead(302, fields).end(),
    });
    const { host, origin } = new URL(named.gateway.addressOf(deployment));
    expect(origin).toBe(`https://my-app-${deployment.id.slice(0, 8)}.apps.test`);
    const { hostname, port } = new URL(named.gateway.listening);
    const ask = (given: string): Promise<{ status: number | undefined; headers: object }> =>
      new Promise((resolve, reject) => {
        const headers = {
          ...{ Host: given, 'X-Api-Key': named.key },
          ...{ 'X-Forwarded-For': '192.0.2.7', 'X-Forwarded-Proto': 'https' },
        };
        sendRequest({ hostname, port, path: '/d/x', headers }, (response) => {
          response.resume();
          resolve({ status: response.statusCode, headers: response.headers });
        })
          .on('error', reject)
          .end();
      });
    expect(await ask(host)).toMatchObject({
      ...{ status: 302, headers: { location: '/login', 'set-cookie': ['a=1'] } },
    });
    expect(instance.seen[0]?.url).toBe('/d/x');
    expect(instance.seen[0]?.headers).toMatchObject({
      ...{ host, 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': 'https', 'x-forwarded-host': host },
    });
    expect(instance.seen[0]?.headers['x-forwarded-prefix']).toBeUndefined();
    expect((await ask('other.apps.test')).status).toBe(404);
  });
});

describe('a start', () => {
  it.each([
    [{ listen: { host: '0.0.0.0', port: 0 } }, 'runner.gateway.public_url must be set'],
    [{ domain: 'a.test', publicUrl: 'https://gw.a.test' }, 'must have a host outside of a.test'],
  ])('with %j says what to change', async (given, message) => {
    const settings = { ...testSettings, ...given };
    const { admission } = scene.api;
    const log = createLog('silent', { write: () => undefined });
    const options = { settings, admission, trustedProxies: noProxies, log, drainMs: 0 };
    await expect(createDeploymentGateway(options)).rejects.toThrow(message);
  });
});
