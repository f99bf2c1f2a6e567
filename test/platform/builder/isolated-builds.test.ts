// Builds in real workloads, by the real npm and a registry on loopback, and what hostile code in them gets.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  isMissing,
  openTestWorkloads,
  script as shellScript,
  type Started,
  type TestWorkloads,
  titled,
} from '../../workload/test-workloads.ts';
import { type BuilderScene, createBuilderScene, type Files, graphFile } from './builder-scene.ts';
import { lockFile, startTestRegistry, type TestRegistry } from './test-registry.ts';

const isolation = 'bubblewrap';

describe.skipIf(isMissing(isolation))(titled('an isolated build', isolation), { tags: ['long'] }, () => {
  let scene: BuilderScene;
  let registry: TestRegistry;
  let machine: TestWorkloads;
  let neighbour: Started;
  let running: Awaited<ReturnType<BuilderScene['start']>>;
  beforeAll(async () => {
    [scene, registry] = await Promise.all([
      createBuilderScene(),
      startTestRegistry({ left: { 'index.js': "module.exports = 'left';" } }),
    ]);
    // The operator lets builds reach this registry of the machine.
    machine = await openTestWorkloads(isolation, { egress: { allow_private: ['loopback'] } });
    const env = { PATH: process.env['PATH'] ?? '', npm_config_registry: registry.url };
    running = await scene.start({
      ...{ workloads: machine.workloads, env },
      settings: { timeoutMs: 120_000, diskBytes: 64 * 1024 ** 2, memoryBytes: 512 * 1024 ** 2 },
    });
  });
  beforeAll(async () => {
    neighbour = await machine.start(
      shellScript('n=0; while :; do n=$((n+1)); echo "line $n"; sleep 0.1; done'),
    );
  });
  afterAll(async () => {
    await running.stop();
    await machine[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
    await scene[Symbol.asyncDispose]();
  });

  const build = async (files: Files, config = {}) => {
    const deployment = await scene.addDeployment();
    const revisionId = await scene.addRevision(deployment, files, { config });
    await expect.poll(() => running.ends.get(revisionId), { timeout: 120_000 }).toBeDefined();
    const log = await scene.logOf(deployment, revisionId);
    return { deployment, revisionId, outcome: running.ends.get(revisionId), log };
  };
  /** What runs beside a build goes on. */
  const expectUnharmed = () => neighbour.line(`line ${neighbour.lines.length + 3}`);
  const script = (code: string): Files => ({ ...graphFile, 'script.mjs': code });
  const runsScript = { build_command: 'node script.mjs' };

  it('installs by its lock file, from the registry alone, and again from the cache', {
    timeout: 240_000,
  }, async () => {
    const files = { ...graphFile, ...lockFile(registry, ['left']) };
    const first = await build(files);
    expect(first.log.join('\n')).toContain('built in');
    expect(first.outcome).toBe('ready');
    const directory = await scene.directoryOf(first.revisionId);
    expect(await readFile(join(directory, 'node_modules/left/index.js'), 'utf8')).toContain('left');
    expect(registry.requests).toContain('/left/-/left-1.0.0.tgz');
  });

  it.each([
    [
      'forks',
      'import { spawn } from "node:child_process"; for (;;) { spawn(process.execPath, ["script.mjs"], { stdio: "ignore", detached: true }).on("error", () => {}).unref(); await new Promise(setImmediate); }',
      /failed: it (?:started more than|used more memory|took longer|was ended|ended with)/,
    ],
    [
      'fills the disk',
      'import fs from "node:fs"; const f = fs.openSync("big", "w"); const b = Buffer.alloc(1 << 20, 1); for (;;) fs.writeSync(f, b);',
      /failed: it (?:wrote more files than 64 MiB|was ended by SIGXFSZ|ended with)/,
    ],
    [
      'fills the memory',
      'const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1));',
      /failed: it used more memory than 512 MiB/,
    ],
    [
      'prints without end',
      'const line = "x".repeat(8000) + "\\n"; const go = () => { while (process.stdout.write(line)); process.stdout.once("drain", go); }; go();',
      /failed: the build printed more than 64 MiB/,
    ],
  ])('that %s fails with the reason', { timeout: 200_000 }, async (_, code, reason) => {
    const { outcome, log } = await build(script(code), runsScript);
    expect(log.at(-1)).toMatch(reason);
    expect(outcome).toBe('build_failed');
    await expectUnharmed();
  });

  it('that hangs fails with the reason', { timeout: 60_000 }, async () => {
    await using own = await createBuilderScene();
    await using builder = await own.start({ workloads: machine.workloads, settings: { timeoutMs: 4_000 } });
    const deployment = await own.addDeployment();
    const config = { build_command: 'node script.mjs' };
    const files = script('process.on("SIGTERM", () => {}); setInterval(() => {}, 1000);');
    const revisionId = await own.addRevision(deployment, files, { config });
    await expect.poll(() => builder.ends.get(revisionId), { timeout: 50_000 }).toBe('build_failed');
    expect(await own.reasonOf(revisionId)).toBe('`node script.mjs` failed: it took longer than allowed');
    await expectUnharmed();
  });

  it('reaches nothing but the registries, and the log says what was refused', async () => {
    const code = `
      const tries = ['http://169.254.169.254/', 'http://metadata.google.internal/', 'http://127.0.0.1:1/', 'http://example.com/'];
      for (const url of tries) {
        const text = await fetch(url).then((response) => String(response.status), (error) => error.cause?.code ?? error.message);
        console.log('tried', url, text);
      }`;
    const { outcome, log } = await build(script(code), runsScript);
    expect(outcome).toBe('ready');
    expect(log.filter((line) => line.includes('tried') && line.includes(' 200'))).toEqual([]);
    expect(log.join('\n')).toMatch(/refused by the network of builds: .*example\.com/);
  });

  it('sees neither the files nor the variables of its machine', async () => {
    const canary = join(dirname(scene.directory), 'canary');
    const code = `
      import fs from 'node:fs';
      for (const path of ['${canary}', '${scene.directory}/packages', '${scene.directory}/installations', '/etc/shadow', '/root/.ssh'])
        try { fs.statSync(path); console.log('found', path); } catch {}
      try { console.log('builds', fs.readdirSync('${scene.directory}/builds').length); } catch { console.log('builds hidden'); }
      console.log(Object.keys(process.env).join(' '));`;
    const { log, outcome } = await build(script(code), runsScript);
    expect(outcome).toBe('ready');
    expect(log.filter((line) => line.includes('found'))).toEqual([]);
    expect(log.join('\n')).toMatch(/builds (?:1|hidden)/);
    expect(log.join('\n')).not.toContain('VITEST');
  });
});
