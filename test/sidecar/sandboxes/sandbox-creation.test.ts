// A sandbox that is made: all that its document says is true of it at once, or there is none.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { type Admission, createAdmission } from '../../../src/proxy/accept/admission.ts';
import type { ProxyContext } from '../../../src/proxy/context.ts';
import { parseConfig } from '../../../src/sidecar/config.ts';
import { createFromDocument, issueToken } from '../../../src/sidecar/sandboxes/sandbox-creation.ts';
import type { Sandboxes } from '../../../src/sidecar/sandboxes/sandboxes.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createMemoryStore } from '../state/memory-store.ts';
import { createSandboxScene, keyRules, portOf, showing } from './sandbox-scene.ts';

const SANDBOXES = '/v1/sandboxes';
const TOKEN = 'a-sandbox-token-of-enough-length';

describe('a sandbox', () => {
  it('has its listener, token, limits, secrets and rules from the first request on', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    const made = await proxy.admin('POST', SANDBOXES, {
      id: 'box',
      listen: '127.0.0.1:0',
      token: TOKEN,
      limits: { max_connections: 3 },
      workspace_secrets: { T: 'of the box', GONE: null },
      proxy_config: keyRules('{T}', 'workspace_secret'),
    });
    expect(made).toMatchObject({
      status: 201,
      body: {
        id: 'box',
        proxy: expect.stringMatching(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/),
        has_token: true,
        revision: 1,
        limits: { max_connections: 3, max_lookups: 8 },
        connections: 0,
        warnings: [],
      },
    });
    // A token from the request is not shown.
    expect(made.text).not.toContain(TOKEN);
    expect(await scene.keyAt(portOf(made.body['proxy']), TOKEN)).toBe('of the box');
    expect((await proxy.admin('GET', `${SANDBOXES}/box/workspace_secrets`)).body).toEqual({
      workspace_secrets: [{ key: 'T' }],
    });
    expect(await readdir(join(scene.directory, 'sandboxes'))).toEqual(['box.sealed']);
  });

  it('of an empty document gets a generated id and token, and uses the main listener', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    const [made, second] = [
      await proxy.admin('POST', SANDBOXES, {}),
      await proxy.admin('POST', SANDBOXES, {}),
    ];
    const { id, token } = made.body;
    expect(id).toMatch(/^sandbox-[0-9a-f]{16}$/);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect([second.body['id'] === id, second.body['token'] === token]).toEqual([false, false]);
    expect(made.body).toMatchObject({ proxy: `http://127.0.0.1:${proxy.port}`, revision: 0 });
    await proxy.admin('PUT', `${SANDBOXES}/${String(id)}/proxy_config`, keyRules('made'));
    expect(await scene.keyAt(proxy.port, String(token))).toBe('made');
    // Shown once.
    for (const path of [SANDBOXES, `${SANDBOXES}/${String(id)}`])
      expect((await proxy.admin('GET', path)).text).not.toContain(String(token));
    expect(JSON.stringify(proxy.lines)).not.toContain(String(token));
  });

  it('with port 0 stores the port that was opened, and has it again after a restart', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const first = await scene.start({ state: store });
    const made = await first.admin('POST', SANDBOXES, { id: 'box', listen: '127.0.0.1:0' });
    const port = portOf(made.body['proxy']);
    expect(JSON.parse(store.contents.get('box') ?? '')).toMatchObject({
      listen: { host: '127.0.0.1', port },
    });
    const second = await scene.start({ state: store });
    expect((await second.admin('GET', `${SANDBOXES}/box`)).body['proxy']).toBe(made.body['proxy']);
    await using client = await WireClient.connect(port);
    expect((await client.openTunnel(`127.0.0.1:${scene.origin.port}`)).status).toBe(200);
  });
});

describe('a warning', () => {
  it('says that clients without a token belong to default, where a sandbox shares an open listener', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const made = await proxy.admin('POST', SANDBOXES, { id: 'box' });
    expect(made.body['warnings']).toMatchObject([
      { loc: ['body', 'token'], type: 'open_listener', msg: expect.stringContaining('auth.token_file') },
    ]);
    const own = await proxy.admin('POST', SANDBOXES, { id: 'own', listen: '127.0.0.1:0' });
    expect(own.body['warnings']).toEqual([]);
  });

  it('is absent where every client needs a token', async () => {
    await using scratch = await createScratch();
    const auth = { token_file: await scratch.write('token', 'the-token-of-the-main-listener') };
    await using proxy = await createTestSidecar({ admin: true, config: { auth } });
    const made = await proxy.admin('POST', SANDBOXES, { id: 'box' });
    expect(made).toMatchObject({ status: 201, body: { warnings: [] } });
  });

  it('of the rules has the location of the rules in the request', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const proxyConfig = { ...keyRules('x'), no_proxy: ['api.test'] };
    const document = { listen: '127.0.0.1:0', proxy_config: proxyConfig };
    const made = await proxy.admin('POST', SANDBOXES, document);
    const warnings = made.body['warnings'] as readonly { readonly loc: readonly unknown[] }[];
    expect(warnings.map(({ loc }) => loc.slice(0, 2))).toEqual([['body', 'proxy_config']]);
  });
});

