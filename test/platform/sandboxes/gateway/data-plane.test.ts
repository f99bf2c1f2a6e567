// The data plane through the gateway: who may use it, what reaches a box, what reaches the client, and what ends it.
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseKey } from '../../../../src/platform/identity/api-key.ts';
import { sendRevocation } from '../../../../src/platform/identity/revocation-notices.ts';
import { RuntimeError } from '../../../../src/platform/runtime/contract.ts';
import { BOXES } from '../box-scene.ts';
import { createGatewayScene, type GatewayScene } from './gateway-scene.ts';

let scene: GatewayScene;
let box: { id: string; dataplane_url: string };
beforeAll(async () => {
  scene = await createGatewayScene({ organization_requests: 6 });
  box = await scene.create({ name: 'plane' });
});
afterAll(() => scene[Symbol.asyncDispose]());

const ABSENT = '00000000-0000-4000-8000-000000000000';
const other = (id: string): string => box.dataplane_url.replace(box.id, id);

describe('dataplane_url', () => {
  it('is that of the gateway of its machine, and stays over stop and start', async () => {
    expect(box.dataplane_url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+/boxes/${box.id}$`));
    const { dataplane_url: url, name, id } = await scene.create({});
    await scene.ask('POST', `${BOXES}/${name}/stop`, {});
    await scene.until(id, 'stopped');
    expect((await scene.ask('GET', `${BOXES}/${name}`)).body.dataplane_url).toBe(url);
    expect((await scene.ask('POST', `${BOXES}/${name}/start`, {})).body.dataplane_url).toBe(url);
    await scene.until(id, 'ready');
    expect((await scene.ask('PATCH', `${BOXES}/${name}`, { labels: {} })).body.dataplane_url).toBe(url);
    const { items } = (await scene.ask('GET', BOXES)).body;
    expect(items.find((one: { id: string }) => one.id === id).dataplane_url).toBe(url);
    await scene.ask('DELETE', `${BOXES}/${name}`);
  });
});

describe('what reaches the box', () => {
  it('is the path behind the prefix, without a key, a cookie or another credential', async () => {
    const response = await scene.fetch(`${box.dataplane_url}/download?path=/a%2Fb&x`, {
      headers: {
        Cookie: 'sallyport=1',
        Authorization: `Bearer ${scene.key}`,
        'X-Tenant-Id': scene.workspaceId,
        'X-Service-Key': 'k',
        'X-Forwarded-For': '1.2.3.4',
        Range: 'bytes=0-1',
      },
    });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    const seen = scene.seen.at(-1);
    expect([seen?.box, seen?.method, seen?.url]).toEqual([box.id, 'GET', '/download?path=/a%2Fb&x']);
    expect(JSON.stringify(seen)).not.toContain(scene.key);
    expect(Object.keys(seen?.headers ?? {})).toContain('range');
    expect(Object.keys(seen?.headers ?? {}).join()).not.toMatch(
      /cookie|authorization|api-key|tenant|service/,
    );
    expect(seen?.headers['x-forwarded-for']).toBe('127.0.0.1');
  });
});

describe('what the box responds', () => {
  it('is no page of this host, sets no cookie and leads nowhere', async () => {
    scene.respond = (_, outgoing) =>
      outgoing
        .writeHead(302, {
          'Content-Type': 'text/html',
          ETag: '"a"',
          'Set-Cookie': 'sallyport=stolen',
          Location: 'https://evil.test/',
          Refresh: '0; url=https://evil.test/',
          'Strict-Transport-Security': 'max-age=1',
          'Clear-Site-Data': '"*"',
          'Access-Control-Allow-Origin': '*',
          'Content-Security-Policy': "default-src '*'",
          'Service-Worker-Allowed': '/',
        })
        .end('<script>1</script>');
    const response = await scene.fetch(`${box.dataplane_url}/download?path=/a`);
    expect(await response.text()).toBe('<script>1</script>');
    const names = [...response.headers.keys()].filter(
      (name) => !/^(?:date|connection|keep-alive)$/.test(name),
    );
    expect(names.toSorted()).toEqual([
      'cache-control',
      'content-security-policy',
      'content-type',
      'cross-origin-resource-policy',
      'etag',
      'transfer-encoding',
      'x-content-type-options',
    ]);
    expect(response.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    scene.respond = (_, outgoing) => void outgoing.end('ok');
  });
});

type Case = readonly [
  who: string,
  init: () => Parameters<GatewayScene['fetch']>[1],
  status: number,
  error: string,
];

describe('a caller', () => {
  it.each<Case>([
    ['without a key', () => ({ key: '' }), 401, 'Unauthenticated'],
    [
      'with the session of a browser',
      () => ({ key: '', headers: { Cookie: 'sallyport=x; __Host-sallyport=x' } }),
      401,
      'Unauthenticated',
    ],
    ['with a wrong key', () => ({ key: 'lsv2_sk_wrong' }), 401, 'Unauthenticated'],
    ['with two keys', () => ({ headers: { Authorization: 'Bearer another' } }), 401, 'Unauthenticated'],
    [
      'with another kind of credentials',
      () => ({ key: '', headers: { Authorization: 'Basic eDp5' } }),
      401,
      'Unauthenticated',
    ],
    [
      'of another organization by the header',
      () => ({ headers: { 'X-Organization-Id': ABSENT } }),
      403,
      'Forbidden',
    ],
    ['of another workspace by the header', () => ({ headers: { 'X-Tenant-Id': ABSENT } }), 403, 'Forbidden'],
    ['with a malformed workspace', () => ({ headers: { 'X-Tenant-Id': 'x' } }), 422, 'ValidationError'],
  ])('%s is refused before anything is dialled', async (_, init, status, error) => {
    const before = scene.runtime.calls.length;
    const response = await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST', ...init() });
    const { detail } = (await response.json()) as { detail: { error: string; message: string } };
    expect([response.status, detail.error, typeof detail.message]).toEqual([status, error, 'string']);
    if (status === 401)
      expect([/key/i.test(detail.message), response.headers.get('www-authenticate')]).toEqual([
        true,
        'Bearer',
      ]);
    expect(scene.runtime.calls.slice(before).filter(({ call }) => call === 'connect')).toEqual([]);
  });

  it('with a bearer token is let in', async () => {
    const headers = { Authorization: `Bearer ${scene.key}` };
    expect(
      (await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST', key: '', headers })).status,
    ).toBe(200);
  });

  it('who may only read sandboxes downloads and searches, and does nothing else', async () => {
    const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_VIEWER', scene.workspaceId);
    const status = async (method: string, path: string): Promise<number> =>
      (await scene.fetch(`${box.dataplane_url}${path}`, { method, key })).status;
    for (const [method, path] of [
      ['GET', '/download?path=/'],
      ['HEAD', '/download'],
      ['POST', '/glob'],
      ['POST', '/grep'],
    ] as const)
      expect([path, await status(method, path)]).toEqual([path, 200]);
    for (const path of [
      '/execute',
      '/upload?path=/download',
      '/execute/ws',
      '/glob/',
      '//glob',
      '/Glob',
      '/gl%6fb',
      '/',
      '',
    ])
      expect([path, await status('POST', path)]).toEqual([path, 403]);
  });

  it.each(['an absent id', 'a box of another workspace', 'a box of another organization'])(
    'gets the same 404 for %s',
    async (which) => {
      const organizationId = which.endsWith('organization')
        ? await scene.api.addOrganization()
        : scene.organizationId;
      const key = await scene.api.addServiceKey(
        organizationId,
        'WORKSPACE_ADMIN',
        await scene.api.addWorkspace(organizationId),
      );
      const url = which === 'an absent id' ? other(ABSENT) : box.dataplane_url;
      const response = await scene.fetch(`${url}/execute`, { method: 'POST', key });
      expect([response.status, await response.json()]).toEqual([
        404,
        { detail: { error: 'NotFound', message: 'There is no such sandbox in this workspace' } },
      ]);
    },
  );

  it.each([
    '/',
    '/boxes/',
    '/boxes/plane/execute',
    `/boxes/${ABSENT.toUpperCase().replace(/^0/, 'A')}/x`,
    `/boxes/${ABSENT}x/execute`,
    '/services',
  ])('gets a 404 for a path of nothing: %s', async (path) => {
    const response = await scene.fetch(new URL(path, box.dataplane_url).href);
    expect([
      response.status,
      ((await response.json()) as { detail: { error: string } }).detail.error,
    ]).toEqual([404, 'NotFound']);
  });
});

describe('a request', () => {
  it('of an organization that runs too many is a 429, and those of others are served', async () => {
    const held: (() => void)[] = [];
    const arrived = Promise.withResolvers<void>();
    scene.respond = (_, outgoing) => {
      held.push(() => outgoing.end('late'));
      if (held.length === 3) arrived.resolve();
    };
    const url = `${box.dataplane_url}/execute`;
    const running = [1, 2, 3].map(() => scene.fetch(url, { method: 'POST' }));
    await arrived.promise;
    // Half of the six of the organization.
    const refused = await scene.fetch(url, { method: 'POST' });
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
    scene.respond = (_, outgoing) => void outgoing.end('ok');
    const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', scene.workspaceId);
    expect((await scene.fetch(url, { method: 'POST', key })).status).toBe(200);
    for (const end of held) end();
    expect(await Promise.all(running.map(async (one) => (await one).text()))).toEqual([
      'late',
      'late',
      'late',
    ]);
    expect((await scene.fetch(url, { method: 'POST' })).status).toBe(200);
  });

  it('for which there is no connection into the box can be repeated', async () => {
    scene.runtime.onCall = ({ call }) => {
      if (call === 'connect') throw new RuntimeError('failed', 'It does not run');
    };
    const response = await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST' });
    scene.runtime.onCall = () => undefined;
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toEqual([
      503,
      '1',
      { detail: { error: 'ServiceUnavailable', message: expect.stringContaining('being started again') } },
    ]);
  });
});

describe('a key that is revoked', () => {
  it('cuts its WebSocket and its running command, and no others', async () => {
    const key = await scene.api.addServiceKey(scene.organizationId, 'WORKSPACE_ADMIN', scene.workspaceId);
    const begun = Promise.withResolvers<void>();
    scene.respond = (incoming, outgoing) => {
      incoming.resume();
      outgoing.write('begun', () => begun.resolve());
    };
    const sockets = [scene.dial(box.dataplane_url, key), scene.dial(box.dataplane_url)];
    await Promise.all(sockets.map((socket) => once(socket, 'open')));
    const running = scene
      .fetch(`${box.dataplane_url}/execute`, { method: 'POST', key })
      .then((response) => response.text());
    const ended = running.then(
      () => 'whole',
      () => 'cut',
    );
    await begun.promise;
    const closed = once(sockets[0]!, 'close');
    const { db } = scene.api.database.owner;
    await db
      .deleteFrom('api_keys')
      .where('hash', '=', parseKey(key)?.hash ?? Buffer.of())
      .execute();
    await sendRevocation(db, scene.organizationId);
    expect((await closed)[0]).toBe(1006);
    expect(await ended).toBe('cut');
    expect(sockets[1]?.readyState).toBe(1);
    expect((await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST', key })).status).toBe(401);
    sockets[1]?.terminate();
    scene.respond = (_, outgoing) => void outgoing.end('ok');
  });
});

// Last: the address of this machine has sent too many wrong keys then.
describe('wrong keys', () => {
  it('count with those of the API, and right ones still work', async () => {
    const statuses = new Set<number>();
    for (let n = 0; n < 31; n += 1)
      statuses.add(
        (await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST', key: `lsv2_sk_${n}` })).status,
      );
    expect([...statuses]).toEqual([401, 429]);
    const wrong = await scene.ask('GET', BOXES, undefined, { key: 'lsv2_sk_wrong', peer: '127.0.0.1' });
    expect(wrong.status).toBe(429);
    expect((await scene.fetch(`${box.dataplane_url}/execute`, { method: 'POST' })).status).toBe(200);
  });
});
