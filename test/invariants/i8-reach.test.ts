// I8: through the proxy nothing reaches the admin API, a listener of our own, a metadata service, a link-local address,
// or loopback and private networks where they are not listed; directly, nothing of the admin API without its token.
// Everything is allowed that can be, so that one check alone stands between.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrigin, jsonResponse } from '../support/recording-origin.ts';
import { createScratch } from '../support/scratch.ts';
import { WireClient } from '../support/wire-client.ts';
import { head } from './credential-scene.ts';
import { type DialLedger, openDialLedger } from './dial-ledger.ts';
import {
  type Attempt,
  type Entry,
  type Scene,
  anyPort,
  createReachScene,
  documentsFor,
  entries,
  ownAddresses,
  redirectOrigin,
  ruleFor,
} from './reach-scene.ts';

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

/** The spellings that lead to a listener, by the address that it is bound to. */
const spellingsOf: Readonly<Record<string, readonly string[]>> = {
  '127.0.0.1': [...byName, ...v4, ...v4InV6],
  '0.0.0.0': [...byName, ...v4, ...v4InV6, ...anyLoopback, ...anyInterface],
  '[::1]': [...byName, ...v6],
  '[::]': [...byName, ...v4, ...v4InV6, ...v6, ...anyLoopback, ...anyInterface],
};
const unspecified = ['0.0.0.0', '[::]', '[0::0]'];
/** What some resolvers take for 127.0.0.1, and no authority is. */
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

function refusedFor(entry: string, cause: string): Attempt {
  if (entry === 'a callback')
    return { response: '502 callback_failed', cause: `refused: ${cause}`, dialled: [] };
  return { response: '403 address_denied', cause, dialled: [] };
}

function notListed(entry: string): string {
  return entry === 'a callback' ? '502 callback_failed' : '403 address_private';
}

/** Tries each spelling by `door` and answers those that were not met as `expected`. */
async function strays(
  scene: Scene,
  entry: Entry,
  authorities: readonly string[],
  expected: Attempt,
): Promise<readonly unknown[]> {
  const found = [];
  for (const authority of authorities) {
    const met = await entry(scene, authority);
    if (JSON.stringify(met) !== JSON.stringify(expected)) found.push([authority, met]);
  }
  return found;
}

async function withDocuments(
  scene: Scene,
  entry: Entry,
  authorities: readonly string[],
  expected: Attempt,
): Promise<readonly unknown[]> {
  const found = [];
  for (const authority of authorities) {
    for (const document of documentsFor(authority)) {
      // One that takes no such entry is refused whole, and the one before it stays.
      scene.proxy.apply(document);
      found.push(...(await strays(scene, entry, [authority], expected)));
    }
  }
  return found;
}

const everyEntry = Object.entries(entries);
const listedAdapters = everyEntry.filter(([name]) => name === 'a CONNECT' || name === 'an http:// request');
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
    title: 'the listener that it came by',
    open: async ({ proxy }) => ({ host: '127.0.0.1', port: String(proxy.port) }),
  },
  { title: "another sandbox's listener", open: (scene) => sandboxAt(scene, '127.0.0.1') },
  { title: "another sandbox's listener on 0.0.0.0", open: (scene) => sandboxAt(scene, '0.0.0.0') },
  { title: "another sandbox's listener on [::]", open: (scene) => sandboxAt(scene, '[::]') },
];

function openScene({ listen = '127.0.0.1:0' }: Pick<Target, 'listen'> = {}): Promise<Scene> {
  return createReachScene(ledger, { admin: true, names, config: { admin: { listen, exposed: true } } });
}