describe('no sandbox is created', () => {
  const rows: readonly (readonly [string, object, number, readonly (readonly (string | number)[])[]])[] = [
    ['under an id that is taken', { id: 'taken' }, 409, []],
    ['under the id of the operator’s', { id: 'default' }, 409, []],
    ['with a token that is another’s', { id: 'box', token: TOKEN }, 422, [['body', 'token']]],
    [
      'with invalid rules',
      { id: 'box', proxy_config: { rules: [{ match_hosts: ['*'], headers: [] }] } },
      422,
      [
        ['body', 'proxy_config', 'rules', 0, 'match_hosts', 0],
        ['body', 'proxy_config', 'rules', 0, 'headers'],
      ],
    ],
    ['with rules of null', { id: 'box', proxy_config: null }, 422, [['body', 'proxy_config']]],
    [
      'with a secret that was not given',
      { id: 'box', proxy_config: keyRules('{T}', 'workspace_secret'), workspace_secrets: { OTHER: 'x' } },
      422,
      [['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value']],
    ],
    [
      'with an opaque value to keep',
      { id: 'box', proxy_config: keyRules('', 'opaque') },
      422,
      [['body', 'proxy_config', 'rules', 0, 'headers', 0, 'value']],
    ],
    [
      'with invalid secrets',
      { id: 'box', workspace_secrets: { A: 1, B: '' } },
      422,
      [
        ['body', 'workspace_secrets', 'A'],
        ['body', 'workspace_secrets', 'B'],
      ],
    ],
    ['with secrets of null', { id: 'box', workspace_secrets: null }, 422, [['body', 'workspace_secrets']]],
    ['on an address that others reach', { id: 'box', listen: '0.0.0.0:0' }, 422, [['body', 'listen']]],
    [
      'on an address that is not here',
      { id: 'box', listen: '192.0.2.1:0', token: TOKEN },
      422,
      [['body', 'listen']],
    ],
  ];
  it.each(rows)('%s', async (_, document, status, locs) => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('POST', SANDBOXES, { id: 'taken', token: TOKEN });
    const refused = await proxy.admin('POST', SANDBOXES, document);
    expect(refused.status).toBe(status);
    const { detail } = refused.body;
    if (locs.length > 0)
      expect((detail as readonly { readonly loc: unknown }[]).map(({ loc }) => loc)).toEqual(
        expect.arrayContaining([...locs]),
      );
    const left = (await proxy.admin('GET', SANDBOXES)).body['sandboxes'] as readonly {
      readonly id: string;
    }[];
    expect(left.map(({ id }) => id)).toEqual(['default', 'taken']);
    expect([...store.contents.keys()]).toEqual(['taken']);
  });

  it('with the token of the main listener', async () => {
    await using scratch = await createScratch();
    const auth = { token_file: await scratch.write('token', TOKEN) };
    await using proxy = await createTestSidecar({ admin: true, config: { auth } });
    const refused = await proxy.admin('POST', SANDBOXES, { token: TOKEN });
    expect(refused).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'token'] }] } });
    expect(refused.text).not.toContain(TOKEN);
    // A listener of its own knows no other's.
    const own = await proxy.admin('POST', SANDBOXES, { listen: '127.0.0.1:0', token: TOKEN });
    expect(own.status).toBe(201);
  });

  it.each(['the main one’s', 'another sandbox’s', 'the admin API’s'])(
    'on a port that is %s, which is reported and leaves nothing behind',
    async (whose) => {
      await using proxy = await createTestSidecar({ admin: true });
      const other = await proxy.admin('POST', SANDBOXES, { id: 'other', listen: '127.0.0.1:0' });
      const port =
        whose === 'the main one’s'
          ? proxy.port
          : portOf(whose === 'the admin API’s' ? proxy.adminUrl : other.body['proxy']);
      const refused = await proxy.admin('POST', SANDBOXES, { id: 'box', listen: `127.0.0.1:${port}` });
      expect(refused).toMatchObject({
        status: 422,
        body: { detail: [{ loc: ['body', 'listen'], msg: expect.stringContaining('EADDRINUSE') }] },
      });
      const made = await proxy.admin('POST', SANDBOXES, { id: 'box', listen: '127.0.0.1:0' });
      expect(made.status).toBe(201);
    },
  );

  it('that could not be stored: its port is free again, its token unknown', async () => {
    const store = createMemoryStore();
    await using proxy = await createTestSidecar({ admin: true, state: store });
    const other = await proxy.admin('POST', SANDBOXES, { id: 'other', listen: '127.0.0.1:0' });
    const port = portOf(other.body['proxy']);
    await proxy.admin('DELETE', `${SANDBOXES}/other`);
    store.failWith(Object.assign(new Error('full'), { code: 'ENOSPC' }));
    for (const document of [
      { id: 'box', listen: `127.0.0.1:${port}` },
      { id: 'box', token: TOKEN },
    ])
      expect((await proxy.admin('POST', SANDBOXES, document)).status).toBe(500);
    await expect(WireClient.connect(port)).rejects.toThrow('ECONNREFUSED');
    await using client = await WireClient.connect(proxy.port);
    expect((await client.openTunnel('127.0.0.1:9', [showing(TOKEN)])).status).toBe(407);
    expect((await proxy.admin('GET', `${SANDBOXES}/box`)).status).toBe(404);
  });

  it('in addition to a thousand', async () => {
    const config = parseConfig({}, {});
    if (!config.ok) throw new Error('the default config');
    const own = { sandbox: 'default' } as ProxyContext;
    let count = 0;
    const sandboxes = {
      shared: { config: config.value },
      main: createAdmission({ own, isOpen: () => true, allowClients: undefined }),
      get: () => undefined,
      // `default` is one of them, and does not count.
      all: () => Array.from({ length: 1 + count }),
    } as unknown as Sandboxes;
    const make = (document: unknown): ReturnType<typeof createFromDocument> =>
      createFromDocument(sandboxes, document, {
        prepare: () => Promise.reject(new Error('there are no rules')),
        save: async () => undefined,
      });
    const invalid = { workspace_secrets: null };
    for (count of [0, 999])
      expect(await make(invalid)).toMatchObject({ ok: false, problem: { kind: 'invalid' } });
    for (count of [1_000, 1_001])
      expect(await make(invalid)).toMatchObject({
        ok: false,
        problem: { kind: 'full', message: 'There are 1000 sandboxes: delete one first' },
      });
  });
});

