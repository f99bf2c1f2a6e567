// What a start finds and what a SIGHUP puts in force: the operator's file above the sealed state, the values of then
// where nobody applied anew, and no start at all on what cannot be used.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { encodeSandboxState, newSandboxState } from '../../../src/sidecar/state/sandbox-state.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createMemoryStore } from '../state/memory-store.ts';
import { createSandboxScene, keyRules, portOf, showing } from './sandbox-scene.ts';

const CONFIG = '/v1/proxy_config';
const SECRETS = '/v1/workspace_secrets';
const TOKEN = 'a-sandbox-token-of-enough-length';
/** The operator has a file; the test applies its document. */
const withFile = { config: { proxy_config: '/etc/sallyport/rules.json' } };

const lookupOf =
  (values: Readonly<Record<string, string>>) =>
  (name: string): Secret | undefined =>
    values[name] === undefined ? undefined : new Secret(values[name]);

describe('without a file, a start', () => {
  it('activates what was applied last, with its revision and its tag', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    for (const value of ['one', 'two']) await first.admin('PUT', CONFIG, keyRules(value));
    const before = await first.admin('GET', CONFIG);
    const second = await scene.start();
    const after = await second.admin('GET', CONFIG);
    expect(after).toEqual(before);
    expect(after).toMatchObject({ status: 200, body: { revision: 2 } });
    expect(await scene.keyAt(second.port)).toBe('two');
    const tag = String(after.etag);
    const next = await second.admin('PUT', CONFIG, keyRules('three'), [`If-Match: ${tag}`]);
    expect(next).toMatchObject({ status: 200, body: { revision: 3, warnings: [] } });
    expect(next.etag).not.toBe(tag);
    expect((await second.admin('PUT', CONFIG, keyRules('four'), [`If-Match: ${tag}`])).status).toBe(412);
  });

  it('without stored state has no active rules and creates no file', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    const shown = await proxy.admin('GET', CONFIG);
    expect(shown.body).toEqual({ revision: 0, etag: shown.etag, proxy_config: {} });
    expect(await readdir(scene.directory)).toEqual([]);
  });

  it('has opaque values, and they are read back as is_set alone', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    await first.admin('PUT', CONFIG, keyRules('opaque-canary', 'opaque'));
    const second = await scene.start();
    const shown = await second.admin('GET', CONFIG);
    expect(shown.text).not.toContain('canary');
    const header = { name: 'X-Key', type: 'opaque', is_set: true };
    expect(shown.body).toMatchObject({ proxy_config: { rules: [{ headers: [header] }] } });
    for (const update of [shown.body['proxy_config'], keyRules('', 'opaque')]) {
      expect((await second.admin('PUT', CONFIG, update)).status).toBe(200);
      expect(await scene.keyAt(second.port)).toBe('opaque-canary');
    }
    const third = await scene.start();
    expect(await scene.keyAt(third.port)).toBe('opaque-canary');
  });

  it('restores every sandbox: its port, its token, its limits, its rules', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    const limits = { max_connections: 7 };
    const own = await first.admin('POST', '/v1/sandboxes', {
      id: 'own',
      listen: '127.0.0.1:0',
      limits,
      proxy_config: keyRules('of own'),
    });
    await first.admin('POST', '/v1/sandboxes', {
      id: 'shared',
      token: TOKEN,
      proxy_config: keyRules('of shared'),
    });
    const second = await scene.start();
    const { warnings: _, ...shown } = own.body;
    expect((await second.admin('GET', '/v1/sandboxes/own')).body).toEqual(shown);
    expect(shown).toMatchObject({ limits, revision: 1, has_token: false });
    expect(await scene.keyAt(portOf(own.body['proxy']))).toBe('of own');
    expect(await scene.keyAt(second.port, TOKEN)).toBe('of shared');
  });
});

