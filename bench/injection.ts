// The cost of an injected header: latency and CPU per request, memory and start time, compared with a direct connection, a
// blind tunnel, nginx and HAProxy. `npm run bench -- [--full] [--h2] [--json] [--package DIR] [--profile DIR]`: only the loads
// over HTTP/2; another package than this checkout's bundle; a CPU profile of the proxy. Progress goes to standard error.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type BenchCase, type Plan, benchCases, plans } from './support/cases.ts';
import { type Children, createChildren, residentMb } from './support/children.ts';
import { type LoadClient, type Samples, joinSamples, startLoadClient } from './support/measure.ts';
import { startHaproxy } from './support/haproxy.ts';
import { startNginx } from './support/nginx.ts';
import { findProgram } from './support/peer.ts';
import { type Measured, createReport } from './support/report.ts';
import { drain, layOutPackage, startSallyport } from './support/sallyport.ts';
import { createScene } from './support/scene.ts';
import { measureH1, measureH2 } from './support/schedule.ts';
import { measureStarts } from './support/start-time.ts';
import { formatReport } from './support/table.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
    h2: { type: 'boolean', default: false },
    package: { type: 'string' },
    profile: { type: 'string' },
  },
});
const plan: Plan = flags.full ? plans.full : flags.tiny ? plans.tiny : plans.quick;
const startedMs: number = performance.now();
const directory: string = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
// nginx runs as the user nobody and has a folder in it.
chmodSync(directory, 0o711);
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
await using children = createChildren();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    const exit = (): void => process.exit(1);
    children[Symbol.asyncDispose]().then(exit, exit);
  });

const { samples, cases, measured } = await bench(children);
const report = createReport(samples, measured, { isPinned: children.isPinned, startedMs });
console.log(flags.json ? JSON.stringify(report) : formatReport(report, cases));

type Bench = {
  readonly samples: Samples;
  readonly cases: readonly BenchCase[];
  readonly measured: Measured;
};

async function bench(children: Children): Promise<Bench> {
  const packageDirectory = flags.package === undefined ? layOutPackage(directory) : resolve(flags.package);
  const profileDirectory = flags.profile === undefined ? undefined : resolve(flags.profile);
  const programs = { nginx: findProgram('nginx'), haproxy: findProgram('haproxy') };
  await using scene = await createScene(children, directory);
  // Measured first: on a busy machine this takes longer, and then fewer rounds are run.
  say('starts');
  const starts = await measureStarts(children, scene, { packageDirectory, count: plan.starts });
  const sallyport = await startSallyport(children, scene, { packageDirectory, profileDirectory });
  const { nginx, haproxy } = programs;
  const peers = {
    nginx: nginx && (await startNginx(nginx.path, children, scene)),
    haproxy: haproxy && (await startHaproxy(haproxy.path, children, scene)),
  };
  const client = startLoadClient(children, scene);
  const processes = children.list();
  say(`processes ${processes.map(({ name, pid }) => `${name} ${pid}`).join(', ')}`);

  const cases = benchCases(scene, sallyport, peers);
  const idle = residentMb(sallyport.child.pid);
  const schedule = {
    plan,
    cases,
    startedMs,
    say,
    onRound() {
      // With an empty file the proxy would have been measured without writing records.
      if (sallyport.emptyRecords() === 0) throw new Error('no records were written');
    },
  };
  const h1 = flags.h2 ? undefined : await measureH1(client, schedule);
  const loaded = residentMb(sallyport.child.pid);
  const h2 = await measureH2(client, schedule);
  const loadedH2 = residentMb(sallyport.child.pid);
  if (!flags.h2 && scene.callbackCalls() !== 1)
    throw new Error(`the callback was called ${scene.callbackCalls()} times`);
  if (profileDirectory !== undefined) await drain(sallyport.child);
  await sallyport.child.stop();
  const measured: Measured = {
    plan,
    versions: { node: process.version, nginx: nginx?.version ?? null, haproxy: haproxy?.version ?? null },
    commands: Object.fromEntries(processes.map(({ name, command }) => [name, command])),
    suite: onlySuite(client),
    rate_per_second: h1?.ratePerSecond ?? null,
    callback_calls: scene.callbackCalls(),
    memory: {
      idle_mb: idle.now,
      loaded_mb: loaded.now,
      peak_mb: loaded.peak,
      h2_loaded_mb: loadedH2.now,
      h2_peak_mb: loadedH2.peak,
    },
    start_ms: starts,
  };
  return { samples: h1 ? joinSamples(h1.samples, h2) : h2, cases, measured };
}

function onlySuite(client: LoadClient): string {
  const [suite, ...others] = client.suites();
  if (suite === undefined || others.length > 0) throw new Error('the cases differ in their TLS suites');
  return suite;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
