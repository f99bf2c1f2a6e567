// What an export costs: `npm run bench -- exports [--rows N] [--rounds N] [--only zstd,gzip,columns,two] [--profile DIR]`. A day of runs of
// about 1.2 kB from PostgreSQL to an S3 server, by a worker and by a Python program; then 8 small columns, and two exports at once. Ends
// with 1 when a figure misses its limit.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, chmod } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exportWorkerSwitches } from '../src/cli/platform/export-worker-heap.ts';
import { readAllMigrations } from '../src/platform/migrations.ts';
import { type Connection, connectOnce } from '../src/platform/store/database.ts';
import { openPostgres } from '../src/platform/store/embedded/postgres-server.ts';
import { migrate } from '../src/platform/store/migrate.ts';
import { DAY, type FilledDay, fillDay } from './exports/filled-day.ts';
import type { WorkerTask } from './exports/worker.ts';
import { createChildren } from './support/children.ts';
import { inspectMachine, warningsOf } from './support/machine.ts';

const { values: given } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: 'zstd,gzip,columns,two' },
    profile: { type: 'string' },
  },
});
const [rows, rounds] = [Number(given.rows), Number(given.rounds)];
const only = new Set(given.only.split(','));
const MUST = { ratio: 0.5, columns: 3, peakMb: 256, twoPeakMb: 400 };
const SMALL = [
  'id',
  'name',
  'run_type',
  'start_time',
  'end_time',
  'status',
  'is_root',
  'total_tokens',
] as const;
const folder = join(import.meta.dirname, 'exports');

type Outcome = {
  readonly rows: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
};
type Scene = {
  readonly connection: Connection;
  readonly endpoint: string;
  readonly python: string;
  readonly day: FilledDay;
};

const failures: string[] = [];
const check = (isMet: boolean, what: string): string => {
  if (!isMet) failures.push(what);
  return isMet ? '' : ' misses its limit';
};
const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

function run(command: string, args: readonly string[]): Outcome {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1e8 });
  if (status !== 0) throw new Error(`${command} ended with ${status}:\n${stderr}`);
  const outcome = JSON.parse(stdout) as Outcome;
  if (outcome.rows % rows !== 0 || outcome.rows === 0)
    throw new Error(`${outcome.rows} rows in place of ${rows}`);
  return outcome;
}

function taskOf({ connection, endpoint, day }: Scene, more: Partial<WorkerTask>): WorkerTask {
  const window = { from: `${DAY}T00:00:00Z`, to: '2026-11-21T00:00:00Z' };
  return { connection, endpoint, ...day, window, compression: 'zstd', atOnce: 1, ...more };
}

function exportHere(scene: Scene, more: Partial<WorkerTask>): Outcome {
  const profile = given.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${given.profile}`];
  return run(process.execPath, [
    ...exportWorkerSwitches(2),
    ...profile,
    join(folder, 'worker.ts'),
    JSON.stringify(taskOf(scene, more)),
  ]);
}

function exportByPython(scene: Scene, more: Partial<WorkerTask>): Outcome {
  const { host, port, user, password, database } = scene.connection;
  const conninfo = `host=${host} port=${port} user=${user} password=${String(password)} dbname=${database}`;
  return run(scene.python, [
    join(folder, 'python_export.py'),
    JSON.stringify({ ...taskOf(scene, more), conninfo }),
  ]);
}

const rate = ({ rows: exported, seconds }: Outcome): number => exported / seconds;
const describe = (outcomes: readonly Outcome[]): string =>
  `${median(outcomes.map(rate)).toFixed(0)} rows/s, ${median(outcomes.map((one) => one.cpuSeconds)).toFixed(1)} s CPU, at most ${Math.max(...outcomes.map((one) => one.peakMb)).toFixed(0)} MB`;

function compare(scene: Scene, compression: WorkerTask['compression']): void {
  const [ours, theirs]: [Outcome[], Outcome[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(exportHere(scene, { compression }));
    theirs.push(exportByPython(scene, { compression }));
  }
  const ratio = median(ours.map((one, at) => rate(one) / rate(theirs[at] ?? one)));
  const peak = Math.max(...ours.map((one) => one.peakMb));
  const verdict =
    check(ratio >= MUST.ratio, `rate with ${compression}`) +
    check(peak <= MUST.peakMb, `memory with ${compression}`);
  console.log(
    `${compression}: ${describe(ours)}; Python ${describe(theirs)}: ${ratio.toFixed(2)} x, must be ${MUST.ratio}${verdict}`,
  );
}

function compareColumns(scene: Scene): void {
  const [all, small]: [Outcome[], Outcome[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    all.push(exportHere(scene, {}));
    small.push(exportHere(scene, { fields: SMALL }));
  }
  const ratio = median(small.map((one, at) => rate(one) / rate(all[at] ?? one)));
  const verdict = check(ratio >= MUST.columns, 'rate of 8 columns');
  console.log(
    `8 columns: ${describe(small)}; all: ${describe(all)}: ${ratio.toFixed(2)} x, must be ${MUST.columns}${verdict}`,
  );
}

function exportTwo(scene: Scene): void {
  const two = exportHere(scene, { atOnce: 2 });
  console.log(
    `two at once: ${describe([two])}${check(two.peakMb <= MUST.twoPeakMb, 'memory of two exports at once')}`,
  );
}

/** The packages of `interop/exports`, which `npm run interop -- exports install` installs. */
function findPython(): string {
  const { status, stdout } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, '..', 'scripts', 'interop.ts'), 'exports', 'python'],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  if (status !== 0) throw new Error('the Python packages of interop/exports cannot be installed');
  return stdout.trim();
}

async function openScene(stack: AsyncDisposableStack): Promise<Scene> {
  const python = findPython();
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  // Under root the database runs as another user.
  await chmod(directory, 0o711);
  const log = { info: () => undefined, warn: () => undefined };
  const server = await openPostgres({ directory: join(directory, 'server'), log });
  stack.defer(() => server.close());
  await migrate(server.ownerConnection, readAllMigrations());
  const day = await connectOnce(server.ownerConnection, (client) => fillDay(client, rows));
  const children = stack.use(createChildren());
  const s3 = children.start('s3', [process.execPath, join(folder, 's3.ts')], { output: 'pipe' });
  const [line] = await once(s3.process.stdout?.setEncoding('utf8') ?? s3.process, 'data');
  return { connection: server.connection, endpoint: String(line).trim(), python, day };
}

await using stack = new AsyncDisposableStack();
const machine = await inspectMachine(true);
const scene = await openScene(stack);
console.log(`${rows} rows, ${rounds} rounds, medians`);
for (const compression of ['zstd', 'gzip'] as const) if (only.has(compression)) compare(scene, compression);
if (only.has('columns')) compareColumns(scene);
if (only.has('two')) exportTwo(scene);
for (const line of warningsOf(machine)) console.log(`WARNING: ${line}`);
if (failures.length > 0) {
  console.error(`missed: ${failures.join(', ')}`);
  process.exitCode = 1;
}