describe('the operator’s file', () => {
  it('wins at every start, and a PUT over it says so', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    await first.admin('PUT', CONFIG, keyRules('kept'));
    const second = await scene.start({ ...withFile, proxyConfig: keyRules('of the file') });
    expect(await scene.keyAt(second.port)).toBe('of the file');
    const put = await second.admin('PUT', CONFIG, keyRules('put over it'));
    const warning = {
      loc: ['body'],
      type: 'file_wins',
      msg: expect.stringContaining('next start or reload'),
    };
    expect(put).toMatchObject({ status: 200, body: { warnings: [warning] } });
    expect(await scene.keyAt(second.port)).toBe('put over it');
    const third = await scene.start({ ...withFile, proxyConfig: keyRules('of the file') });
    expect(await scene.keyAt(third.port)).toBe('of the file');
    // SIGHUP reads it again.
    await third.admin('PUT', CONFIG, keyRules('put again'));
    expect(third.apply(keyRules('of the file, read again')).ok).toBe(true);
    expect(await scene.keyAt(third.port)).toBe('of the file, read again');
  });

  it('is no warning to other sandboxes', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start({ ...withFile, proxyConfig: keyRules('of the file') });
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', listen: '127.0.0.1:0' });
    const put = await proxy.admin('PUT', '/v1/sandboxes/box/proxy_config', keyRules('of the box'));
    expect(put.body).toEqual({ revision: 1, warnings: [] });
  });

  it('is not stored: without it the next start has the last document of the admin API', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    await first.admin('PUT', CONFIG, keyRules('put'));
    await scene.start({ ...withFile, proxyConfig: keyRules('of the file') });
    const third = await scene.start();
    expect(await scene.keyAt(third.port)).toBe('put');
  });

  it('may use secrets of the admin API, which take precedence over the operator’s own', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    await first.admin('PUT', SECRETS, { A: 'a-of-admin', B: 'b-of-admin' });
    const proxyConfig = keyRules('{A} {B} {C}', 'workspace_secret');
    const secrets = { B: 'b-of-operator', C: 'c-of-operator' };
    const second = await scene.start({ ...withFile, proxyConfig, secrets });
    expect(await scene.keyAt(second.port)).toBe('a-of-admin b-of-admin c-of-operator');
  });

  it('needs no state that compiles: a missing secret stops only a start from the state', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start({ secrets: { A: 'a' } });
    await first.admin('PUT', CONFIG, keyRules('{A}', 'workspace_secret'));
    await expect(scene.start()).rejects.toThrow(
      /^the proxy_config of sandbox default cannot be used: rules\.0\.headers\.0\.value: .*A/,
    );
    const third = await scene.start({ ...withFile, proxyConfig: keyRules('of the file') });
    expect(await scene.keyAt(third.port)).toBe('of the file');
  });
});

describe('a secret of the admin API', () => {
  const template = keyRules('Bearer {T}', 'workspace_secret');

  it('is what it was when the rules were applied, across a restart, until they are applied again', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    await first.admin('PUT', SECRETS, { T: 'value-one' });
    await first.admin('PUT', CONFIG, template);
    await first.admin('PUT', SECRETS, { T: 'value-two' });
    expect(await scene.keyAt(first.port)).toBe('Bearer value-one');
    const second = await scene.start();
    expect(await scene.keyAt(second.port)).toBe('Bearer value-one');
    await second.admin('PUT', CONFIG, template);
    expect(await scene.keyAt(second.port)).toBe('Bearer value-two');
  });

  it('that was deleted while in use outlives a restart in use, and is missing when rules are applied', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    await first.admin('PUT', SECRETS, { T: 'value-one' });
    await first.admin('PUT', CONFIG, template);
    expect((await first.admin('PUT', SECRETS, { T: null })).body).toMatchObject({ workspace_secrets: [] });
    const second = await scene.start();
    expect(await scene.keyAt(second.port)).toBe('Bearer value-one');
    const refused = await second.admin('PUT', CONFIG, template);
    expect(refused).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'rules', 0, 'headers', 0, 'value'] }] },
    });
    expect(await scene.keyAt(second.port)).toBe('Bearer value-one');
  });

  it('is on disk in sealed form only', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    await proxy.admin('PUT', SECRETS, { T: 'canary-value-one' });
    const names = await readdir(scene.directory, { recursive: true });
    expect(names.toSorted()).toEqual(['sandboxes', 'sandboxes/default.sealed', 'state.key', 'state.lock']);
    const bytes = await readFile(join(scene.directory, 'sandboxes', 'default.sealed'));
    expect(bytes.toString('latin1')).not.toMatch(/canary|workspace|secrets/);
  });

  it('of the operator is for default alone', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start({ secrets: { T: 'of the operator' } });
    expect((await proxy.admin('PUT', CONFIG, template)).status).toBe(200);
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', listen: '127.0.0.1:0' });
    const refused = await proxy.admin('PUT', '/v1/sandboxes/box/proxy_config', template);
    expect(refused).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'rules', 0, 'headers', 0, 'value'] }] },
    });
  });
});

