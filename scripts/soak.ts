// `npm run soak [-- --minutes 20 --rate 200]`: mixed traffic, a twentieth of it attacks, through one process for a long
// time. Prints its figures; exits with 1 if something failed without a cause, if memory grows, or if descriptors or timers do.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { percentilesOf } from '../bench/support/percentiles.ts';
import { createScratch } from '../test/support/scratch.ts';
import { type LogRecord, type SpawnedSallyport, spawnSallyport } from '../test/support/spawned-process.ts';
import { createTestAuthority } from '../test/support/test-authority.ts';
import { type Sample, fitSlope, medianOf } from './soak-fit.ts';
import { SECRET, type SoakHosts, createSoakHosts } from './soak-hosts.ts';
import { type Kind, type Traffic, createTraffic } from './soak-traffic.ts';

const SAMPLES = 120;
/** The fitted part of the run: the beginning fills caches. */
const FITTED_SHARE = 0.75;
const MAX_BYTES_PER_HOUR = 8 * 1024 * 1024;
/**
 * Growth of the minimum of descriptors and timers between the first and the last third of the fitted part. The minimum,
 * because the use of pools varies, while leaked ones are never released.
 */
const MAX_DRIFT = 10;
const HANGS_MS = 60_000;
const MAX_IN_FLIGHT = 100;
const MAX_LATE_MS = 100;
/** Of the requested rate. */
const MIN_RATE_SHARE = 0.9;
const SHOWN_ERRORS = 10;

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '20' }, rate: { type: 'string', default: '200' } },
});
const minutes = Number(values.minutes);
const rate = Number(values.rate);
if (!(minutes >= 0.1 && minutes <= 10_000)) throw new Error('--minutes must be from 0.1 to 10000');
if (!(rate >= 1 && rate <= 5_000)) throw new Error('--rate must be from 1 to 5000');

type Vitals = Readonly<Record<'bytes' | 'resident' | 'descriptors' | 'timers', readonly Sample[]>>;
type Ledger = {
  readonly errors: string[];
  errorCount: number;
  readonly done: Map<Kind, number[]>;
  readonly records: Map<string, number>;
  inFlight: number;
  begun: number;
  /** The seconds in which the requests were started. */
  busyMs: number;
};

const ledger: Ledger = {
  errors: [],
  errorCount: 0,
  done: new Map(),
  records: new Map(),
  inFlight: 0,
  begun: 0,
  busyMs: 0,
};
process.exitCode = await main();

async function main(): Promise<number> {
  const authority = createTestAuthority();
  await using hosts = await createSoakHosts(authority);
  await using scratch = await createScratch();
  await using proxy = await start(hosts, authority.certificatePem, await secretsFile(scratch.write));
  const { pid } = proxy.process;
  const caPem = await readFile(proxy.caFile, 'utf8');
  await using traffic = createTraffic({ port: proxy.port, caPem, ...hosts });
  const vitals = await run(proxy, traffic);
  const isSameProcess = proxy.process.pid === pid && existsSync(`/proc/${pid}/status`);
  const errors = proxy.process.records.filter(({ level }) => level === 'error' || level === 'fatal');
  const broken = judge(vitals, isSameProcess, errors);
  print(vitals, hosts);
  for (const error of broken) console.log(`BROKEN: ${error}`);
  return broken.length === 0 ? 0 : 1;
}

function secretsFile(write: (name: string, text: string) => Promise<string>): Promise<string> {
  return write('secrets.env', `TOKEN=${SECRET}\n`);
}

function start(hosts: SoakHosts, upstreamCaPem: string, secrets: string): Promise<SpawnedSallyport> {
  const headers = [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }];
  return spawnSallyport({
    proxyConfig: {
      rules: [{ name: 'api', match_hosts: ['api.test'], headers }],
      callbacks: [{ match_hosts: ['*.called.test'], url: hosts.callbackUrl, ttl_seconds: 60 }],
    },
    upstreamCaPem,
    args: ['--secrets-file', secrets],
    env: { SALLYPORT_INJECT_CLEARTEXT: `api.test:${hosts.clearPort}` },
    preloads: [join(import.meta.dirname, 'soak-vitals.ts')],
    onExchange: ({ outcome, reason }) => {
      const reported = reason === undefined ? String(outcome) : `${String(outcome)} ${String(reason)}`;
      ledger.records.set(reported, (ledger.records.get(reported) ?? 0) + 1);
    },
  });
}

/** Starts one activity after another at the rate, whether or not earlier ones have ended, up to a maximum. */
async function run(proxy: SpawnedSallyport, traffic: Traffic): Promise<Vitals> {
  const vitals = { bytes: [], resident: [], descriptors: [], timers: [] } as Record<keyof Vitals, Sample[]>;
  const perSample = Math.max(1, Math.round((minutes * 60 * rate) / SAMPLES));
  const pace = 1000 / rate;
  let n = 0;
  for (let sample = 1; sample <= SAMPLES; sample += 1) {
    const startedMs = performance.now();
    let dueMs = startedMs;
    for (let i = 0; i < perSample; i += 1) {
      await pauseUntil(dueMs);
      while (ledger.inFlight >= MAX_IN_FLIGHT) await pauseUntil(performance.now() + 1);
      // After a stall of the machine, the missed activities are not started in one burst.
      dueMs = Math.max(dueMs, performance.now() - MAX_LATE_MS) + pace;
      void begin(traffic, n);
      n += 1;
    }
    ledger.busyMs += performance.now() - startedMs;
    if (!(await hasEnded())) {
      error(`${ledger.inFlight} have not ended`);
      break;
    }
    note(vitals, await takeVitals(proxy, sample));
    if (sample % 10 === 0) console.log(progress(vitals, n));
  }
  return vitals;
}

