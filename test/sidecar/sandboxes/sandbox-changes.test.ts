// Changes at run time: each one whole or not at all, kept before it is in force, and felt by the clients at once.
import { once } from 'node:events';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, vi } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { DocumentParser } from '../../../src/sidecar/sandboxes/document-parser.ts';
import { echo } from '../../support/recording-origin.ts';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { errorOf } from '../../proxy/data-path.ts';
import { type MemoryStore, createMemoryStore } from '../state/memory-store.ts';
import { createSandboxScene, keyRules, portOf, showing } from './sandbox-scene.ts';

const CONFIG = '/v1/proxy_config';
const SECRETS = '/v1/workspace_secrets';
const BOX = '/v1/sandboxes/box';
const [TOKEN, OTHER] = ['a-sandbox-token-of-enough-length', 'another-token-of-enough-length'];

/** The response to CONNECT: its status, and the reason if it was rejected. */
async function connectStatus(port: number, authority: string, token?: string): Promise<string> {
  await using client = await WireClient.connect(port);
  const head = await client.openTunnel(authority, token === undefined ? [] : [showing(token)]);
  return [head.status, errorOf(head)].filter((part) => part !== undefined).join(' ');
}

describe('a proxy_config is rejected and nothing changes', () => {
  const rows: readonly (readonly [string, unknown, readonly string[], number])[] = [
    ['that is invalid', { rules: [{ match_hosts: ['*'], headers: [] }] }, [], 422],
    ['whose secret is missing', keyRules('{NONE}', 'workspace_secret'), [], 422],
    ['that keeps an opaque value where none is stored', keyRules('', 'opaque'), [], 422],
    ['for another tag', keyRules('new'), ['If-Match: "1-AAAAAAAAAAAA"'], 412],
    ['for a weak tag', keyRules('new'), ['If-Match: W/"1-AAAAAAAAAAAA"'], 412],
    ['for another tag of its own', { proxy_config: keyRules('new'), etag: '"1-AAAAAAAAAAAA"' }, [], 412],
  ];
  it.each(rows)('%s', async (_, document, fields, status) => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const before = await proxy.admin('GET', CONFIG);
    const kept = new Map(store.contents);
    expect((await proxy.admin('PUT', CONFIG, document, fields)).status).toBe(status);
    expect(await proxy.admin('GET', CONFIG)).toEqual(before);
    expect(store.contents).toEqual(kept);
    expect(await scene.keyAt(proxy.port)).toBe('old');
  });

  it('for any tag, where none was ever applied', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    expect((await proxy.admin('PUT', CONFIG, keyRules('x'), ['If-Match: *'])).status).toBe(412);
    expect((await proxy.admin('PUT', CONFIG, keyRules('x'))).status).toBe(200);
    expect((await proxy.admin('PUT', CONFIG, keyRules('y'), ['If-Match: *'])).status).toBe(200);
  });
});

it('a proxy_config for the tag in force is applied, and its warnings stand where they belong', async () => {
  await using proxy = await createTestSidecar({ admin: true });
  const document = { ...keyRules('x'), no_proxy: ['api.test'] };
  const { etag } = (await proxy.admin('GET', CONFIG)).body;
  const applied = await proxy.admin('PUT', CONFIG, { proxy_config: document, revision: 0, etag });
  expect(applied).toMatchObject({ status: 200, body: { revision: 1 } });
  const warnings = applied.body['warnings'] as readonly { readonly loc: readonly unknown[] }[];
  expect(warnings.map(({ loc }) => loc.slice(0, 2))).toEqual([['body', 'proxy_config']]);
});

