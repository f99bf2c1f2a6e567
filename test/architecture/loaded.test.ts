// What a running sidecar has really loaded: a file that holds secrets should hold little else, and every module
// is start time, memory and supply chain.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createScratch } from '../support/scratch.ts';
import { type LogRecord, launcher, projectRoot, spawnSallyport } from '../support/spawned-process.ts';
import { packageOf, readSources } from './source-tree.ts';

const MAX_OWN_FILES = 178;
const MAX_WITHOUT_ADMIN = 174;

async function loadedBy(
  proxyConfig: unknown,
  env: Readonly<Record<string, string>> = {},
  use: (ready: LogRecord) => Promise<void> = async () => undefined,
): Promise<readonly string[]> {
  await using scratch = await createScratch();
  const file = await scratch.write('loaded', '');
  const preloads = [join(import.meta.dirname, 'load-record.ts')];
  await using sallyport = await spawnSallyport({
    proxyConfig,
    // A bundle is one file.
    program: launcher,
    preloads,
    env: { ...env, SALLYPORT_LOADED: file },
  });
  await use(await sallyport.process.record(({ msg }) => msg === 'ready'));
  sallyport.process.kill('SIGTERM');
  await sallyport.process.exited;
  const root = `${pathToFileURL(projectRoot).href}/`;
  const urls = readFileSync(file, 'utf8').trim().split('\n');
  return [...new Set(urls.map((url) => url.replace(root, '')))];
}

const packagesIn = (loaded: readonly string[]): readonly string[] => [
  ...new Set(
    loaded
      .map((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1])
      .filter((name) => name !== undefined),
  ),
];

const rule = {
  name: 'good',
  match_hosts: ['good.test'],
  headers: [{ name: 'X-Key', type: 'plaintext', value: 'k' }],
};

describe('a running sidecar', () => {
  it('has loaded our sidecar files, the packages that have an adapter, and nothing else', async () => {
    const loaded = await loadedBy({ rules: [rule] });
    const own = loaded.filter((url) => url.startsWith('src/'));
    expect(own).toContain('src/main.ts');
    expect(own.length).toBeLessThanOrEqual(MAX_OWN_FILES);
    expect(own.filter((file) => /^src\/(platform|gateway)\//.test(file))).toEqual([]);
    expect(packagesIn(loaded).filter((name) => !productionPackages().has(name))).toEqual([]);
    expect(packagesIn(loaded)).not.toContain('undici');
    expect(packagesIn(loaded)).not.toContain('libsodium-wrappers');
    // Metrics are formatted where there is a listener for them.
    expect(packagesIn(loaded)).not.toContain('prom-client');
    expect(own.filter((file) => file.startsWith('src/sidecar/metrics/'))).toEqual([]);
    // The admin API comes with its first connection.
    expect(own.filter((file) => file.startsWith('src/base/http/'))).toEqual([
      'src/base/http/paced-socket.ts',
    ]);
    expect(loaded.filter((url) => /^node:(http|http2|https|child_process|zlib)$/.test(url))).toEqual([]);
    // Records are forwarded where a platform is named.
    expect(own.filter((file) => /\/record-(?!forward-config|outlets)/.test(file))).toEqual([]);
    const elsewhere = loaded.filter(
      (url) => !/^(src|bin|node_modules|node:|test\/(support|architecture))/.test(url),
    );
    expect(elsewhere).toEqual([]);
  });

  it('with metrics loads what formats them with their first reading, and nothing of the platform', async () => {
    const metrics = { SALLYPORT_METRICS_LISTEN: '127.0.0.1:0' };
    const before = await loadedBy({ rules: [rule] }, metrics);
    expect(before.filter((file) => file.startsWith('src/sidecar/metrics/'))).toEqual([
      'src/sidecar/metrics/metrics-server.ts',
    ]);
    expect(packagesIn(before)).not.toContain('prom-client');
    const after = await loadedBy({ rules: [rule] }, metrics, async (ready) => {
      const { status } = await fetch(`${ready['metrics']}/metrics`);
      expect(status).toBe(200);
    });
    expect(packagesIn(after)).toContain('prom-client');
    expect(after.filter((file) => /^src\/(platform|gateway)\//.test(file))).toEqual([]);
  });

  it('without an admin API has loaded nothing of it', async () => {
    const loaded = await loadedBy({ rules: [rule] }, { SALLYPORT_ADMIN_LISTEN: 'off' });
    const own = loaded.filter((url) => url.startsWith('src/'));
    expect(own.length).toBeLessThanOrEqual(MAX_WITHOUT_ADMIN);
    expect(own.filter((file) => file.startsWith('src/admin/'))).toEqual([]);
    // HTTP/2 comes with the first client that speaks it.
    expect(own.filter((file) => /\/(stream-|client-session|header-block)/.test(file))).toEqual([]);
  });
});

/** What the sources besides the platform import, and what that depends on, by the lockfile. */
function productionPackages(): ReadonlySet<string> {
  const { packages } = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8'));
  const files = readSources('src/**/*.ts').filter(({ path }) => !/^src\/(?:platform|gateway)\//.test(path));
  const names = new Set(files.flatMap(({ imports }) => imports.map(({ to }) => packageOf(to))));
  for (const name of names)
    for (const needed of Object.keys(packages[`node_modules/${name}`]?.dependencies ?? {})) names.add(needed);
  return names;
}
