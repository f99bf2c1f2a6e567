// The only file that uses pg-boss, which is loaded when jobs are opened: queues for the jobs of the modules, in the same
// database as everything that a job is about.
import type { ConstructorOptions, Db, JobResult, PgBoss as Boss, Queue } from 'pg-boss';
import { describeBug, type Log } from '../../base/log.ts';
import type { z } from '../../base/schema.ts';
import { type Client, type DatabaseOptions, openPool, type Store } from './database.ts';
import { isUnreachable } from './database-error.ts';
import type { Job, JobContext, Schedule, SendJob } from './job.ts';
import { RUNTIME } from './roles.ts';

export type Jobs = {
  readonly send: SendJob;
  /** Takes jobs and runs them from now on, in a process that works. Called once, when what the jobs need has started. */
  work(): Promise<void>;
  /** Resolves when running jobs have ended, or after `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>;
};

export type JobsOptions = DatabaseOptions & {
  readonly jobs: readonly Job[];
  readonly log: Log;
  /** Of the jobs that run; without it, jobs can be sent and none runs in this process. */
  readonly store?: Store | undefined;
};

/** The job of a killed process runs again after this time, two supervision passes and one poll. */
const HEARTBEAT_SECONDS = 10;
const PASS_SECONDS = 1;
const POLL_SECONDS = 1;

const SCHEMA = 'pgboss';
/** Of the installed pg-boss, known without loading it. */
export const JOBS_SCHEMA_VERSION = 43;

const SETTINGS: ConstructorOptions = {
  schema: SCHEMA,
  // The runtime role does not own the indexes.
  reindex: false,
  monitorVacuum: false,
};

/**
 * Takes in every job whose retries are used up. One for all jobs, because each queue is polled; pg-boss moves a job here
 * in the statement that ends its last attempt, also when it finds the process of that attempt dead.
 */
const EXHAUSTED: Queue = {
  name: 'exhausted-jobs',
  retryLimit: 100,
  retryDelay: 5,
  retryBackoff: true,
  retryDelayMax: 600,
  expireInSeconds: 900,
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: 86_400,
};

/** As the runtime role: `migrate` has created the schema. Every process creates the queues, so that each can send. */
export async function openJobs(options: JobsOptions): Promise<Jobs> {
  const { fromKysely, PgBoss } = await import('pg-boss');
  const { log, jobs, store } = options;
  const pool = openPool(options);
  const boss = new PgBoss({
    ...SETTINGS,
    db: { executeSql: (text, values) => pool.query(text, values) },
    migrate: false,
    supervise: store !== undefined,
    schedule: store !== undefined,
    superviseIntervalSeconds: PASS_SECONDS,
    monitorIntervalSeconds: PASS_SECONDS,
  });
  // The message of the error is left out: it may quote the data of a job.
  boss.on('error', (error) => {
    // It polls every second.
    if (isUnreachable(error)) options.onUnreachable?.(error);
    else log.error(describeBug(error), 'the job queue failed');
  });
  boss.on('warning', ({ message }) => log.warn({ warning: message }, 'job queue'));
  await boss.start();
  await createQueues(boss, [EXHAUSTED, ...jobs.map(toQueue)]);
  const send: SendJob = async (db, job, data) => {
    const { error } = job.data.safeParse(data);
    // Without the values, which may be secrets.
    if (error)
      throw new Error(`The job ${job.name} was sent data that does not fit: ${pathsOf(error).join(', ')}`);
    await boss.send(job.name, data, { db: fromKysely(db) });
  };
  return {
    send,
    work: async () => (store === undefined ? undefined : startWork(boss, jobs, { store, send, log })),
    async close(timeoutMs = 10_000) {
      await boss.stop({ graceful: true, timeout: timeoutMs });
      await pool.end();
    },
  };
}

function toQueue({ name, retries, delaySeconds, timeoutSeconds }: Job): Queue {
  return {
    name,
    retryLimit: retries,
    retryDelay: delaySeconds,
    expireInSeconds: timeoutSeconds,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    deleteAfterSeconds: 86_400,
    deadLetter: EXHAUSTED.name,
  };
}

/** Nearly always one read: the queues were created by the first process of this version. */
async function createQueues(boss: Boss, queues: readonly Queue[]): Promise<void> {
  const names = queues.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`Two jobs have the name ${twice}`);
  const stored = new Map((await boss.getQueues(names)).map((queue) => [queue.name, queue]));
  for (const { name, ...settings } of queues) {
    const found = stored.get(name);
    if (found === undefined) await boss.createQueue(name, settings);
    const isEqual = Object.entries(settings).every(([key, value]) => found?.[key as keyof Queue] === value);
    // Also after it was created: another process may have created it with the settings of another version.
    if (!isEqual) await boss.updateQueue(name, settings);
  }
}