describe('workspace secrets', () => {
  it('are merged, null deletes, and their names are listed in order', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const names = async (changes: object): Promise<unknown> =>
      (await proxy.admin('PUT', SECRETS, changes)).body['workspace_secrets'];
    expect(await names({ B: 'b', A: 'a' })).toEqual([{ key: 'A' }, { key: 'B' }]);
    expect(await names({ C: 'c', B: null, NONE: null })).toEqual([{ key: 'A' }, { key: 'C' }]);
    expect(
      await names([
        { key: 'D', value: 'd' },
        { key: 'A', value: null },
      ]),
    ).toEqual([{ key: 'C' }, { key: 'D' }]);
    expect((await proxy.admin('GET', SECRETS)).body).toEqual({
      workspace_secrets: [{ key: 'C' }, { key: 'D' }],
    });
  });

  it('are at most a thousand, in all', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`S${at}`, 'value']));
    expect((await proxy.admin('PUT', SECRETS, many)).status).toBe(200);
    const refused = await proxy.admin('PUT', SECRETS, { ONE_MORE: 'value' });
    expect(refused).toMatchObject({ status: 422, body: { detail: [{ loc: ['body'], type: 'too_long' }] } });
    expect((await proxy.admin('PUT', SECRETS, { S0: null, ONE_MORE: 'value' })).status).toBe(200);
  });

  it('of one sandbox are not those of another', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box' });
    await proxy.admin('PUT', `${BOX}/workspace_secrets`, { OF_BOX: 'x' });
    expect((await proxy.admin('GET', SECRETS)).body).toEqual({ workspace_secrets: [] });
    const refused = await proxy.admin('PUT', CONFIG, keyRules('{OF_BOX}', 'workspace_secret'));
    expect(refused.status).toBe(422);
  });
});

it.each([
  ['PUT', '/proxy_config', keyRules('x')],
  ['PUT', '/workspace_secrets', { A: 'a' }],
  ['PATCH', '', { token: 'generate' }],
  ['DELETE', '', undefined],
])('%s of a sandbox%s that does not exist returns 404', async (method, path, body) => {
  await using proxy = await createTestSidecar({ admin: true });
  expect((await proxy.admin(method, `${BOX}${path}`, body)).status).toBe(404);
});

it.each([
  ['PATCH', { limits: { max_connections: 1 } }],
  ['PATCH', { nonsense: 1 }],
  ['DELETE', undefined],
])('%s of default is refused: it is the operator’s', async (method, body) => {
  await using proxy = await createTestSidecar({ admin: true });
  const refused = await proxy.admin(method, '/v1/sandboxes/default', body);
  expect(refused).toMatchObject({
    status: 409,
    body: {
      detail: expect.stringMatching(
        /sets the listener, token and limits .* cannot be deleted: change the config$/,
      ),
    },
  });
  expect((await proxy.admin('GET', '/v1/sandboxes/default')).body).toMatchObject({
    limits: { max_connections: 10_000 },
    has_token: false,
  });
});

describe('a store that fails', () => {
  const attempts: readonly (readonly [string, string, unknown])[] = [
    ['PUT', `${BOX}/proxy_config`, keyRules('new')],
    ['PUT', `${BOX}/workspace_secrets`, { ADDED: 'x', KEPT: null }],
    ['PATCH', BOX, { token: OTHER, limits: { max_connections: 1 } }],
    ['DELETE', BOX, undefined],
    ['POST', '/v1/sandboxes', { id: 'second', listen: '127.0.0.1:0', token: OTHER }],
  ];
  it.each(attempts)('at %s %s is reported, and nothing changes', async (method, path, body) => {
    await using scene = await createSandboxScene();
    const store: MemoryStore = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('POST', '/v1/sandboxes', {
      id: 'box',
      token: TOKEN,
      workspace_secrets: { KEPT: 'x' },
      proxy_config: keyRules('old'),
    });
    const client = await scene.tunnel(proxy.port, TOKEN);
    expect(await scene.keyBy(client)).toBe('old');
    const look = async (): Promise<unknown> => [
      await proxy.admin('GET', `${BOX}/proxy_config`),
      await proxy.admin('GET', `${BOX}/workspace_secrets`),
      await proxy.admin('GET', '/v1/sandboxes'),
      new Map(store.contents),
    ];
    const before = await look();
    store.failWith(Object.assign(new Error('the path and all'), { code: 'ENOSPC' }));
    expect(await proxy.admin(method, path, body)).toMatchObject({
      status: 500,
      body: { detail: 'The state could not be written (ENOSPC); nothing was changed' },
    });
    expect(proxy.lines.at(-2)).toMatchObject({
      msg: 'the state could not be written',
      reason: 'the path and all',
    });
    expect(await look()).toEqual(before);
    expect(await scene.keyBy(client)).toBe('old');
    expect(await connectStatus(proxy.port, scene.authority, OTHER)).toBe('407 proxy_auth_required');
    store.failWith(undefined);
    expect((await proxy.admin(method, path, body)).status).toBeLessThan(300);
  });

  it('because another process has its lock says so', async () => {
    await using scene = await createSandboxScene();
    const store: MemoryStore = createMemoryStore();
    const proxy = await scene.start({ state: store });
    const busy = Object.assign(new Error('database is locked'), { code: 'ERR_SQLITE_ERROR' });
    store.failWith(new Error('another process uses this state', { cause: busy }));
    expect(await proxy.admin('PUT', CONFIG, keyRules('new'))).toMatchObject({
      status: 500,
      body: {
        detail: 'The state could not be written (another process may have its lock); nothing was changed',
      },
    });
  });

  it('on disk is reported with the code of the system error', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const sealed = join(scene.directory, 'sandboxes', 'default.sealed');
    await rm(sealed);
    await mkdir(sealed);
    expect(await proxy.admin('PUT', CONFIG, keyRules('new'))).toMatchObject({
      status: 500,
      body: { detail: 'The state could not be written (EISDIR); nothing was changed' },
    });
    expect(await scene.keyAt(proxy.port)).toBe('old');
    expect(await readdir(join(scene.directory, 'sandboxes'))).toEqual(['default.sealed']);
  });
});