describe('a SIGHUP without a file', () => {
  const template = keyRules('{T}', 'workspace_secret');

  it('applies the active document with the operator’s current secrets, as a new revision', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start({ secrets: { T: 'first' } });
    const put = await proxy.admin('PUT', CONFIG, template);
    expect(proxy.sidecar.reapply(lookupOf({ T: 'rotated' }))).toEqual({
      ok: true,
      revision: 2,
      warnings: [],
    });
    expect(await scene.keyAt(proxy.port)).toBe('rotated');
    const shown = await proxy.admin('GET', CONFIG);
    expect(shown.body).toMatchObject({ revision: 2, proxy_config: template });
    expect(shown.etag).not.toBe(put.etag);
  });

  it('leaves the active secrets of the admin API unchanged, also a deleted one', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    await proxy.admin('PUT', SECRETS, { T: 'first' });
    await proxy.admin('PUT', CONFIG, template);
    await proxy.admin('PUT', SECRETS, { T: 'second' });
    expect(proxy.sidecar.reapply(() => undefined).ok).toBe(true);
    expect(await scene.keyAt(proxy.port)).toBe('first');
    await proxy.admin('PUT', SECRETS, { T: null });
    expect(proxy.sidecar.reapply(() => undefined).ok).toBe(true);
    expect(await scene.keyAt(proxy.port)).toBe('first');
  });

  it('that lacks a secret changes nothing, not even the operator’s previous secrets', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start({ secrets: { T: 'first' } });
    await proxy.admin('PUT', CONFIG, template);
    const refused = proxy.sidecar.reapply(lookupOf({ U: 'x' }));
    expect(refused).toMatchObject({ ok: false, issues: [{ loc: ['rules', 0, 'headers', 0, 'value'] }] });
    expect(proxy.sidecar.revision).toBe(1);
    expect(await scene.keyAt(proxy.port)).toBe('first');
    expect((await proxy.admin('PUT', CONFIG, template)).status).toBe(200);
    expect((await proxy.admin('PUT', CONFIG, keyRules('{U}', 'workspace_secret'))).status).toBe(422);
  });

  it('before anything was applied keeps the secrets for the first document', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    expect(proxy.sidecar.reapply(lookupOf({ T: 'later' }))).toEqual({ ok: true, revision: 0, warnings: [] });
    expect((await proxy.admin('PUT', CONFIG, template)).body).toMatchObject({ revision: 1 });
    expect(await scene.keyAt(proxy.port)).toBe('later');
  });
});

it('a tag never identifies two documents, whatever starts, files and signals come between', async () => {
  await using scene = await createSandboxScene();
  const documents = new Map<string, string>();
  const revisions: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const hasFile = round % 2 === 1;
    const options = hasFile ? { ...withFile, proxyConfig: keyRules(`file ${round}`) } : {};
    const proxy = await scene.start(options);
    const look = async (): Promise<void> => {
      const { etag, body } = await proxy.admin('GET', CONFIG);
      const document = JSON.stringify(body);
      expect(documents.get(String(etag)) ?? document).toBe(document);
      documents.set(String(etag), document);
    };
    await look();
    const { body } = await proxy.admin('PUT', CONFIG, keyRules(`put ${round}`));
    revisions.push(Number(body['revision']));
    await look();
    proxy.sidecar.reapply(() => undefined);
    await look();
  }
  expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
  expect(documents.size).toBeGreaterThanOrEqual(10);
});

describe('a start is stopped by', () => {
  const stateOf = (id: string, more: object): string =>
    JSON.stringify({ ...(JSON.parse(encodeSandboxState(newSandboxState(id))) as object), ...more });

  const rows: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
    [
      'state that is none of ours',
      { default: '{"version": 9}' },
      /^the state of sandbox default cannot be used: it was written by another version of Sallyport$/,
    ],
    [
      'the state of another sandbox',
      { a: stateOf('b', {}) },
      /^the state of sandbox a belongs to another sandbox$/,
    ],
    [
      'a rule of default whose secret is not there',
      { default: stateOf('default', { proxyConfig: keyRules('{S}', 'workspace_secret'), revision: 3 }) },
      /^the proxy_config of sandbox default cannot be used: rules\.0\.headers\.0\.value: .*S/,
    ],
  ];
  it.each(rows)('%s', async (_, contents, reason) => {
    const started = createTestSidecar({ state: createMemoryStore(contents) });
    await expect(started).rejects.toThrow(reason);
  });

  it('a wildcard that the operator allowed when it was applied, and no longer does', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start({ config: { allow_wildcards: ['*.github.io'] } });
    const document = { rules: [{ ...keyRules('x').rules[0], match_hosts: ['*.github.io'] }] };
    expect((await first.admin('PUT', CONFIG, document)).status).toBe(200);
    await expect(scene.start()).rejects.toThrow(
      /^the proxy_config of sandbox default cannot be used: rules\.0\.match_hosts\.0: .*allow_wildcards/,
    );
    const third = await scene.start({ config: { allow_wildcards: ['*.github.io'] } });
    expect(third.sidecar.revision).toBe(1);
  });
});

