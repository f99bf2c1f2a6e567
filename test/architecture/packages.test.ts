// The packages that the product must use do their work in a running sidecar: with a wildcard rule, a callback and an
// opaque value, the adapter of each package and the package itself are called. V8's coverage counts the calls, so a
// package that is only imported, or replaced by code of our own, fails here.
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAdminClient } from '../support/admin-client.ts';
import { type CallbackEndpoint, createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { createOrigin, type RecordingOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { launcher, projectRoot, SpawnedProcess } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { WireClient } from '../support/wire-client.ts';

/** The adapter with a function of it that calls the package, and a function of the package: its name, or a call in it. */
const rows: readonly (readonly [name: string, adapter: string, call: string, called: string])[] = [
  ['node-forge', 'src/tls/certificate.ts', 'signLeaf', 'asn1.toDer'],
  ['lru-cache', 'src/base/bounded-cache.ts', 'get', 'get'],
  ['picomatch', 'src/policy/match/host-pattern.ts', 'compileHostPattern', 'picomatch.makeRe'],
  ['libsodium-wrappers', 'src/base/seal.ts', 'seal', '_crypto_aead_xchacha20poly1305_ietf_encrypt('],
  ['pino', 'src/base/log.ts', 'createLog', 'asJson'],
  ['undici', 'src/callback/client.ts', 'createAgent', 'request'],
];

const HOSTS = ['a.wild.test', 'called.test'];
const OPAQUE = 'an-opaque-value-of-this-test';
const CALLED = 'a-value-of-the-callback';
const origins = createTestAuthority();

describe('a sidecar with a wildcard rule, a callback and an opaque value', () => {
  let scratch: Scratch;
  let seen: readonly (string | undefined)[] = [];
  let callbackCalls = 0;
  let calls: ReadonlyMap<string, ReadonlySet<string>> = new Map();

  beforeAll(async () => {
    scratch = await createScratch();
    await using endpoint = await createCallbackEndpoint({ headers: { 'X-Key': CALLED } });
    await using origin = await createOrigin({ tls: { authority: origins, names: HOSTS } });
    seen = await useEverything(scratch, origin, endpoint);
    callbackCalls = endpoint.calls.length;
    calls = readCalls(join(scratch.path, 'coverage'));
  }, 60_000);

  afterAll(() => scratch?.[Symbol.asyncDispose]());

  it('injects what the rule and the callback give, and calls the endpoint once', () => {
    expect([seen, callbackCalls]).toEqual([[OPAQUE, CALLED, CALLED], 1]);
  });

  it('stores the opaque value sealed', () => {
    const stored = readdirSync(join(scratch.path, 'secret', 'sandboxes')).map((file) =>
      readFileSync(join(scratch.path, 'secret', 'sandboxes', file), 'latin1'),
    );
    expect(stored).toHaveLength(1);
    expect(stored.join()).not.toContain(OPAQUE);
  });

  it.each(rows)('calls %s through its adapter', (name, adapter, call, called) => {
    expect([...(calls.get(adapter) ?? [])]).toContain(call);
    expect([...(calls.get(name) ?? [])]).toContain(called);
  });
});

/** Runs the sidecar from its start to its end; returns the X-Key that the origin received with each request. */
async function useEverything(
  scratch: Scratch,
  origin: RecordingOrigin,
  endpoint: CallbackEndpoint,
): Promise<readonly (string | undefined)[]> {
  const nameTable = join(import.meta.dirname, '..', 'support', 'name-table.ts');
  await using child = new SpawnedProcess(process.execPath, ['--import', nameTable, launcher, 'proxy'], {
    env: {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: scratch.path,
      SALLYPORT_UPSTREAM_CA: await scratch.write('upstream-ca.pem', origins.certificatePem),
      NODE_V8_COVERAGE: join(scratch.path, 'coverage'),
      // Coverage does not count the calls of functions from the compile cache.
      NODE_DISABLE_COMPILE_CACHE: '1',
    },
  });
  const ready = await child.record(({ msg }) => msg === 'ready');
  const token = (await readFile(String(ready['admin_token']), 'utf8')).trim();
  const admin = createAdminClient(String(ready['admin']), token);
  const header = { name: 'X-Key', type: 'opaque', value: OPAQUE };
  const config = {
    rules: [{ match_hosts: ['*.wild.test'], headers: [header] }],
    callbacks: [{ match_hosts: ['called.test'], url: endpoint.url, ttl_seconds: 60 }],
  };
  expect(await admin('PUT', '/v1/proxy_config', { proxy_config: config })).toMatchObject({ status: 200 });
  const port = Number(new URL(String(ready['proxy'])).port);
  const ca = await readFile(String(ready['ca']), 'utf8');
  for (const name of ['a.wild.test', 'called.test', 'called.test']) {
    const authority = `${name}:${origin.port}`;
    await using client = await WireClient.connectThrough(port, authority, { ca, name });
    await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    await client.readResponse();
  }
  child.kill('SIGTERM');
  expect(await child.exited).toEqual({ code: 0, signal: null });
  return origin.requests.map(({ headers }) => headers.find(([name]) => name === 'X-Key')?.[1]);
}

/** The names of the functions that were called, by package, or by path for files of our own. */
function readCalls(folder: string): ReadonlyMap<string, ReadonlySet<string>> {
  const root = `${pathToFileURL(projectRoot).href}/`;
  const calls = new Map<string, Set<string>>();
  for (const file of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    for (const { url, functions } of result) {
      const path = String(url).replace(root, '');
      const key = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path;
      const names = calls.get(key) ?? new Set();
      calls.set(key, names);
      for (const { functionName, ranges } of functions) if (ranges[0].count > 0) names.add(functionName);
      for (const [name, , , text] of rows)
        if (name === key && text.endsWith('(') && isCalled(url, functions, text)) names.add(text);
    }
  }
  return calls;
}

type Covered = { readonly ranges: readonly { startOffset: number; endOffset: number; count: number }[] };

/** For minified names: whether the innermost function around the text was called. */
function isCalled(url: string, functions: readonly Covered[], text: string): boolean {
  const at = readFileSync(new URL(url), 'utf8').indexOf(text);
  const around = functions.flatMap(({ ranges }) => ranges.slice(0, 1));
  const [innermost] = around
    .filter(({ startOffset, endOffset }) => at >= startOffset && at < endOffset)
    .toSorted((a, b) => b.startOffset - a.startOffset);
  return innermost !== undefined && innermost.count > 0;
}