describe('while a document is being written', () => {
  const template = keyRules('{T}', 'workspace_secret');
  const withT =
    (value: string) =>
    (name: string): Secret | undefined =>
      name === 'T' ? new Secret(value) : undefined;

  /** A PUT whose write waits: `meanwhile` happens, then it goes on. */
  async function putWhile(
    proxy: TestSidecar,
    store: MemoryStore,
    ask: () => ReturnType<TestSidecar['admin']>,
    meanwhile: () => Promise<void> | void,
  ): Promise<number> {
    const { begun, release } = store.hold();
    const asked = ask();
    await begun;
    await meanwhile();
    expect(proxy.sidecar.revision).toBeLessThanOrEqual(2);
    release();
    return (await asked).status;
  }

  it('requests get the old one', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const put = (): ReturnType<TestSidecar['admin']> => proxy.admin('PUT', CONFIG, keyRules('new'));
    const status = await putWhile(proxy, store, put, async () => {
      expect(await scene.keyAt(proxy.port)).toBe('old');
      expect((await proxy.admin('GET', CONFIG)).body).toMatchObject({ revision: 1 });
    });
    expect(status).toBe(200);
    expect(await scene.keyAt(proxy.port)).toBe('new');
  });

  it('a SIGHUP is in force, and the document is judged on top of it', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store, secrets: { T: 'first' } });
    await proxy.admin('PUT', CONFIG, template);
    const put = (): ReturnType<TestSidecar['admin']> => proxy.admin('PUT', CONFIG, template);
    const status = await putWhile(proxy, store, put, async () => {
      expect(proxy.sidecar.reapply(withT('rotated')).ok).toBe(true);
    });
    expect(status).toBe(200);
    expect(proxy.sidecar.revision).toBe(3);
    expect(await scene.keyAt(proxy.port)).toBe('rotated');
    expect(store.contents.get('default')).toContain('"revision":3');
  });

  it('a SIGHUP makes it stale, and then it is not what the next start finds', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store, secrets: { T: 'first' } });
    const { etag } = await proxy.admin('PUT', CONFIG, template);
    const put = (): ReturnType<TestSidecar['admin']> =>
      proxy.admin('PUT', CONFIG, keyRules('refused'), [`If-Match: ${String(etag)}`]);
    const status = await putWhile(proxy, store, put, () => void proxy.sidecar.reapply(withT('rotated')));
    expect(status).toBe(412);
    expect(await scene.keyAt(proxy.port)).toBe('rotated');
    const next = await scene.start({ state: store, secrets: { T: 'rotated' } });
    expect(await scene.keyAt(next.port)).toBe('rotated');
  });

  it('a SIGHUP takes its secret away, and then it is not what the next start fails on', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store, secrets: { T: 'first' } });
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const put = (): ReturnType<TestSidecar['admin']> => proxy.admin('PUT', CONFIG, template);
    expect(await putWhile(proxy, store, put, () => void proxy.sidecar.reapply(() => undefined))).toBe(422);
    const next = await scene.start({ state: store });
    expect(await scene.keyAt(next.port)).toBe('old');
  });

  it('a SIGHUP stays in force under secrets that are being written', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store, secrets: { T: 'first' } });
    await proxy.admin('PUT', CONFIG, template);
    const put = (): ReturnType<TestSidecar['admin']> => proxy.admin('PUT', SECRETS, { A: 'a' });
    expect(await putWhile(proxy, store, put, () => void proxy.sidecar.reapply(withT('rotated')))).toBe(200);
    expect(proxy.sidecar.revision).toBe(2);
    expect(await scene.keyAt(proxy.port)).toBe('rotated');
    // What the operator's files change is not kept: they are read again at the start.
    expect(store.contents.get('default')).toContain('"revision":1');
  });
});

