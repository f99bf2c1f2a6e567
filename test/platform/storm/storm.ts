// Two platform processes on one database under load, which are killed in turn at random moments. Other files check the
// result; this one runs the storm.
import { join } from 'node:path';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import type { Connection } from '../../../src/platform/store/database.ts';
import { createRandom } from '../../http1/mutation.ts';
import { initPlatform, type PlatformOptions } from '../../support/platform-process.ts';
import type { LogRecord } from '../../support/spawned-process.ts';
import { checkStorm } from './storm-checks.ts';
import { type JobEvent, checkJobs } from './storm-jobs.ts';
import { responsesIn, createLedger, type Ledger } from './storm-ledger.ts';
import { type LoadOptions, runLoad } from './storm-load.ts';
import { openStormMonitor } from './storm-monitor.ts';
import { openStormProcess } from './storm-process.ts';
import { takeSnapshot } from './storm-snapshot.ts';
import { verifyStorm } from './storm-verification.ts';

export type StormOptions = Pick<LoadOptions, 'kills' | 'clients' | 'responsesBetweenKills' | 'onKill'> & {
  readonly database: { readonly url: string; readonly ownerUrl: string };
  readonly owner: Connection;
  /** For the files of the processes. */
  readonly directory: string;
  readonly jobs: number;
  readonly seed: number;
};

export type StormResult = {
  readonly errors: readonly string[];
  readonly ledger: Ledger;
  readonly startsMs: readonly number[];
  readonly cleanupsMs: readonly number[];
  readonly rerunsMs: readonly number[];
  readonly events: number;
  /** The output of `sallyport audit verify`. */
  readonly verified: string;
  /** How long clients wrote. */
  readonly busyMs: number;
};

const jobPreload = join(import.meta.dirname, 'storm-job-preload.ts');
export async function runStorm(options: StormOptions): Promise<StormResult> {
  const { seed, owner } = options;
  const random = createRandom(seed);
  const ledger = createLedger();
  const jobs = createJobLog();
  await using monitor = openStormMonitor(owner);
  const common = platformOptions(options);
  const { database } = options;
  const shared = { ...common, database, preloads: [jobPreload], monitor, onRecord: jobs.note };
  await using one = openStormProcess({
    ...shared,
    name: 'a',
    firstEnv: { STORM_JOBS: String(options.jobs) },
  });
  await using other = openStormProcess({ ...shared, name: 'b' });
  const processes = [one, other];
  const { text: key } = mintKey('service');
  // `init` and both processes start on a database without a schema.
  await initPlatform(common, key);
  if (options.jobs > 0) await one.logged(({ msg }) => msg === 'storm jobs sent');
  const busyMs = await runLoad({ ...options, processes, ledger, random, key });
  for (const each of processes) each.signal('SIGUSR2');
  await monitor.jobsDone('storm');
  for (const each of processes) await each.end();
  const verified = await verifyStorm(common);
  const snapshot = await takeSnapshot(owner);
  const deaths = new Map(
    processes.flatMap((each) => each.deaths.map(({ life, atMs }) => [life, atMs] as const)),
  );
  const jobResult = checkJobs(jobNames(options), jobs.events, deaths);
  return {
    errors: [
      ...processes.flatMap(({ errors }) => errors),
      ...checkStorm(ledger, snapshot),
      ...jobResult.errors,
      ...verified.errors,
    ],
    ledger,
    startsMs: processes.flatMap((each) => each.startsMs),
    cleanupsMs: processes.flatMap((each) => each.cleanupsMs),
    rerunsMs: jobResult.rerunsMs,
    events: snapshot.events.length,
    verified: verified.reported,
    busyMs,
  };
}

/** Both processes also share the checkpoints of the audit log and the key that signs them. */
function platformOptions({ directory, database, jobs }: StormOptions): PlatformOptions {
  return {
    dataDirectory: directory,
    database,
    env: {
      SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS: join(directory, 'checkpoints.jsonl'),
      SALLYPORT_PLATFORM_AUDIT_KEY_FILE: join(directory, 'signing.key'),
      SALLYPORT_PLATFORM_AUDIT_CHECKPOINT_INTERVAL_MS: '1000',
      STORM_JOBS_AT_ONCE: String(Math.max(1, jobs)),
    },
  };
}

function jobNames({ jobs }: StormOptions): readonly string[] {
  return Array.from({ length: jobs }, (_, i) => `j${i + 1}`);
}

function createJobLog(): { readonly events: JobEvent[]; note(life: string, record: LogRecord): void } {
  const events: JobEvent[] = [];
  return {
    events,
    note(life, { msg, job, what, at }) {
      if (msg !== 'storm job') return;
      events.push({ job: String(job), life, atMs: Number(at), what: what === 'done' ? 'done' : 'started' });
    },
  };
}

/** Of a storm on two processes or on one. */
export function responsesPerSecond({ ledger, busyMs }: Pick<StormResult, 'ledger' | 'busyMs'>): number {
  return (responsesIn(ledger) * 1000) / busyMs;
}
