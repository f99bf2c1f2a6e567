// I8: through the proxy nothing reaches the admin API, an own listener, a metadata service, a link-local address, or
// unlisted loopback and private networks. The admin API itself requires its token. Everything that a setting can allow is
// allowed, so that each test depends on one check.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrigin, jsonResponse } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';
import { head } from './credential-scene.ts';
import { type DialLedger, openDialLedger } from './dial-ledger.ts';
import {
  type Attempt,
  type EntryPoint,
  type Scene,
  anyPort,
  createReachScene,
  documentsFor,
  entryPoints,
  ownAddresses,
  redirectOrigin,
  ruleFor,
} from './reach-scene.ts';
import { everyNth } from '../support/run-size.ts';

let ledger: DialLedger;
beforeAll(async () => {
  ledger = await openDialLedger();
});
afterAll(() => ledger[Symbol.dispose]());

const names = {
  'api.test': ['127.0.0.1'],
  'four.test': ['127.0.0.1'],
  'six.test': ['::1'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'translated.test': ['64:ff9b::7f00:1'],
  'mixed.test': ['8.8.8.8', '127.0.0.1'],
  'late.test': [...Array.from({ length: 15 }, (_, i) => `8.8.8.${i + 1}`), '127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  'mixed-metadata.test': ['8.8.8.8', '169.254.169.254'],
  'intra.test': ['10.0.0.1'],
  'mixed-intra.test': ['8.8.8.8', 'fd12::1'],
};

const byName = ['localhost', 'sub.localhost', 'LocalHost', 'localhost.'];
const v4 = ['127.0.0.1', 'four.test', 'FOUR.test', 'four.test.', 'mixed.test', 'late.test'];
const v4InV6 = [
  '[::ffff:127.0.0.1]',
  '[::FFFF:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[2002:7f00:1::5]',
  '[::127.0.0.1]',
  '[::ffff:0:7f00:1]',
  '[2001:0:7f00:1::]',
  'mapped.test',
  'translated.test',
];
const v6 = ['[::1]', '[0:0:0:0:0:0:0:1]', '[::0001]', 'six.test'];
const anyLoopback = ['127.0.0.2', '127.255.255.254', '[::ffff:127.9.9.9]'];
const anyInterface = [...ownAddresses('IPv4'), ...ownAddresses('IPv6')];

/** The spellings that reach a listener, by the address that it is bound to. */
const spellingsOf: Readonly<Record<string, readonly string[]>> = {
  '127.0.0.1': [...byName, ...v4, ...v4InV6],
  '0.0.0.0': [...byName, ...v4, ...v4InV6, ...anyLoopback, ...anyInterface],
  '[::1]': [...byName, ...v6],
  '[::]': [...byName, ...v4, ...v4InV6, ...v6, ...anyLoopback, ...anyInterface],
};
const unspecified = ['0.0.0.0', '[::]', '[0::0]'];
/** Spellings that some resolvers read as 127.0.0.1, and that no authority may have. */
const unreadable = [
  '127.1',
  '0x7f000001',
  '0x7f.1',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
];
const broken = ['0', '[::1%lo]', 'x@127.0.0.1', '127.0.0.1%00', '[127.0.0.1]', '::1'];

function refusedFor(entryPoint: string, cause: string): Attempt {
  if (entryPoint === 'a callback')
    return { response: '502 callback_failed', cause: `refused: ${cause}`, dialled: [] };
  return { response: '403 address_denied', cause, dialled: [] };
}

function notListed(entryPoint: string): string {
  return entryPoint === 'a callback' ? '502 callback_failed' : '403 address_private';
}

/** Tries each spelling by `entryPoint` and returns the attempts that differ from `expected`. */
async function unexpectedAttempts(
  scene: Scene,
  entryPoint: EntryPoint,
  authorities: readonly string[],
  expected: Attempt,
): Promise<readonly unknown[]> {
  const found = [];
  for (const authority of authorities) {
    const met = await entryPoint(scene, authority);
    if (JSON.stringify(met) !== JSON.stringify(expected)) found.push([authority, met]);
  }
  return found;
}

async function withDocuments(
  scene: Scene,
  entryPoint: EntryPoint,
  authorities: readonly string[],
  expected: Attempt,
): Promise<readonly unknown[]> {
  const found = [];
  for (const authority of authorities) {
    for (const document of documentsFor(authority)) {
      // A document that cannot hold such a host is rejected as a whole, and the previous one stays in force.
      scene.proxy.apply(document);
      found.push(...(await unexpectedAttempts(scene, entryPoint, [authority], expected)));
    }
  }
  return found;
}

const allEntryPoints = Object.entries(entryPoints);
const listableEntryPoints = allEntryPoints.filter(
  ([name]) => name === 'a CONNECT' || name === 'an http:// request',
);
const bindings = Object.keys(spellingsOf);

type Listener = { readonly host: string; readonly port: string };
type Target = { readonly title: string; open(scene: Scene): Promise<Listener>; readonly listen?: string };

async function sandboxAt(scene: Scene, host: string): Promise<Listener> {
  const document = { id: 'other', listen: `${host}:0`, token: 'token-of-the-other-sandbox' };
  const { body } = await scene.proxy.admin('POST', '/v1/sandboxes', document);
  return { host, port: new URL(String(body['proxy'])).port };
}

const targets: readonly Target[] = [
  ...bindings.map((host) => ({
    title: `the admin API on ${host}`,
    listen: `${host}:0`,
    open: async ({ proxy }: Scene) => ({ host, port: new URL(proxy.adminUrl).port }),
  })),
  {
    title: 'the listener that the client used',
    open: async ({ proxy }) => ({ host: '127.0.0.1', port: String(proxy.port) }),
  },
  { title: "another sandbox's listener", open: (scene) => sandboxAt(scene, '127.0.0.1') },
  { title: "another sandbox's listener on 0.0.0.0", open: (scene) => sandboxAt(scene, '0.0.0.0') },
  { title: "another sandbox's listener on [::]", open: (scene) => sandboxAt(scene, '[::]') },
];

function openScene({ listen = '127.0.0.1:0' }: Pick<Target, 'listen'> = {}): Promise<Scene> {
  return createReachScene(ledger, { admin: true, names, config: { admin: { listen, exposed: true } } });
}

describe('I8 reach: the addresses of a name', () => {
  it.each(allEntryPoints)('I8 reach: %s dials each judged address once, and no other', async (_, ask) => {
    const addresses = ['8.8.8.1', '8.8.8.2', '2606:4700::1', '8.8.8.3'];
    await using scene = await createReachScene(ledger, { names: { 'many.test': addresses } });
    const { dialled } = await ask(scene, 'many.test:443');
    // All of them refuse. The families take turns (RFC 8305).
    expect(dialled).toEqual(['8.8.8.1:443', '2606:4700::1:443', '8.8.8.2:443', '8.8.8.3:443']);
  });
});

describe('I8 reach: own listeners', () => {
  everyNth(2, targets, (some, options) =>
    it.each(some)('I8 reach: $title is not reached', options, async ({ open, ...target }) => {
      await using scene = await openScene(target);
      const { host, port } = await open(scene);
      const before = ledger.accepted.length;
      const at = (hosts: readonly string[]): readonly string[] => hosts.map((one) => `${one}:${port}`);
      for (const [entryPoint, ask] of allEntryPoints) {
        const own = await unexpectedAttempts(
          scene,
          ask,
          at(spellingsOf[host] ?? []),
          refusedFor(entryPoint, 'own listener'),
        );
        const none = await unexpectedAttempts(
          scene,
          ask,
          at(unspecified),
          refusedFor(entryPoint, 'unspecified'),
        );
        const odd = [];
        for (const authority of at([...unreadable, ...broken])) {
          const { response, dialled } = await ask(scene, authority);
          const expected = entryPoint === 'a callback' ? 'not a document' : '400 authority_invalid';
          if (response !== expected || dialled.length > 0) odd.push([authority, response, dialled]);
        }
        expect([entryPoint, ...own, ...none, ...odd]).toEqual([entryPoint]);
      }
      // Only the clients of this test connected, all of them to the main listener.
      expect([...new Set(ledger.accepted.slice(before))]).toEqual([scene.proxy.port]);
    }),
  );

  everyNth(2, targets, (some, options) =>
    it.each(some)(
      'I8 reach: $title is not reached even if lists name it',
      options,
      async ({ open, ...target }) => {
        await using scene = await openScene(target);
        const { host, port } = await open(scene);
        const authorities = (spellingsOf[host] ?? []).map((one) => `${one}:${port}`);
        for (const [entryPoint, ask] of listableEntryPoints) {
          const found = await withDocuments(scene, ask, authorities, refusedFor(entryPoint, 'own listener'));
          expect([entryPoint, ...found]).toEqual([entryPoint]);
        }
      },
    ),
  );

  it('I8 reach: every entry point reaches an ordinary origin', async () => {
    await using scene = await openScene();
    await using origin = await createOrigin({ respond: ({ send }) => send(jsonResponse({ headers: {} })) });
    for (const [entryPoint, ask] of allEntryPoints) {
      const met = await ask(scene, `127.0.0.1:${origin.port}`);
      const first = `127.0.0.1:${origin.port}`;
      // After a successful callback the request goes on to its host, where nothing listens.
      const passed = entryPoint === 'a callback' ? '502 upstream_unreachable' : '200';
      expect([entryPoint, met.response, met.dialled[0]]).toEqual([entryPoint, passed, first]);
    }
  });

  it('I8 reach: an intercepted https host that resolves to the admin API is not reached', async () => {
    await using scene = await openScene();
    const { port } = new URL(scene.proxy.adminUrl);
    for (const name of ['four.test', 'mapped.test', 'mixed.test', 'translated.test']) {
      expect(scene.proxy.apply({ rules: [ruleFor(`${name}:${port}`)] }).ok).toBe(true);
      const tls = { ca: scene.proxy.caPem, name };
      const before = ledger.attempts.length;
      await using client = await WireClient.connectThrough(scene.proxy.port, `${name}:${port}`, tls);
      await client.send(head('GET /', `${name}:${port}`));
      expect((await client.readHead()).status).toBe(403);
      expect(ledger.attempts.slice(before)).toEqual([`127.0.0.1:${scene.proxy.port}`]);
    }
    expect(scene.proxy.records().map(({ cause }) => cause)).toEqual(Array(4).fill('own listener'));
  });

  it.each([
    ['its Host', 'GET /', 421],
    ['its target', 'GET http://ADMIN/', 421],
    ['an https:// target', 'GET https://ADMIN/', 400],
    ['a CONNECT', 'CONNECT ADMIN', 405],
  ])('I8 reach: %s inside the tunnel of another host does not reach it', async (_, line, status) => {
    await using scene = await openScene();
    await using origin = await createOrigin();
    const { host: admin } = new URL(scene.proxy.adminUrl);
    const authority = `api.test:${origin.port}`;
    scene.proxy.apply({ rules: [ruleFor(authority, { match_paths: ['/never'] })] });
    await using client = await WireClient.connect(scene.proxy.port);
    await client.openTunnel(authority);
    const before = ledger.attempts.length;
    await client.send(head(line.replace('ADMIN', admin), admin));
    expect((await client.readHead()).status).toBe(status);
    expect(ledger.attempts.slice(before)).toEqual([]);
  });

  it('I8 reach: a redirect to the admin API is relayed, or fails a callback, and is not followed', async () => {
    await using scene = await openScene();
    await using origin = await redirectOrigin(`${scene.proxy.adminUrl}/v1/proxy_config`);
    const authority = `127.0.0.1:${origin.port}`;
    const responses = [];
    for (const [entryPoint, ask] of allEntryPoints) responses.push([entryPoint, await ask(scene, authority)]);
    const dialled = [authority];
    expect(responses).toEqual([
      ['a CONNECT', { response: '200', cause: undefined, dialled }],
      ['an http:// request', { response: '307', cause: undefined, dialled }],
      ['a request inside a tunnel that a rule covers', { response: '307', cause: undefined, dialled }],
      ['a callback', { response: '502 callback_failed', cause: 'status 307', dialled }],
    ]);
  });

  it('I8 reach: an admin API on a unix socket is not reached', async () => {
    await using scratch = await createScratch();
    const path = `${scratch.path}/admin.sock`;
    await using scene = await openScene({ listen: `unix:${path}` });
    const hosts = [`unix:${path}`, `unix:${path}:`, path, `[${path}]`, `unix%3A${path}`, '.', 'unix:'];
    const before = ledger.accepted.length;
    for (const [entryPoint, ask] of allEntryPoints) {
      for (const host of hosts) {
        const { response, dialled } = await ask(scene, `${host}:80`);
        const isRefused = /^(400 authority_invalid|400 target_invalid|400 host_invalid|not a document)$/.test(
          response,
        );
        expect([entryPoint, host, isRefused || response, dialled]).toEqual([entryPoint, host, true, []]);
      }
    }
    expect(ledger.accepted.slice(before)).not.toContain(0);
    // This shows that the ledger records connections to the unix socket.
    const socket = connect(path);
    await once(socket, 'connect');
    await expect.poll(() => ledger.accepted.slice(before)).toContain(0);
    socket.destroy();
  });

  it('I8 reach: the address of a removed sandbox is released, and a new sandbox can use it', async () => {
    await using scene = await openScene();
    const { port } = await sandboxAt(scene, '127.0.0.1');
    const connect = entryPoints['a CONNECT'] as EntryPoint;
    expect((await connect(scene, `localhost:${port}`)).cause).toBe('own listener');
    await scene.proxy.admin('DELETE', '/v1/sandboxes/other');
    expect((await connect(scene, `localhost:${port}`)).response).toBe('502 upstream_unreachable');
    await scene.proxy.admin('POST', '/v1/sandboxes', { id: 'again', listen: `127.0.0.1:${port}` });
    expect((await connect(scene, `localhost:${port}`)).cause).toBe('own listener');
  });
});

/** Each address with the class that the record of the refusal names. */
const never: readonly (readonly [host: string, cause: string])[] = [
  ['169.254.169.254', 'metadata'],
  ['168.63.129.16', 'metadata'],
  ['100.100.100.200', 'metadata'],
  ['[fd00:ec2::254]', 'metadata'],
  ['[fd20:ce::254]', 'metadata'],
  ['[::ffff:169.254.169.254]', 'metadata'],
  ['[::ffff:a9fe:a9fe]', 'metadata'],
  ['[64:ff9b::a9fe:a9fe]', 'metadata'],
  ['[2002:a9fe:a9fe::]', 'metadata'],
  ['metadata.test', 'metadata'],
  ['METADATA.test.', 'metadata'],
  ['mixed-metadata.test', 'metadata'],
  ['169.254.170.2', 'link_local'],
  ['[fe80::1]', 'link_local'],
  ['224.0.0.1', 'multicast'],
  ['[ff02::1]', 'multicast'],
  ['255.255.255.255', 'reserved'],
];

describe('I8 reach: addresses that no setting allows', () => {
  it('I8 reach: metadata, link-local and other reserved addresses are not reached', async () => {
    await using scene = await openScene();
    for (const [entryPoint, ask] of allEntryPoints) {
      const found = [];
      for (const [host, cause] of never)
        found.push(...(await unexpectedAttempts(scene, ask, [`${host}:80`], refusedFor(entryPoint, cause))));
      expect([entryPoint, ...found]).toEqual([entryPoint]);
    }
  });

  it('I8 reach: they are not reached even if lists name them', async () => {
    await using scene = await openScene();
    for (const [entryPoint, ask] of listableEntryPoints) {
      const found = [];
      for (const [host, cause] of never)
        found.push(...(await withDocuments(scene, ask, [`${host}:80`], refusedFor(entryPoint, cause))));
      expect([entryPoint, ...found]).toEqual([entryPoint]);
    }
  });
});

const inner = [
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '[fd12::1]',
  'intra.test',
  'mixed-intra.test',
];
const innerInV6 = ['[::ffff:10.0.0.1]', '[64:ff9b::a00:1]', '[2002:a00:1::]'];

describe('I8 reach: private networks', () => {
  it('I8 reach: unlisted private networks are not reached', async () => {
    const config = { egress: anyPort, callback: { allow_private: false } };
    await using scene = await createReachScene(ledger, { names, config });
    for (const [entryPoint, ask] of allEntryPoints) {
      const found = [];
      for (const host of [...inner, ...innerInV6]) {
        const met = await ask(scene, `${host}:80`);
        const isFor = /^(refused: )?(private|cgnat|embedded_v4)$/.test(String(met.cause));
        if (met.response !== notListed(entryPoint) || !isFor || met.dialled.length > 0)
          found.push([host, met]);
      }
      expect([entryPoint, ...found]).toEqual([entryPoint]);
    }
  });

  it('I8 reach: a tenant’s list does not open private networks', async () => {
    await using scene = await createReachScene(ledger, { names, config: { egress: anyPort } });
    for (const [entryPoint, ask] of listableEntryPoints) {
      for (const host of [...inner, ...innerInV6]) {
        for (const document of documentsFor(`${host}:80`)) {
          scene.proxy.apply(document);
          const { response, dialled } = await ask(scene, `${host}:80`);
          expect([entryPoint, host, document, response, dialled]).toEqual([
            entryPoint,
            host,
            document,
            notListed(entryPoint),
            [],
          ]);
        }
      }
    }
  });

  it('I8 reach: the operator’s list opens only what it contains', async () => {
    const egress = { ...anyPort, allow_private: ['10.0.0.0/24'] };
    const config = { egress, callback: { allow_private: false } };
    await using scene = await createReachScene(ledger, { names, config });
    for (const [entryPoint, ask] of allEntryPoints) {
      expect((await ask(scene, '10.0.0.1:80')).dialled[0]).toBe('10.0.0.1:80');
      expect((await ask(scene, 'intra.test:80')).dialled[0]).toBe('10.0.0.1:80');
      for (const host of ['10.0.1.1', '[::ffff:10.0.0.1]', 'mixed-intra.test'])
        expect(await ask(scene, `${host}:80`)).toMatchObject({
          response: notListed(entryPoint),
          dialled: [],
        });
    }
  });

  it.each([
    ['an exact name over TLS', 'intra.test', 'tls', ['10.0.0.1:443']],
    ['an exact name where the operator sets never', 'intra.test', 'never', []],
    ['a wildcard', '*.test', 'tls', []],
  ])('I8 reach: a private address by a rule with %s', async (_, pattern, setting, dialled) => {
    const config = { egress: { private_by_rule: setting } };
    await using scene = await createReachScene(ledger, { names, config });
    expect(scene.proxy.apply({ rules: [{ ...(ruleFor('x:1') as object), match_hosts: [pattern] }] }).ok).toBe(
      true,
    );
    const tls = { ca: scene.proxy.caPem, name: 'intra.test' };
    await using client = await WireClient.connectThrough(scene.proxy.port, 'intra.test:443', tls);
    const before = ledger.attempts.length;
    await client.send(head('GET /', 'intra.test'));
    expect((await client.readHead()).status).toBe(dialled.length > 0 ? 502 : 403);
    expect(ledger.attempts.slice(before)).toEqual(dialled);
  });
});

describe('I8 reach: unlisted loopback', () => {
  const exposed = { listen: '0.0.0.0:0', auth: 'none', egress: anyPort, callback: { allow_private: false } };
  const spellings = [...byName, ...v4, ...v4InV6, ...v6, ...anyLoopback];

  it.each(allEntryPoints)(
    'I8 reach: loopback is not reached by %s through an exposed listener',
    async (entryPoint, ask) => {
      await using origin = await createOrigin();
      await using scene = await createReachScene(ledger, { names, config: exposed });
      const found = [];
      for (const host of spellings) {
        const { response, dialled } = await ask(scene, `${host}:${origin.port}`);
        if (response !== notListed(entryPoint) || dialled.length > 0) found.push([host, response, dialled]);
      }
      expect([...found, origin.connections]).toEqual([0]);
    },
  );

  it('I8 reach: loopback is closed to all while one sandbox has an exposed listener', async () => {
    await using origin = await createOrigin();
    await using scene = await createReachScene(ledger, {
      admin: true,
      names,
      config: { auth: 'none', egress: anyPort },
    });
    const connect = entryPoints['a CONNECT'] as EntryPoint;
    const responses = [(await connect(scene, `127.0.0.1:${origin.port}`)).response];
    await sandboxAt(scene, '0.0.0.0');
    responses.push((await connect(scene, `127.0.0.1:${origin.port}`)).response);
    await scene.proxy.admin('DELETE', '/v1/sandboxes/other');
    responses.push((await connect(scene, `127.0.0.1:${origin.port}`)).response);
    expect(responses).toEqual(['200', '403 address_private', '200']);
  });
});

type ListedRoute = { readonly method: string; readonly path: string; readonly needs_token: boolean };

describe('I8 reach: the admin API itself', () => {
  const wrong = 'canary-admin-token-0cc175b9c0f1b6a831c399e269772662';
  const rows: readonly (readonly [who: string, fields: readonly string[], closed: number, open: number])[] = [
    ['without a token', ['Host: localhost'], 401, 200],
    ['with a wrong token', ['Host: localhost', `Authorization: Bearer ${wrong}`], 401, 401],
    ['with an empty token', ['Host: localhost', 'Authorization: Bearer '], 401, 401],
    ['with a token of another scheme', ['Host: localhost', `Authorization: Basic ${wrong}`], 401, 401],
    ['under a rebound name', ['Host: attacker.test'], 421, 421],
    ['under a rebound name with a port', ['Host: attacker.test:3129'], 421, 421],
    ['under a name that looks like loopback', ['Host: localhost.attacker.test'], 421, 421],
    ['under an address that is not loopback', ['Host: 192.0.2.1'], 421, 421],
    ['from a proxy that sends Via', ['Host: localhost', 'Via: 1.1 proxy'], 403, 403],
    ['for a forwarded client', ['Host: localhost', 'X-Forwarded-For: 127.0.0.1'], 403, 403],
    ['under two names', ['Host: localhost', 'Host: localhost'], 400, 400],
    ['under no name', [], 400, 400],
  ];
  it.each(rows)(
    'I8 reach: %s, no route that requires the token discloses anything',
    async (_, fields, closed, open) => {
      await using scene = await openScene();
      const { proxy } = scene;
      await proxy.admin('POST', '/v1/sandboxes', { id: 'box' });
      const { routes } = (await proxy.admin('GET', '/')).body as { readonly routes: readonly ListedRoute[] };
      const state = async (): Promise<readonly unknown[]> => [
        await proxy.admin('GET', '/v1/sandboxes'),
        await proxy.admin('GET', '/v1/proxy_config'),
        await proxy.admin('GET', '/v1/sandboxes/box/workspace_secrets'),
      ];
      const before = await state();
      const { port } = new URL(proxy.adminUrl);
      const seen = [];
      for (const { method, path, needs_token } of routes) {
        await using client = await WireClient.connect(Number(port));
        const lines = [`${method} ${path.replace('{id}', 'box')} HTTP/1.1`, ...fields];
        await client.send(
          [...lines, 'Content-Type: application/json', 'Content-Length: 2', '', '{}'].join('\r\n'),
        );
        const { head: response, text } = await client.readResponse();
        const expected = needs_token ? closed : open;
        // After five wrong tokens in a minute, further ones get 429.
        const isExpected = response.status === expected || (expected === 401 && response.status === 429);
        const isBare = response.status === 200 || Object.keys(JSON.parse(text)).join() === 'detail,code';
        if (!isExpected || !isBare) seen.push([method, path, response.status, text]);
      }
      expect(seen).toEqual([]);
      expect(routes.filter(({ needs_token }) => needs_token).length).toBeGreaterThan(10);
      expect(await state()).toEqual(before);
    },
  );

  it('I8 reach: routes without a token disclose nothing about sandboxes, hosts, rules or secrets', async () => {
    await using scene = await openScene();
    const { proxy } = scene;
    await proxy.admin('POST', '/v1/sandboxes', {
      id: 'box',
      workspace_secrets: { CANARY_NAME: 'canary-value' },
    });
    await proxy.admin('PUT', '/v1/proxy_config', {
      rules: [ruleFor('canary-host.test:443', { name: 'canary-rule' })],
    });
    const { routes } = (await proxy.admin('GET', '/')).body as { readonly routes: readonly ListedRoute[] };
    const texts = [];
    for (const { path } of routes.filter(({ needs_token }) => !needs_token)) {
      await using client = await WireClient.connect(Number(new URL(proxy.adminUrl).port));
      await client.send(head(`GET ${path}`, 'localhost'));
      const { head: response, text } = await client.readResponse();
      expect(response.status).toBe(200);
      texts.push(response.text, text);
    }
    expect(texts).toHaveLength(10);
    expect(texts.join('')).not.toMatch(/canary|"box"/i);
  });
});

describe('I8 reach: the reserved host of the proxy', () => {
  const name = 'proxy.corp.test';
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'k' }];
  const documents: readonly (readonly [string, object])[] = [
    ['there are no rules', {}],
    ['the allow_list leaves it out', { access_control: { allow_list: ['other.test'] } }],
    ['the deny_list covers it', { access_control: { deny_list: ['*.corp.test'] } }],
    ['a rule covers it', { rules: [{ match_hosts: ['*.corp.test'], headers }] }],
    [
      'a callback covers it',
      { callbacks: [{ match_hosts: ['*.corp.test'], url: 'https://callback.test/', ttl_seconds: 60 }] },
    ],
    ['no_proxy covers it', { no_proxy: ['*.corp.test'] }],
  ];
  it.each(documents)(
    'I8 reach: it is served and never looked up or dialled where %s',
    async (_, proxyConfig) => {
      await using proxy = await createTestSidecar({ proxyConfig, config: { reserved_host: name } });
      const before = ledger.attempts.length;
      await using client = await WireClient.connect(proxy.port);
      await client.send(head(`GET http://${name}/`, name));
      expect((await client.readResponse()).text).toMatch(/^This is Sallyport/);
      await client.send(head(`CONNECT ${name}:443`, name));
      expect((await client.readResponse()).text).toContain('"reserved_host"');
      expect(proxy.lookups).toEqual([]);
      // The connection of the client itself.
      expect(ledger.attempts.slice(before)).toEqual([`127.0.0.1:${proxy.port}`]);
    },
  );
});