describe('while a document is being parsed', () => {
  /** The next document waits in the parser until `release`. */
  function holdParser(): { readonly begun: Promise<void>; release(): void } {
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    vi.spyOn(DocumentParser.prototype, 'proxyConfig').mockImplementationOnce(async (document, given) => {
      begun.resolve();
      await released.promise;
      return parseProxyConfig(document, given);
    });
    return { begun: begun.promise, release: released.resolve };
  }

  it('requests get the old one, and a later write waits for it', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const parser = holdParser();
    const first = proxy.admin('PUT', CONFIG, keyRules('first'));
    await parser.begun;
    const second = proxy.admin('PUT', CONFIG, keyRules('second'));
    expect(await scene.keyAt(proxy.port)).toBe('old');
    expect((await proxy.admin('GET', CONFIG)).body).toMatchObject({ revision: 1 });
    expect(store.contents.get('default')).toContain('"revision":1');
    parser.release();
    expect([(await first).body, (await second).body]).toMatchObject([{ revision: 2 }, { revision: 3 }]);
    expect(await scene.keyAt(proxy.port)).toBe('second');
  });

  it('a SIGHUP is in force, and the document is parsed again on top of it', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store, secrets: { T: 'first' } });
    const template = keyRules('{T}', 'workspace_secret');
    await proxy.admin('PUT', CONFIG, template);
    const parser = holdParser();
    const put = proxy.admin('PUT', CONFIG, template);
    await parser.begun;
    const rotated = new Secret('rotated');
    expect(proxy.sidecar.reapply((name) => (name === 'T' ? rotated : undefined)).ok).toBe(true);
    parser.release();
    expect(await put).toMatchObject({ status: 200, body: { revision: 3 } });
    expect(await scene.keyAt(proxy.port)).toBe('rotated');
  });

  it('a SIGHUP makes it stale, and nothing of it is stored', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    const { etag } = await proxy.admin('PUT', CONFIG, keyRules('old'));
    const stored = new Map(store.contents);
    const parser = holdParser();
    const put = proxy.admin('PUT', CONFIG, keyRules('new'), [`If-Match: ${String(etag)}`]);
    await parser.begun;
    proxy.sidecar.reapply(() => undefined);
    parser.release();
    expect((await put).status).toBe(412);
    expect(store.contents).toEqual(stored);
    expect(await scene.keyAt(proxy.port)).toBe('old');
  });

  it.each([
    ['PUT', CONFIG, keyRules('new')],
    ['POST', '/v1/sandboxes', { id: 'second', proxy_config: keyRules('new') }],
  ])('at %s %s the process stops: nothing of it is stored or opened', async (method, path, body) => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const stored = new Map(store.contents);
    const parser = holdParser();
    const write = proxy.admin(method, path, body);
    await parser.begun;
    const closed = proxy.sidecar.close();
    parser.release();
    expect(await write).toMatchObject({ status: 503, body: { code: 'busy' } });
    await closed;
    expect(store.contents).toEqual(stored);
  });
});