it('until it is stored, no client is admitted with its token', async () => {
  await using scene = await createSandboxScene();
  const store = createMemoryStore();
  const proxy = await scene.start({ state: store });
  const { begun, release } = store.hold();
  const document = { id: 'box', token: TOKEN, proxy_config: keyRules('box') };
  const making = proxy.admin('POST', SANDBOXES, document);
  await begun;
  await using client = await WireClient.connect(proxy.port);
  expect((await client.openTunnel(scene.authority, [showing(TOKEN)])).status).toBe(407);
  release();
  expect((await making).status).toBe(201);
  expect(await scene.keyAt(proxy.port, TOKEN)).toBe('box');
});

it('until it is stored, no client is admitted on its open listener', async () => {
  await using scene = await createSandboxScene();
  const store = createMemoryStore();
  const proxy = await scene.start({ state: store });
  const other = await proxy.admin('POST', SANDBOXES, { id: 'other', listen: '127.0.0.1:0' });
  const port = portOf(other.body['proxy']);
  await proxy.admin('DELETE', `${SANDBOXES}/other`);
  const { begun, release } = store.hold();
  const making = proxy.admin('POST', SANDBOXES, {
    listen: `127.0.0.1:${port}`,
    proxy_config: keyRules('box'),
  });
  await begun;
  await using client = await WireClient.connect(port);
  expect((await client.openTunnel(scene.authority)).status).toBe(407);
  release();
  expect((await making).status).toBe(201);
  expect(await scene.keyAt(port)).toBe('box');
});

function admissionWith(text: string): Admission {
  const own = { sandbox: 'default' } as ProxyContext;
  const admission = createAdmission({ own, isOpen: () => true, allowClients: undefined });
  admission.add(new Secret(text), { sandbox: 'box' } as ProxyContext);
  return admission;
}

it('no token is issued if none is wanted', () => {
  expect(issueToken(undefined, admissionWith('x'))).toBeUndefined();
});

it('a generated token has 256 bits, fits into a URL and is shown', () => {
  const made = Array.from({ length: 100 }, () => issueToken('generate'));
  const texts = made.map((one) => (typeof one === 'object' ? one.generated : undefined));
  expect(new Set(texts).size).toBe(100);
  for (const text of texts) expect(text).toMatch(/^[A-Za-z0-9_-]{43}$/);
  for (const one of made)
    expect(typeof one === 'object' && one.secret.equals(one.generated ?? '')).toBe(true);
});

it('a token from the document is used as it is, and not shown', () => {
  const wanted = new Secret('free');
  expect(issueToken(wanted, admissionWith('other'))).toEqual({ secret: wanted, generated: undefined });
  expect(issueToken(wanted)).toEqual({ secret: wanted, generated: undefined });
});

it('a token of another sandbox is taken', () => {
  expect(issueToken(new Secret('same'), admissionWith('same'))).toBe('taken');
});