async function begin(traffic: Traffic, n: number): Promise<void> {
  ledger.inFlight += 1;
  ledger.begun += 1;
  const startedMs = performance.now();
  const { kind, error: wrong } = await traffic.act(n);
  ledger.inFlight -= 1;
  if (wrong !== undefined) return error(`${kind} ${n}: ${wrong}`);
  const latencies = ledger.done.get(kind) ?? [];
  latencies.push(performance.now() - startedMs);
  ledger.done.set(kind, latencies);
}

function error(text: string): void {
  ledger.errorCount += 1;
  if (ledger.errors.length >= SHOWN_ERRORS) return;
  ledger.errors.push(text);
  console.log(`ERROR: ${text}`);
}

/** Memory is read while nothing is running: temporary use is not growth. */
async function hasEnded(): Promise<boolean> {
  const untilMs = performance.now() + HANGS_MS;
  while (ledger.inFlight > 0 && performance.now() < untilMs) await pauseUntil(performance.now() + 20);
  return ledger.inFlight === 0;
}

async function takeVitals({ process: child }: SpawnedSallyport, nth: number): Promise<LogRecord> {
  child.kill('SIGUSR2');
  return child.record(({ msg, sample }) => msg === 'vitals' && sample === nth);
}

function note(vitals: Record<keyof Vitals, Sample[]>, record: LogRecord): void {
  const atMs = performance.now();
  for (const [name, samples] of Object.entries(vitals)) samples.push({ atMs, value: Number(record[name]) });
}

function fitted(samples: readonly Sample[]): readonly Sample[] {
  return samples.slice(Math.ceil(samples.length * (1 - FITTED_SHARE)));
}

type Drift = { readonly first: number; readonly last: number; readonly median: number };

function driftOf(samples: readonly Sample[]): Drift {
  const all = fitted(samples).map(({ value }) => value);
  const third = Math.floor(all.length / 3);
  return {
    first: Math.min(...all.slice(0, third)),
    last: Math.min(...all.slice(-third)),
    median: medianOf(all),
  };
}

function judge(vitals: Vitals, isSameProcess: boolean, errors: readonly LogRecord[]): readonly string[] {
  if (vitals.bytes.length < SAMPLES) return [...ledger.errors, 'it did not finish'];
  const { upperPerHour } = fitSlope(fitted(vitals.bytes));
  const drifting = (['descriptors', 'timers'] as const).filter((name) => {
    const { first, last } = driftOf(vitals[name]);
    return last - first > MAX_DRIFT;
  });
  const bugs = [...ledger.records].filter(([reported]) => reported.includes('internal_error'));
  return [
    ...(ledger.errorCount === 0 ? [] : [`${ledger.errorCount} without a cause`, ...ledger.errors]),
    ...(upperPerHour < MAX_BYTES_PER_HOUR ? [] : [`memory grows by up to ${mib(upperPerHour)} an hour`]),
    ...drifting.map((name) => `${name} grow`),
    ...bugs.map(([reported, count]) => `${count} ${reported}`),
    ...errors.map((error) => `the log has ${JSON.stringify(error)}`),
    ...(perSecond() >= rate * MIN_RATE_SHARE
      ? []
      : [`no more than ${perSecond().toFixed(0)} a second were started`]),
    ...(isSameProcess ? [] : ['the process did not survive']),
  ];
}

function progress({ bytes, resident, descriptors, timers }: Vitals, n: number): string {
  const last = (samples: readonly Sample[]): number => samples.at(-1)?.value ?? Number.NaN;
  return `${n} started, ${ledger.errorCount} errors; ${mib(last(bytes))} held, ${mib(last(resident))} resident, ${last(descriptors)} descriptors, ${last(timers)} timers`;
}

function print(vitals: Vitals, hosts: SoakHosts): void {
  console.log(
    `soak: ${minutes} minutes, ${perSecond().toFixed(0)} a second, at most ${MAX_IN_FLIGHT} at once`,
  );
  for (const [kind, latencies] of ledger.done) {
    const { count, p50, p99, max } = percentilesOf([Float64Array.from(latencies)]);
    console.log(
      `  ${kind}: ${count}, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(0)} ms`,
    );
  }
  console.log(`  ${hosts.calls} callbacks; ${ledger.errorCount} errors`);
  const reported = [...ledger.records].toSorted((a, b) => b[1] - a[1]);
  console.log(`  records: ${reported.map(([what, count]) => `${what} ${count}`).join(', ')}`);
  if (vitals.bytes.length < 12) return;
  const { perHour, upperPerHour } = fitSlope(fitted(vitals.bytes));
  console.log(`  heap and external: ${mib(perHour)} an hour, below ${mib(upperPerHour)} with 95 %`);
  console.log(`  resident: ${mib(fitSlope(fitted(vitals.resident)).perHour)} an hour`);
  for (const name of ['descriptors', 'timers'] as const) {
    const { first, last, median } = driftOf(vitals[name]);
    console.log(`  ${name}: at least ${first} in the first third, ${last} in the last; median ${median}`);
  }
}

function perSecond(): number {
  return (ledger.begun * 1000) / ledger.busyMs;
}

function mib(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(2)} MiB`;
}

function pauseUntil(dueMs: number): Promise<void> | undefined {
  const leftMs = dueMs - performance.now();
  return leftMs <= 0 ? undefined : new Promise((resolve) => setTimeout(resolve, leftMs));
}