describe('a parser that dies', () => {
  const no_proxy = Array.from({ length: 400 }, (_, i) => `host-${i}.large.test`);
  const large = { ...keyRules('new'), no_proxy };
  it.each<[method: string, path: string, body: unknown]>([
    ['PUT', CONFIG, large],
    ['POST', '/v1/sandboxes', { id: 'second', proxy_config: large }],
  ])('at %s %s is a 503, and nothing changes', async (method, path, body) => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store });
    await proxy.admin('PUT', CONFIG, keyRules('old'));
    const client = await scene.tunnel(proxy.port);
    const stored = new Map(store.contents);
    vi.spyOn(Worker.prototype, 'postMessage').mockImplementationOnce(function (this: Worker) {
      void this.terminate();
    });
    const failed = await proxy.admin(method, path, body);
    expect(failed).toMatchObject({ status: 503, body: { code: 'parser_failed' } });
    expect(store.contents).toEqual(stored);
    expect((await proxy.admin('GET', '/v1/sandboxes')).body['sandboxes']).toHaveLength(1);
    expect((await proxy.admin('GET', CONFIG)).body).toMatchObject({ revision: 1 });
    expect(await scene.keyBy(client)).toBe('old');
    expect((await proxy.admin('PUT', CONFIG, large)).status).toBe(200);
    expect(await scene.keyAt(proxy.port)).toBe('new');
  });
});

it('a large document is applied like a small one, and keeps its opaque value in the next', async () => {
  await using scene = await createSandboxScene();
  const proxy = await scene.start();
  const no_proxy = Array.from({ length: 400 }, (_, i) => `host-${i}.large.test`);
  expect((await proxy.admin('PUT', CONFIG, { ...keyRules('kept', 'opaque'), no_proxy })).status).toBe(200);
  const { body } = await proxy.admin('GET', CONFIG);
  expect((await proxy.admin('PUT', CONFIG, body)).status).toBe(200);
  expect(await scene.keyAt(proxy.port)).toBe('kept');
  const next = await scene.start();
  expect(await scene.keyAt(next.port)).toBe('kept');
});

describe('a limit that is changed holds at once:', () => {
  async function withBox(scene: Awaited<ReturnType<typeof createSandboxScene>>, more: object = {}) {
    const proxy = await scene.start(more);
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN, proxy_config: keyRules('box') });
    const limit = async (limits: object): Promise<void> => {
      expect((await proxy.admin('PATCH', BOX, { limits })).body).toMatchObject({ limits });
    };
    return { proxy, limit };
  }

  it('max_connections, of the sandbox alone', async () => {
    await using scene = await createSandboxScene();
    const { proxy, limit } = await withBox(scene);
    const first = await scene.tunnel(proxy.port, TOKEN);
    await limit({ max_connections: 1 });
    expect(await connectStatus(proxy.port, scene.authority, TOKEN)).toBe('503 too_many_connections');
    expect(await connectStatus(proxy.port, scene.authority)).toBe('200');
    expect(await scene.keyBy(first)).toBe('box');
    await limit({ max_connections: 2 });
    expect(await connectStatus(proxy.port, scene.authority, TOKEN)).toBe('200');
  });

  it('max_connections of a listener of its own', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    const made = await proxy.admin('POST', '/v1/sandboxes', {
      id: 'box',
      listen: '127.0.0.1:0',
      limits: { max_connections: 1 },
      proxy_config: keyRules('box'),
    });
    const port = portOf(made.body['proxy']);
    const first = await scene.tunnel(port);
    expect(await connectStatus(port, scene.authority)).toBe('503 too_many_connections');
    await proxy.admin('PATCH', BOX, { limits: { max_connections: 2 } });
    expect(await connectStatus(port, scene.authority)).toBe('200');
    expect(await scene.keyBy(first)).toBe('box');
  });

  it('max_lookups', async () => {
    // The process as a whole has as many as its threads allow, which here are Node's four.
    vi.stubEnv('UV_THREADPOOL_SIZE', '32');
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    await using scene = await createSandboxScene();
    const names = { 'a.test': promise, 'b.test': promise, 'c.test': promise };
    const { proxy, limit } = await withBox(scene, { names });
    const clients: WireClient[] = [];
    const ask = async (name: string): Promise<void> => {
      const client = await WireClient.connect(proxy.port);
      clients.push(client);
      const at = `${name}:${scene.origin.port}`;
      await client.send(`CONNECT ${at} HTTP/1.1\r\nHost: ${at}\r\n${showing(TOKEN)}\r\n\r\n`);
      // A later request gets its response later.
      expect(await connectStatus(proxy.port, `127.0.0.1:${scene.origin.port}`)).toBe('200');
    };
    await limit({ max_lookups: 1 });
    await ask('a.test');
    await ask('b.test');
    expect(proxy.lookups).toEqual(['a.test']);
    await limit({ max_lookups: 2 });
    await ask('c.test');
    expect(proxy.lookups).toEqual(['a.test', 'c.test']);
    resolve(['127.0.0.1']);
    for (const client of clients) expect((await client.readHead()).status).toBe(200);
    expect(proxy.lookups).toEqual(['a.test', 'c.test', 'b.test']);
    for (const client of clients) await client[Symbol.asyncDispose]();
    vi.unstubAllEnvs();
  });

  it.each(['max_idle_upstream', 'max_idle_per_host'])('%s', async (name) => {
    let arrived = 0;
    let { promise: both, resolve: go } = Promise.withResolvers<void>();
    await using scene = await createSandboxScene({
      respond: async (exchange) => {
        arrived += 1;
        if (arrived % 2 === 0) go();
        await both;
        await echo(exchange);
      },
    });
    const { proxy, limit } = await withBox(scene);
    const clients = [await scene.tunnel(proxy.port, TOKEN), await scene.tunnel(proxy.port, TOKEN)];
    const askBoth = async (): Promise<void> => {
      ({ promise: both, resolve: go } = Promise.withResolvers<void>());
      await Promise.all(clients.map((client) => scene.keyBy(client)));
    };
    await askBoth();
    expect([scene.origin.connections, scene.origin.openConnections]).toEqual([2, 2]);
    await limit({ [name]: 1 });
    await askBoth();
    await expect.poll(() => scene.origin.openConnections).toBe(1);
    expect(scene.origin.connections).toBe(2);
  });

  it('those that a change does not name stay as they were', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', limits: { max_lookups: 3, max_connections: 5 } });
    const changed = await proxy.admin('PATCH', BOX, { limits: { max_lookups: 4 } });
    expect(changed.body['limits']).toEqual({
      max_connections: 5,
      max_lookups: 4,
      max_idle_upstream: 1_024,
      max_idle_per_host: 256,
    });
  });
});