describe('a start disables a sandbox, and reports why,', () => {
  const stateOf = (id: string, more: object): string =>
    JSON.stringify({ ...(JSON.parse(encodeSandboxState(newSandboxState(id))) as object), ...more });
  const wildcard = { rules: [{ ...keyRules('x').rules[0], match_hosts: ['*.github.io'] }] };

  it.each([
    [
      'with a rule that may not be any more',
      stateOf('box', { token: TOKEN, proxyConfig: wildcard, revision: 3 }),
      /^its proxy_config cannot be used: rules\.0\.match_hosts\.0: /,
    ],
    [
      'with a rule whose secret is not there',
      stateOf('box', { token: TOKEN, proxyConfig: keyRules('{S}', 'workspace_secret'), revision: 3 }),
      /^its proxy_config cannot be used: rules\.0\.headers\.0\.value: .*S/,
    ],
    [
      'with a listener that others reach without a token, where the operator no longer says who may',
      stateOf('box', { listen: { host: '0.0.0.0', port: 4000 } }),
      /^its listener is reachable from other machines and needs no token: set allow_clients/,
    ],
  ])('%s', async (_, content, reason) => {
    await using proxy = await createTestSidecar({ admin: true, state: createMemoryStore({ box: content }) });
    expect((await proxy.admin('GET', '/v1/sandboxes/box')).body).toMatchObject({
      failed: expect.stringMatching(reason),
    });
    expect(proxy.lines.filter(({ msg }) => msg === 'the sandbox is disabled')).toHaveLength(1);
    await using client = await WireClient.connect(proxy.port);
    expect((await client.openTunnel('api.test:443', [showing(TOKEN)])).status).toBe(407);
  });

  it('until it gets usable rules', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore({
      box: stateOf('box', { token: TOKEN, proxyConfig: wildcard, revision: 3 }),
    });
    const proxy = await scene.start({ state: store });
    const put = await proxy.admin('PUT', '/v1/sandboxes/box/proxy_config', keyRules('fixed'));
    expect(put).toMatchObject({ status: 200, body: { revision: 4, warnings: [] } });
    expect((await proxy.admin('GET', '/v1/sandboxes/box')).body).not.toHaveProperty('failed');
    expect(await scene.keyAt(proxy.port, TOKEN)).toBe('fixed');
  });

  it('also when its token is changed, which admits its clients once it has usable rules', async () => {
    await using scene = await createSandboxScene();
    const content = stateOf('box', { token: TOKEN, proxyConfig: wildcard, revision: 3 });
    const store = createMemoryStore({ box: content });
    const proxy = await scene.start({ state: store });
    const fresh = `${TOKEN}-anew`;
    const changed = await proxy.admin('PATCH', '/v1/sandboxes/box', { token: fresh });
    expect(changed).toMatchObject({
      status: 200,
      body: { failed: expect.stringMatching(/^its proxy_config cannot be used/) },
    });
    await using client = await WireClient.connect(proxy.port);
    expect((await client.openTunnel('api.test:443', [showing(fresh)])).status).toBe(407);
    await proxy.admin('PUT', '/v1/sandboxes/box/proxy_config', keyRules('fixed'));
    expect(await scene.keyAt(proxy.port, fresh)).toBe('fixed');
    expect(store.contents.get('box')).toContain(`"token":"${fresh}"`);
  });

  it.each([
    ['', { token: `${TOKEN}-anew` }],
    ['', { limits: { max_connections: 9 } }],
    ['/workspace_secrets', { A: 'a' }],
  ])('whatever is changed of it%s except its rules, which stay stored: %j', async (path, change) => {
    await using scene = await createSandboxScene();
    const content = stateOf('box', { token: TOKEN, proxyConfig: wildcard, revision: 3 });
    const store = createMemoryStore({ box: content });
    const first = await scene.start({ state: store });
    const method = path === '' ? 'PATCH' : 'PUT';
    expect((await first.admin(method, `/v1/sandboxes/box${path}`, change)).status).toBe(200);
    const second = await scene.start({ state: store });
    expect((await second.admin('GET', '/v1/sandboxes/box')).body).toMatchObject({
      failed: expect.stringMatching(/^its proxy_config cannot be used: rules\.0\.match_hosts\.0: /),
    });
    const third = await scene.start({ state: store, config: { allow_wildcards: ['*.github.io'] } });
    expect((await third.admin('GET', '/v1/sandboxes/box/proxy_config')).body).toMatchObject({
      revision: 3,
      proxy_config: { rules: [{ match_hosts: ['*.github.io'] }] },
    });
  });

  it('whose port is now in use, and the others serve', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start();
    const made = await first.admin('POST', '/v1/sandboxes', { id: 'box', listen: '127.0.0.1:0' });
    await first.admin('PUT', CONFIG, keyRules('of default'));
    const port = portOf(made.body['proxy']);
    await first[Symbol.asyncDispose]();
    await using _taken = await createTestSidecar({ config: { listen: `127.0.0.1:${port}` } });
    const second = await scene.start();
    expect((await second.admin('GET', '/v1/sandboxes/box')).body).toMatchObject({
      proxy: '',
      failed: `cannot listen on 127.0.0.1:${port} (EADDRINUSE: another process listens there)`,
    });
    expect(await scene.keyAt(second.port)).toBe('of default');
    expect((await second.admin('DELETE', '/v1/sandboxes/box')).status).toBe(204);
  });

  it('whose token is now the main listener’s, which stays that', async () => {
    await using scene = await createSandboxScene();
    await using scratch = await createScratch();
    const first = await scene.start();
    await first.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN });
    await first.admin('PUT', CONFIG, keyRules('of default'));
    const auth = { token_file: await scratch.write('token', TOKEN) };
    const second = await scene.start({ config: { auth } });
    expect((await second.admin('GET', '/v1/sandboxes/box')).body).toMatchObject({
      failed: expect.stringMatching(/^its token belongs to another sandbox on the main listener/),
    });
    expect(await scene.keyAt(second.port, TOKEN)).toBe('of default');
    expect((await second.admin('DELETE', '/v1/sandboxes/box')).status).toBe(204);
    expect(await scene.keyAt(second.port, TOKEN)).toBe('of default');
  });

  it('whose token is now the main listener’s, until it gets another one', async () => {
    await using scene = await createSandboxScene();
    await using scratch = await createScratch();
    const store = createMemoryStore({
      box: stateOf('box', { token: TOKEN, proxyConfig: keyRules('box'), revision: 1 }),
    });
    const auth = { token_file: await scratch.write('token', TOKEN) };
    const proxy = await scene.start({ state: store, config: { auth }, proxyConfig: keyRules('of default') });
    const changed = await proxy.admin('PATCH', '/v1/sandboxes/box', { token: `${TOKEN}-anew` });
    expect(changed.body).not.toHaveProperty('failed');
    expect(await scene.keyAt(proxy.port, `${TOKEN}-anew`)).toBe('box');
    expect(await scene.keyAt(proxy.port, TOKEN)).toBe('of default');
  });
});