describe('I8 reach: our own listeners', () => {
  it.each(targets)('I8 reach: $title is not reached', async ({ open, ...target }) => {
    await using scene = await openScene(target);
    const { host, port } = await open(scene);
    const before = ledger.accepted.length;
    const at = (hosts: readonly string[]): readonly string[] => hosts.map((one) => `${one}:${port}`);
    for (const [entry, ask] of everyEntry) {
      const own = await strays(scene, ask, at(spellingsOf[host] ?? []), refusedFor(entry, 'own listener'));
      const none = await strays(scene, ask, at(unspecified), refusedFor(entry, 'unspecified'));
      const odd = [];
      for (const authority of at([...unreadable, ...broken])) {
        const { response, dialled } = await ask(scene, authority);
        const expected = entry === 'a callback' ? 'not a document' : '400 authority_invalid';
        if (response !== expected || dialled.length > 0) odd.push([authority, response, dialled]);
      }
      expect([entry, ...own, ...none, ...odd]).toEqual([entry]);
    }
    // Clients of ours alone came in, all of them by the main listener.
    expect([...new Set(ledger.accepted.slice(before))]).toEqual([scene.proxy.port]);
  });

  it.each(targets)('I8 reach: $title is not reached where lists name it', async ({ open, ...target }) => {
    await using scene = await openScene(target);
    const { host, port } = await open(scene);
    const authorities = (spellingsOf[host] ?? []).map((one) => `${one}:${port}`);
    for (const [entry, ask] of listedAdapters) {
      const found = await withDocuments(scene, ask, authorities, refusedFor(entry, 'own listener'));
      expect([entry, ...found]).toEqual([entry]);
    }
  });

  it('I8 reach: the doors lead to an origin that is not ours', async () => {
    await using scene = await openScene();
    await using origin = await createOrigin({ respond: ({ send }) => send(jsonResponse({ headers: {} })) });
    for (const [entry, ask] of everyEntry) {
      const met = await ask(scene, `127.0.0.1:${origin.port}`);
      const first = `127.0.0.1:${origin.port}`;
      // A callback that answers lets the request on to its host, where nobody listens.
      const passed = entry === 'a callback' ? '502 upstream_unreachable' : '200';
      expect([entry, met.response, met.dialled[0]]).toEqual([entry, passed, first]);
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
  ])('I8 reach: %s inside the tunnel of another host does not lead there', async (_, line, status) => {
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

  it('I8 reach: a redirect to the admin API is handed on, or fails a callback, and is not followed', async () => {
    await using scene = await openScene();
    await using origin = await redirectOrigin(`${scene.proxy.adminUrl}/v1/proxy_config`);
    const authority = `127.0.0.1:${origin.port}`;
    const responses = [];
    for (const [entry, ask] of everyEntry) responses.push([entry, await ask(scene, authority)]);
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
    for (const [entry, ask] of everyEntry) {
      for (const host of hosts) {
        const { response, dialled } = await ask(scene, `${host}:80`);
        const isRefused = /^(400 authority_invalid|400 target_invalid|400 host_invalid|not a document)$/.test(
          response,
        );
        expect([entry, host, isRefused || response, dialled]).toEqual([entry, host, true, []]);
      }
    }
    expect(ledger.accepted.slice(before)).not.toContain(0);
    // The ledger does see who comes by it.
    const socket = connect(path);
    await once(socket, 'connect');
    await expect.poll(() => ledger.accepted.slice(before)).toContain(0);
    socket.destroy();
  });

  it('I8 reach: a sandbox that is removed gives its address back, and one that comes takes it', async () => {
    await using scene = await openScene();
    const { port } = await sandboxAt(scene, '127.0.0.1');
    const connect = entries['a CONNECT'] as Entry;
    expect((await connect(scene, `localhost:${port}`)).cause).toBe('own listener');
    await scene.proxy.admin('DELETE', '/v1/sandboxes/other');
    expect((await connect(scene, `localhost:${port}`)).response).toBe('502 upstream_unreachable');
    await scene.proxy.admin('POST', '/v1/sandboxes', { id: 'again', listen: `127.0.0.1:${port}` });
    expect((await connect(scene, `localhost:${port}`)).cause).toBe('own listener');
  });
});

/** Each with the class that the refusal is recorded by. */
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

describe('I8 reach: what nothing allows', () => {
  it('I8 reach: metadata, link-local and other addresses that nothing allows are not reached', async () => {
    await using scene = await openScene();
    for (const [entry, ask] of everyEntry) {
      const found = [];
      for (const [host, cause] of never)
        found.push(...(await strays(scene, ask, [`${host}:80`], refusedFor(entry, cause))));
      expect([entry, ...found]).toEqual([entry]);
    }
  });

  it('I8 reach: they are not reached where lists name them', async () => {
    await using scene = await openScene();
    for (const [entry, ask] of listedAdapters) {
      const found = [];
      for (const [host, cause] of never)
        found.push(...(await withDocuments(scene, ask, [`${host}:80`], refusedFor(entry, cause))));
      expect([entry, ...found]).toEqual([entry]);
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
  it('I8 reach: unlisted, private networks are not reached', async () => {
    const config = { egress: anyPort, callback: { allow_private: false } };
    await using scene = await createReachScene(ledger, { names, config });
    for (const [entry, ask] of everyEntry) {
      const found = [];
      for (const host of [...inner, ...innerInV6]) {
        const met = await ask(scene, `${host}:80`);
        const isFor = /^(refused: )?(private|cgnat|embedded_v4)$/.test(String(met.cause));
        if (met.response !== notListed(entry) || !isFor || met.dialled.length > 0) found.push([host, met]);
      }
      expect([entry, ...found]).toEqual([entry]);
    }
  });

  it('I8 reach: a list of a tenant does not open private networks', async () => {
    await using scene = await createReachScene(ledger, { names, config: { egress: anyPort } });
    for (const [entry, ask] of listedAdapters) {
      for (const host of [...inner, ...innerInV6]) {
        for (const document of documentsFor(`${host}:80`)) {
          scene.proxy.apply(document);
          const { response, dialled } = await ask(scene, `${host}:80`);
          expect([entry, host, document, response, dialled]).toEqual([
            entry,
            host,
            document,
            notListed(entry),
            [],
          ]);
        }
      }
    }
  });

  it('I8 reach: the operator’s list opens just what it holds', async () => {
    const egress = { ...anyPort, allow_private: ['10.0.0.0/24'] };
    const config = { egress, callback: { allow_private: false } };
    await using scene = await createReachScene(ledger, { names, config });
    for (const [entry, ask] of everyEntry) {
      expect((await ask(scene, '10.0.0.1:80')).dialled[0]).toBe('10.0.0.1:80');
      expect((await ask(scene, 'intra.test:80')).dialled[0]).toBe('10.0.0.1:80');
      for (const host of ['10.0.1.1', '[::ffff:10.0.0.1]', 'mixed-intra.test'])
        expect(await ask(scene, `${host}:80`)).toMatchObject({ response: notListed(entry), dialled: [] });
    }
  });

  it.each([
    ['an exact name over TLS', 'intra.test', 'tls', ['10.0.0.1:443']],
    ['an exact name where the operator says never', 'intra.test', 'never', []],
    ['a wildcard', '*.test', 'tls', []],
  ])('I8 reach: by a rule with %s', async (_, pattern, setting, dialled) => {
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

describe('I8 reach: loopback where it is not listed', () => {
  const exposed = { listen: '0.0.0.0:0', auth: 'none', egress: anyPort, callback: { allow_private: false } };
  const spellings = [...byName, ...v4, ...v4InV6, ...v6, ...anyLoopback];

  it.each(everyEntry)('I8 reach: by %s, of a proxy that others reach', async (entry, ask) => {
    await using origin = await createOrigin();
    await using scene = await createReachScene(ledger, { names, config: exposed });
    const found = [];
    for (const host of spellings) {
      const { response, dialled } = await ask(scene, `${host}:${origin.port}`);
      if (response !== notListed(entry) || dialled.length > 0) found.push([host, response, dialled]);
    }
    expect([...found, origin.connections]).toEqual([0]);
  });

  it('I8 reach: loopback is shut to everybody while one sandbox has a listener that others reach', async () => {
    await using origin = await createOrigin();
    await using scene = await createReachScene(ledger, {
      admin: true,
      names,
      config: { auth: 'none', egress: anyPort },
    });
    const connect = entries['a CONNECT'] as Entry;
    const responses = [(await connect(scene, `127.0.0.1:${origin.port}`)).response];
    await sandboxAt(scene, '0.0.0.0');
    responses.push((await connect(scene, `127.0.0.1:${origin.port}`)).response);
    await scene.proxy.admin('DELETE', '/v1/sandboxes/other');
    responses.push((await connect(scene, `127.0.0.1:${origin.port}`)).response);
    expect(responses).toEqual(['200', '403 address_private', '200']);
  });
});

type ListedRoute = { readonly method: string; readonly path: string; readonly needs_token: boolean };

describe('I8 reach: the admin API, directly', () => {
  const wrong = 'canary-admin-token-0cc175b9c0f1b6a831c399e269772662';
  const rows: readonly (readonly [who: string, fields: readonly string[], closed: number, open: number])[] = [
    ['without a token', ['Host: localhost'], 401, 200],
    ['with a wrong token', ['Host: localhost', `Authorization: Bearer ${wrong}`], 401, 401],
    ['with an empty token', ['Host: localhost', 'Authorization: Bearer '], 401, 401],
    ['with a token of another scheme', ['Host: localhost', `Authorization: Basic ${wrong}`], 401, 401],
    ['under a name that was rebound', ['Host: attacker.test'], 421, 421],
    ['under a rebound name with a port', ['Host: attacker.test:3129'], 421, 421],
    ['under a name that looks like loopback', ['Host: localhost.attacker.test'], 421, 421],
    ['under an address that is not loopback', ['Host: 192.0.2.1'], 421, 421],
    ['by a proxy that says so', ['Host: localhost', 'Via: 1.1 proxy'], 403, 403],
    ['for a client that is told', ['Host: localhost', 'X-Forwarded-For: 127.0.0.1'], 403, 403],
    ['under two names', ['Host: localhost', 'Host: localhost'], 400, 400],
    ['under no name', [], 400, 400],
  ];
  it.each(rows)(
    'I8 reach: %s, no route that needs the token gives anything',
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
        // After five wrong tokens in a minute, more of them are told to wait.
        const isExpected = response.status === expected || (expected === 401 && response.status === 429);
        const isBare = response.status === 200 || Object.keys(JSON.parse(text)).join() === 'detail';
        if (!isExpected || !isBare) seen.push([method, path, response.status, text]);
      }
      expect(seen).toEqual([]);
      expect(routes.filter(({ needs_token }) => needs_token).length).toBeGreaterThan(10);
      expect(await state()).toEqual(before);
    },
  );

  it('I8 reach: what needs no token tells nothing of sandboxes, hosts, rules or secrets', async () => {
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
    expect(texts).toHaveLength(8);
    expect(texts.join('')).not.toMatch(/canary|"box"/i);
  });
});
