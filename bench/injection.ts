// What does an injected header cost? Latency and CPU for each request, memory and start, beside going direct, a blind
// tunnel and nginx. `npm run bench -- [--full] [--json] [--package DIR] [--profile DIR]`: another package than this
// checkout's bundle; a CPU profile of the proxy. Progress goes to standard error.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type BenchCase, type Load, type LoadName, type Plan, benchCases, plans } from './support/cases.ts';
import { type Children, createChildren, residentMb } from './support/children.ts';
import {
  type LoadClient,
  type Samples,
  joinSamples,
  measureRounds,
  startLoadClient,
} from './support/measure.ts';
import { findNginx, startNginx } from './support/nginx.ts';
import { type Measured, createReport } from './support/report.ts';
import { type Sallyport, drain, layOutPackage, startSallyport } from './support/sallyport.ts';
import { createScene } from './support/scene.ts';
import { spreadOf } from './support/percentiles.ts';
import { measureStarts } from './support/start-time.ts';
import { formatReport } from './support/table.ts';

const { values: flags } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    full: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
    package: { type: 'string' },
    profile: { type: 'string' },
  },
});
const plan: Plan = flags.full ? plans.full : flags.tiny ? plans.tiny : plans.quick;
const startedMs: number = performance.now();
const directory: string = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
// nginx runs as nobody and has a folder in it.
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
  const nginx = findNginx();
  await using scene = await createScene(children, directory);
  // First of all, so that a busy machine, which draws them out, is made up for by fewer rounds.
  say('starts');
  const starts = await measureStarts(children, scene, { packageDirectory, count: plan.starts });
  const sallyport = await startSallyport(children, scene, { packageDirectory, profileDirectory });
  const peer = nginx && (await startNginx(nginx.path, children, scene));
  const client = startLoadClient(children);
  const programs = children.list();
  say(`processes ${programs.map(({ name, pid }) => `${name} ${pid}`).join(', ')}`);

  const cases = benchCases(scene, sallyport, peer);
  const idle = residentMb(sallyport.child.pid);
  const { samples, ratePerSecond } = await measureAll(client, cases, sallyport);
  const loaded = residentMb(sallyport.child.pid);
  if (scene.callbackCalls() !== 1) throw new Error(`the callback was asked ${scene.callbackCalls()} times`);
  if (profileDirectory !== undefined) await drain(sallyport.child);
  await sallyport.child.stop();
  const measured: Measured = {
    plan,
    versions: { node: process.version, nginx: nginx?.version ?? null },
    commands: Object.fromEntries(programs.map(({ name, command }) => [name, command])),
    suite: onlySuite(client),
    rate_per_second: ratePerSecond,
    callback_calls: scene.callbackCalls(),
    memory: { idle_mb: idle.now, loaded_mb: loaded.now, peak_mb: loaded.peak },
    start_ms: starts,
  };
  return { samples, cases, measured };
}

/** Closed loops first: half of what the slowest case then reached is the constant rate for all. */
async function measureAll(
  client: LoadClient,
  cases: readonly BenchCase[],
  sallyport: Sallyport,
): Promise<{ samples: Samples; ratePerSecond: number }> {
  const load = (name: LoadName, clients: number, ratePerSecond?: number): Load => ({
    name,
    clients,
    durationMs: plan.durationMs[name],
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
  });
  const onRound = (round: number): void => {
    // An empty file would mean that the proxy was measured without its records.
    if (sallyport.emptyRecords() === 0) throw new Error('no records were written');
    say(`round ${round} of ${plan.rounds}`);
  };
  const many = load('h1_32', plan.clients);
  say('warming up');
  for (const subject of cases) await client.measure(subject, { ...many, durationMs: plan.warmUpMs }, 0);
  const options = { rounds: plan.rounds, settleMs: plan.settleMs, onRound };
  const until = (limitMs: number): typeof options & { lastRoundMs: number } => ({
    ...options,
    lastRoundMs: startedMs + limitMs,
  });
  const closed = await measureRounds(client, cases, [load('h1_1', 1), many], until(plan.lastRoundMs.closed));
  const capacities = cases.map(({ name }) => {
    const list = closed.get(name)?.get('h1_32') ?? [];
    return spreadOf(list.map(({ perSecond }) => perSecond)).median;
  });
  const ratePerSecond = Math.floor(Math.min(...capacities) / 2);
  const constant = await measureRounds(
    client,
    cases,
    [load('rate', plan.clients, ratePerSecond)],
    until(plan.lastRoundMs.rate),
  );
  return { samples: joinSamples(closed, constant), ratePerSecond };
}

function onlySuite(client: LoadClient): string {
  const [suite, ...others] = client.suites();
  if (suite === undefined || others.length > 0) throw new Error('the cases differ in their TLS suites');
  return suite;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
