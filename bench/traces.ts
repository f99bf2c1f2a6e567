// What ingestion of traces costs: `npm run bench -- traces [--runs N] [--rounds N] [--bodies N] [--package DIR] [--profile DIR] [--only ratio,memory,hostile]`.
// Runs a second beside psql's COPY of the same rows, the memory of the platform with large bodies, and what hostile bodies cost it
// and a bystander. Ends with 1 when a figure misses its limit.
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  addOrganization,
  type ApiServer,
  initialize,
  moveDatabase,
  ownerOf,
  startPlatform,
} from './platform/servers.ts';
import { createChildren } from './support/children.ts';
import { inspectMachine, warningsOf } from './support/machine.ts';
import { layOutPackage } from './support/package.ts';
import { formatTable } from './support/table.ts';
import { type Body, type Hostile, hostileBodies, largeBody, runBodies } from './traces/bodies.ts';
import { beside, send, sendAll, type Target } from './traces/clients.ts';
import { prepareCopy } from './traces/copying.ts';

const { values: given } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '5' },
    package: { type: 'string' },
    profile: { type: 'string' },
    bodies: { type: 'string', default: '16' },
    only: { type: 'string', default: 'ratio,memory,hostile' },
  },
});
const [runs, rounds, bodies] = [Number(given.runs), Number(given.rounds), Number(given.bodies)];
const only = new Set(given.only.split(','));
/** As many runs as clients put into one request. */
const RUNS_A_BODY = 100;
const CLIENTS = 4;
const LARGE_CLIENTS = 8;
const MUST = { ratio: 0.2, memoryMb: 200, hostileMb: 50, hostileSeconds: 1, bystanderMs: 50 };

const failures: string[] = [];
const check = (isMet: boolean, what: string): string => {
  if (!isMet) failures.push(what);
  return isMet ? '' : 'misses its limit';
};
const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** Of the process, since `resetPeak`. */
function peakMb(pid: number): number {
  const [, kb] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb) / 1024;
}

function resetPeak(pid: number): number {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return peakMb(pid);
}