type Surroundings = Pick<JobContext, 'store' | 'send' | 'log'>;

async function startWork(boss: Boss, jobs: readonly Job[], surroundings: Surroundings): Promise<void> {
  const polling = { batchSize: 1, pollingIntervalSeconds: POLL_SECONDS, perJobResults: true } as const;
  for (const job of jobs) {
    const options = { ...polling, localConcurrency: job.concurrency ?? 1 };
    await boss.work(job.name, options, ([taken]) => settle(taken, (one) => attempt(job, one, surroundings)));
    await setSchedule(boss, job);
  }
  const byName = new Map(jobs.map((job) => [job.name, job]));
  await boss.work(EXHAUSTED.name, { ...polling, includeMetadata: true }, ([taken]) =>
    settle(taken, (one) => giveUp(byName.get(one.sourceName ?? ''), one, surroundings)),
  );
}

/** Only of jobs that this version has: another one may run beside it. */
async function setSchedule(boss: Boss, { name, schedule }: Job): Promise<void> {
  if (schedule === undefined) await boss.unschedule(name);
  else await boss.schedule(name, cronOf(schedule), schedule.data, { tz: 'UTC' });
}

type Taken = { readonly id: string; readonly data: unknown; readonly signal: AbortSignal };
type Left = Taken & { readonly sourceId: string | null; readonly sourceName: string | null };

async function settle<T extends Taken>(
  taken: T | undefined,
  work: (taken: T) => Promise<JobResult['status']>,
): Promise<JobResult[]> {
  return taken === undefined ? [] : [{ id: taken.id, status: await work(taken) }];
}

/** pg-boss itself retries a failed job without a log line. */
async function attempt(
  job: Job,
  { id, data, signal }: Taken,
  surroundings: Surroundings,
): Promise<JobResult['status']> {
  const { log } = surroundings;
  const parsed = job.data.safeParse(data ?? {});
  if (!parsed.success) {
    const fields = pathsOf(parsed.error);
    log.error({ queue: job.name, job: id, fields }, 'a job has data that this version cannot read');
    return 'deadletter';
  }
  try {
    await job.run(parsed.data, { id, signal, ...surroundings });
    return 'completed';
  } catch (error) {
    log.error({ ...describeBug(error), queue: job.name, job: id }, 'a job failed');
    throw error;
  }
}

async function giveUp(
  job: Job | undefined,
  { id: ownId, sourceId, sourceName, data, signal }: Left,
  surroundings: Surroundings,
): Promise<JobResult['status']> {
  const { log } = surroundings;
  const id = sourceId ?? ownId;
  if (job === undefined) {
    log.warn({ queue: sourceName, job: id }, 'a job of another version is left to a process of that version');
    throw new Error('this version has no such job');
  }
  const parsed = job.data.safeParse(data ?? {});
  const exhausted = parsed.success
    ? ({ reason: 'retries', data: parsed.data } as const)
    : ({ reason: 'data', data } as const);
  try {
    await job.onExhausted?.(exhausted, { id, signal, ...surroundings });
  } catch (error) {
    log.error({ ...describeBug(error), queue: job.name, job: id }, 'the end of a job was not handled');
    throw error;
  }
  log.error({ queue: job.name, job: id, reason: exhausted.reason }, 'a job was given up');
  return 'completed';
}

function pathsOf({ issues }: z.ZodError): readonly string[] {
  return issues.map(({ path }) => path.join('.') || '(all of it)');
}

function cronOf(schedule: Schedule<unknown>): string {
  return 'cron' in schedule ? schedule.cron : `*/${schedule.everyMinutes} * * * *`;
}

/** Part of `migrate`: the owner creates the schema of pg-boss or updates it. */
export async function installJobs(client: Client): Promise<void> {
  const { PgBoss } = await import('pg-boss');
  const db: Db = { executeSql: (text, values) => client.query(text, values) };
  const boss = new PgBoss({ ...SETTINGS, db, supervise: false, schedule: false });
  await boss.start();
  await boss.stop({ graceful: false });
  await client.query(`
    grant usage on schema ${SCHEMA} to ${RUNTIME};
    grant select, insert, update, delete on all tables in schema ${SCHEMA} to ${RUNTIME};
    grant usage on all sequences in schema ${SCHEMA} to ${RUNTIME};
    grant execute on all functions in schema ${SCHEMA} to ${RUNTIME};
  `);
}

/** As the runtime role: whether `installJobs` would change nothing. */
export async function isJobsSchemaCurrent(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ version: number }>(`select version from ${SCHEMA}.version`);
  return rows[0]?.version === JOBS_SCHEMA_VERSION;
}
