// Two platform processes on one database under load, of which one after the other is killed at random moments. What
// must hold afterwards is judged elsewhere; here it is made to happen.
import { join } from 'node:path';
import type { ClientConfig } from 'pg';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { createRandom } from '../../http1/mutation.ts';
import { initPlatform, type PlatformOptions, runSallyport } from '../../support/platform-process.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { judgeStorm } from './storm-checks.ts';
import { runStormClient, type StormAccess } from './storm-client.ts';
import { openStormConnection } from './storm-connection.ts';
import { type JobEvent, judgeJobs } from './storm-jobs.ts';
import { answersIn, createLedger, type Ledger } from './storm-ledger.ts';
import { openStormMonitor } from './storm-monitor.ts';
import { openStormPlace, type StormPlace } from './storm-place.ts';
import { lastSeq, takeSnapshot } from './storm-snapshot.ts';

export type StormOptions = {
  readonly database: { readonly url: string; readonly ownerUrl: string };
  readonly owner: ClientConfig;
  /** For the files of the processes. */
  readonly directory: string;
  readonly kills: number;
  readonly clients: number;
  readonly jobs: number;
  readonly seed: number;
  onKill?(nth: number, ledger: Ledger): void;
};

export type StormResult = {
  readonly faults: readonly string[];
  readonly ledger: Ledger;
  readonly startsMs: readonly number[];
  readonly gonesMs: readonly number[];
  readonly rerunsMs: readonly number[];
  readonly events: number;
  /** While clients wrote. */
  readonly busyMs: number;
};

const jobPreload = join(import.meta.dirname, 'storm-job-preload.ts');
/** Answers between one kill and the next, at least and at most. */
const CALM = [40, 400] as const;
/** One kill in so many is repeated on the way up. */
const TWICE = 5;

export async function runStorm(options: StormOptions): Promise<StormResult> {
  const { seed, kills, owner, onKill } = options;
  const random = createRandom(seed);
  const ledger = createLedger();
  const jobs = createJobLog();
  await using monitor = openStormMonitor(owner);
  const common = platformOptions(options);
  const { database } = options;
  const placed = { ...common, database, preloads: [jobPreload], monitor, onRecord: jobs.note };
  await using one = openStormPlace({ ...placed, name: 'a', firstEnv: { STORM_JOBS: String(options.jobs) } });
  await using other = openStormPlace({ ...placed, name: 'b' });
  const places = [one, other];
  const { text: key } = mintKey('service');
  // All three find a database without a schema.
  await initPlatform(common, key);
  const access = await openAccess(one, key, options.clients);
  if (options.jobs > 0) await one.logged(({ msg }) => msg === 'storm jobs sent');
  const firstSeq = await lastSeq(owner);
  const calm = createCalm();
  const stop = new AbortController();
  const startedMs = performance.now();
  const scope = { ledger, places, random, onAnswer: calm.count };
  const clients = access.map((own, i) =>
    runStormClient(scope, { name: `c${i}`, place: i % 2, access: own, signal: stop.signal }),
  );
  const failed = Promise.all(clients);
  for (let nth = 1; nth <= kills; nth += 1) {
    await Promise.race([calm.after(CALM[0] + random(CALM[1] - CALM[0])), failed]);
    await places[random(2)]?.kill(random(TWICE) === 0);
    onKill?.(nth, ledger);
  }
  await Promise.race([calm.after(CALM[1]), failed]);
  stop.abort();
  await failed;
  const busyMs = performance.now() - startedMs;
  for (const each of places) each.signal('SIGUSR2');
  await monitor.jobsDone('storm');
  for (const each of places) await each.end();
  const snapshot = await takeSnapshot(owner, firstSeq);
  const deaths = new Map(
    places.flatMap((each) => each.deaths.map(({ life, atMs }) => [life, atMs] as const)),
  );
  const account = judgeJobs(jobNames(options), jobs.events, deaths);
  return {
    faults: [
      ...places.flatMap(({ faults }) => faults),
      ...judgeStorm(ledger, snapshot),
      ...account.faults,
      ...(await verifyChain(common)),
    ],
    ledger,
    startsMs: places.flatMap((each) => each.startsMs),
    gonesMs: places.flatMap((each) => each.gonesMs),
    rerunsMs: account.rerunsMs,
    events: snapshot.events.length,
    busyMs,
  };
}

/** What both processes share besides the database: the checkpoints of the audit log, and the key that signs them. */
function platformOptions({ directory, database, jobs }: StormOptions): PlatformOptions {
  return {
    dataDirectory: directory,
    database,
    env: {
      SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS: join(directory, 'checkpoints.jsonl'),
      SALLYPORT_PLATFORM_AUDIT_KEY_FILE: join(directory, 'signing.key'),
      SALLYPORT_PLATFORM_AUDIT_CHECKPOINT_INTERVAL_MS: '1000',
      STORM_JOBS_AT_ONCE: String(jobs),
    },
  };
}

/** A sandbox with a token for each client. */
async function openAccess(place: StormPlace, key: string, clients: number): Promise<readonly StormAccess[]> {
  using connection = openStormConnection();
  const port = await place.whereabouts();
  const made: StormAccess[] = [];
  for (let i = 0; i < clients; i += 1) {
    const sandbox = `storm-${i}`;
    const path = `/v1/sandboxes/${sandbox}/tokens`;
    const reply = await connection.ask(port, { method: 'POST', path, key, body: {} });
    if (reply.kind !== 'answered' || reply.status !== 201)
      throw new Error(`${path} answered ${JSON.stringify(reply)}`);
    made.push({ key, sandbox, sandboxToken: (reply.body as { readonly token: string }).token });
  }
  return made;
}

function jobNames({ jobs }: StormOptions): readonly string[] {
  return Array.from({ length: jobs }, (_, i) => `j${i + 1}`);
}

/** Resolves after so many answers. */
function createCalm(): { count(): void; after(answers: number): Promise<void> } {
  let left = 0;
  let end = (): void => undefined;
  return {
    count() {
      left -= 1;
      if (left === 0) end();
    },
    after(answers) {
      left = answers;
      return new Promise((resolve) => (end = resolve));
    },
  };
}

function createJobLog(): { readonly events: JobEvent[]; note(life: string, record: LogRecord): void } {
  const events: JobEvent[] = [];
  return {
    events,
    note(life, { msg, job, what, at }) {
      if (msg !== 'storm job') return;
      events.push({ job: String(job), life, atMs: Number(at), what: what === 'done' ? 'done' : 'begun' });
    },
  };
}

async function verifyChain(options: PlatformOptions): Promise<readonly string[]> {
  const { code, stdout, stderr } = await runSallyport(['audit', 'verify'], options);
  return code === 0 ? [] : [`sallyport audit verify ended with ${code}\n${stdout}\n${stderr}`];
}

export function answersPerSecond({ ledger, busyMs }: StormResult): number {
  return (answersIn(ledger) * 1000) / busyMs;
}