/** Of the process, in user and system mode. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

const TICKS_A_SECOND = 100;

async function measureRatio(target: Target, directory: string): Promise<void> {
  const seconds: number[] = [];
  // The first round compiles, and makes the partition of the day.
  await sendAll(target, runBodies(runs, RUNS_A_BODY), CLIENTS);
  const copying = await prepareCopy(await ownerOf({ directory }), join(directory, 'runs.copy'));
  const copied: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    seconds.push(await sendAll(target, runBodies(runs, RUNS_A_BODY), CLIENTS));
    copied.push(await copying.copy());
  }
  const [ours, theirs] = [runs / median(seconds), copying.rows / median(copied)];
  const verdict = check(ours / theirs >= MUST.ratio, 'runs a second beside COPY');
  console.log(
    `ingestion ${ours.toFixed(0)} runs/s, psql COPY ${theirs.toFixed(0)} rows/s: ${(ours / theirs).toFixed(2)} x, must be ${MUST.ratio} ${verdict}`,
  );
}

async function measureMemory(target: Target, pid: number): Promise<void> {
  const before = resetPeak(pid);
  for (const path of ['/runs/multipart', '/runs/batch'] as const)
    for (const coding of ['identity', 'gzip', 'zstd'] as const) {
      // Each is sent several times: what a platform keeps of bodies shows with their number.
      const made = Array.from({ length: LARGE_CLIENTS }, () => largeBody(path, coding));
      const sent = Array.from({ length: bodies }, (_, at) => made[at % made.length] as Body);
      const startSeconds = cpuSeconds(pid);
      const seconds = await sendAll(target, sent, LARGE_CLIENTS);
      const cpu = (cpuSeconds(pid) - startSeconds) / bodies;
      const peak = peakMb(pid);
      const verdict = check(peak <= MUST.memoryMb, `memory with ${path}, ${coding}`);
      console.log(
        `${LARGE_CLIENTS} clients, bodies of 20 MiB to ${path}, ${coding}: ${(bodies / seconds).toFixed(2)} a second, CPU ${cpu.toFixed(2)} s each, RSS ${before.toFixed(0)} MB before, at most ${peak.toFixed(0)} MB, must be ${MUST.memoryMb} ${verdict}`,
      );
    }
}

async function measureHostile(target: Target, other: Target, pid: number): Promise<void> {
  const idle = await beside(other, () => new Promise((done) => setTimeout(done, 2_000)));
  const rows: (readonly string[])[] = [['body', 'status', 'seconds', 'MB more', 'bystander max ms', '']];
  const large: Hostile = { name: 'one run of 20 MiB in a batch', status: 202, ...largeBody('/runs/batch') };
  for (const hostile of [...hostileBodies(), large]) {
    const before = resetPeak(pid);
    const startMs = performance.now();
    const { result: status, latencies } = await beside(other, () => send(target, hostile));
    const seconds = (performance.now() - startMs) / 1000;
    if (status !== hostile.status)
      throw new Error(`${hostile.name}: ${status} in place of ${hostile.status}`);
    const [mb, delay] = [peakMb(pid) - before, Math.max(...latencies)];
    const isHostile = hostile !== large;
    const verdicts = [
      check(!isHostile || seconds <= MUST.hostileSeconds, `seconds of ${hostile.name}`),
      check(!isHostile || mb <= MUST.hostileMb, `memory of ${hostile.name}`),
      check(delay <= MUST.bystanderMs, `bystander beside ${hostile.name}`),
    ];
    rows.push([
      hostile.name,
      String(status),
      seconds.toFixed(2),
      mb.toFixed(0),
      delay.toFixed(1),
      verdicts.find((one) => one !== '') ?? '',
    ]);
  }
  console.log(`bystander alone: max ${Math.max(...idle.latencies).toFixed(1)} ms`);
  console.log(formatTable(rows).join('\n'));
}

async function endByItself({ process: child, pid }: ApiServer['child']): Promise<void> {
  const exited = once(child, 'exit');
  process.kill(pid, 'SIGTERM');
  await exited;
}

// What they write into the directory ends before it is removed.
await using children = createChildren();
const directory = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
// The embedded server runs as another user.
chmodSync(directory, 0o711);
symlinkSync(join(import.meta.dirname, '..', 'node_modules'), join(directory, 'node_modules'));
const machine = await inspectMachine(children.isPinned);
console.log(`${machine.cpu}, ${machine.cores} cores, ${machine.busy_percent} % busy before`);
warningsOf(machine).forEach((warning) => console.log(`WARNING: ${warning}`));
const packageDirectory = given.package === undefined ? layOutPackage(directory) : resolve(given.package);
const installation = initialize(directory, packageDirectory);
const start = (): Promise<ApiServer> =>
  startPlatform(children, installation, given.profile && resolve(given.profile));
const { key } = installation;

/** By a process of its own: the heap of one that has been busy stays large. */
async function measureAlone(
  name: string,
  measure: (server: {
    readonly port: number;
    readonly pid: number;
    readonly otherKey: string;
  }) => Promise<void>,
): Promise<void> {
  if (!only.has(name)) return;
  const { child, port } = await start();
  moveDatabase(children, installation);
  const { key: otherKey } = addOrganization(installation);
  await measure({ port, pid: child.pid, otherKey });
  console.log(`platform after ${name}: ${resetPeak(child.pid).toFixed(0)} MB resident`);
  // It stops its database server, and writes its profile.
  await endByItself(child);
}

await measureAlone('ratio', ({ port }) => measureRatio({ port, key }, directory));
await measureAlone('hostile', ({ port, pid, otherKey }) =>
  measureHostile({ port, key }, { port, key: otherKey }, pid),
);
await measureAlone('memory', ({ port, pid }) => measureMemory({ port, key }, pid));
for (const failure of failures) console.log(`missed: ${failure}`);
process.exitCode = failures.length === 0 ? 0 : 1;