describe('a token that is replaced', () => {
  it('lets nobody in any more, ends whoever came by it, and leaves others alone', async () => {
    const gate = Promise.withResolvers<void>();
    await using scene = await createSandboxScene({
      respond: async (exchange) => {
        if (exchange.request.target === '/slow') await gate.promise;
        await echo(exchange);
      },
    });
    const proxy = await scene.start();
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN, proxy_config: keyRules('box') });
    await proxy.admin('POST', '/v1/sandboxes', {
      id: 'else',
      token: `${TOKEN}-2`,
      proxy_config: keyRules('else'),
    });
    const idle = await scene.tunnel(proxy.port, TOKEN);
    expect(await scene.keyBy(idle)).toBe('box');
    const busy = await scene.tunnel(proxy.port, TOKEN);
    await busy.send(`GET /slow HTTP/1.1\r\nHost: ${scene.authority}\r\n\r\n`);
    await scene.origin.request(1);
    const other = await scene.tunnel(proxy.port, `${TOKEN}-2`);
    const changed = await proxy.admin('PATCH', BOX, { token: OTHER });
    expect(changed).toMatchObject({ status: 200, body: { id: 'box', connections: 0 } });
    expect(changed.body['token']).toBeUndefined();
    await Promise.all([idle.finished, busy.finished]);
    gate.resolve();
    expect(await connectStatus(proxy.port, scene.authority, TOKEN)).toBe('407 proxy_auth_required');
    expect(await scene.keyAt(proxy.port, OTHER)).toBe('box');
    expect(await scene.keyBy(other)).toBe('else');
    const slow = proxy.records().filter(({ path }) => path === '/slow');
    expect(slow).toMatchObject([{ sandbox: 'box', outcome: 'failed' }]);
    const next = await scene.start();
    expect(await connectStatus(next.port, scene.authority, TOKEN)).toBe('407 proxy_auth_required');
    expect(await scene.keyAt(next.port, OTHER)).toBe('box');
  });

  it('by a generated one is shown once', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN, proxy_config: keyRules('box') });
    const changed = await proxy.admin('PATCH', BOX, { token: 'generate' });
    const token = String(changed.body['token']);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(await scene.keyAt(proxy.port, token)).toBe('box');
    const reads = [await proxy.admin('GET', BOX), await proxy.admin('GET', '/v1/sandboxes')];
    for (const { text } of reads) expect(text).not.toContain(token);
    expect(JSON.stringify(proxy.lines)).not.toContain(token);
  });

  it('by one that lets clients of another sandbox in is refused', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'else', token: OTHER });
    const refused = await proxy.admin('PATCH', BOX, { token: OTHER });
    expect(refused).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'token'] }] } });
    expect(await connectStatus(proxy.port, '127.0.0.1:9', TOKEN)).not.toMatch(/^407/);
  });

  it('that is the first closes an open listener to whoever shows none', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    const made = await proxy.admin('POST', '/v1/sandboxes', {
      id: 'box',
      listen: '127.0.0.1:0',
      proxy_config: keyRules('box'),
    });
    const port = portOf(made.body['proxy']);
    const before = await scene.tunnel(port);
    expect((await proxy.admin('PATCH', BOX, { token: TOKEN })).body).toMatchObject({ has_token: true });
    await before.finished;
    expect(await connectStatus(port, scene.authority)).toBe('407 proxy_auth_required');
    expect(await scene.keyAt(port, TOKEN)).toBe('box');
  });

  it('is not touched by a change of limits, nor are its clients', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN, proxy_config: keyRules('box') });
    const client = await scene.tunnel(proxy.port, TOKEN);
    await proxy.admin('PATCH', BOX, { limits: { max_connections: 5 } });
    expect(await scene.keyBy(client)).toBe('box');
  });
});