describe('state that the operator’s document replaces', () => {
  it('does not stop a start: a stored document that is no longer valid causes a warning', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start({ config: { allow_wildcards: ['*.github.io'] } });
    await first.admin('PUT', CONFIG, {
      rules: [{ ...keyRules('x').rules[0], match_hosts: ['*.github.io'] }],
    });
    const second = await scene.start({
      config: { proxy_config: '/operators/rules.json' },
      proxyConfig: keyRules('file'),
    });
    expect(await scene.keyAt(second.port)).toBe('file');
    expect(second.lines.filter(({ msg }) => msg === 'the stored proxy_config cannot be used')).toHaveLength(
      1,
    );
  });

  it('is never overwritten: a start without the file has the last document of the admin API', async () => {
    await using scene = await createSandboxScene();
    const first = await scene.start({
      config: { proxy_config: '/operators/rules.json' },
      proxyConfig: keyRules('file'),
    });
    await first.admin('PUT', CONFIG, keyRules('put'));
    first.apply(keyRules('file again'));
    expect(await scene.keyAt(first.port)).toBe('file again');
    await first.admin('PUT', SECRETS, { A: 'a' });
    const second = await scene.start();
    expect(await scene.keyAt(second.port)).toBe('put');
  });

  it('a document that is being stored uses the operator’s current secrets and no earlier ones', async () => {
    await using scene = await createSandboxScene();
    const store = createMemoryStore();
    const proxy = await scene.start({ state: store, secrets: { T: 'withdrawn' } });
    const { begun, release } = store.hold();
    const put = proxy.admin('PUT', CONFIG, keyRules('{T}', 'workspace_secret'));
    await begun;
    proxy.sidecar.reapply(lookupOf({ T: 'of now' }));
    release();
    expect((await put).status).toBe(200);
    expect(await scene.keyAt(proxy.port)).toBe('of now');
  });
});