describe('a sandbox that is removed', () => {
  it('ends its clients, frees its port and its name, and is not kept', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    const document = { id: 'box', listen: '127.0.0.1:0', token: TOKEN, proxy_config: keyRules('box') };
    const made = await proxy.admin('POST', '/v1/sandboxes', document);
    const port = portOf(made.body['proxy']);
    const client = await scene.tunnel(port, TOKEN);
    const blind = await WireClient.connect(port);
    await blind.openTunnel(`127.0.0.1:${scene.origin.port}`, [showing(TOKEN)]);
    expect(await scene.keyBy(client)).toBe('box');
    expect(await readdir(join(scene.directory, 'sandboxes'))).toEqual(['box.sealed']);
    expect(await proxy.admin('DELETE', BOX)).toMatchObject({ status: 204, text: '' });
    await Promise.all([client.finished, blind.finished]);
    await expect(WireClient.connect(port)).rejects.toThrow('ECONNREFUSED');
    await expect.poll(() => scene.origin.openConnections).toBe(0);
    expect(await readdir(join(scene.directory, 'sandboxes'))).toEqual([]);
    expect((await proxy.admin('GET', BOX)).status).toBe(404);
    const again = await proxy.admin('POST', '/v1/sandboxes', { ...document, listen: `127.0.0.1:${port}` });
    expect(again).toMatchObject({ status: 201, body: { revision: 1, proxy: `http://127.0.0.1:${port}` } });
    expect(await scene.keyAt(port, TOKEN)).toBe('box');
  });

  it('leaves its port to whatever listens there next, which was out of reach before', async () => {
    await using proxy = await createTestSidecar({ admin: true });
    const made = await proxy.admin('POST', '/v1/sandboxes', { id: 'box', listen: '127.0.0.1:0' });
    const at = `127.0.0.1:${portOf(made.body['proxy'])}`;
    expect(await connectStatus(proxy.port, at)).toMatch(/^403 /);
    await proxy.admin('DELETE', BOX);
    const next = createServer((socket) => socket.on('error', () => socket.destroy()));
    next.listen(portOf(made.body['proxy']), '127.0.0.1');
    await once(next, 'listening');
    expect(await connectStatus(proxy.port, at)).toBe('200');
    next.close();
  });

  it('leaves no client of its token to the main listener’s own', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start({ proxyConfig: keyRules('of default') });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN, proxy_config: keyRules('box') });
    const [mine, others] = [await scene.tunnel(proxy.port, TOKEN), await scene.tunnel(proxy.port)];
    await proxy.admin('DELETE', BOX);
    await mine.finished;
    expect(await connectStatus(proxy.port, scene.authority, TOKEN)).toBe('407 proxy_auth_required');
    expect(await scene.keyBy(others)).toBe('of default');
    const next = await scene.start({ proxyConfig: keyRules('of default') });
    expect(await connectStatus(next.port, scene.authority, TOKEN)).toBe('407 proxy_auth_required');
  });
});
