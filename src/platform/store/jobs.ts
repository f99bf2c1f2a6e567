// The only file that uses pg-boss, which is loaded with the first job: work that outlives a request, or runs on a
// schedule.
import type { ConstructorOptions, Db, PgBoss as Boss } from 'pg-boss';
import { describeBug, type Log } from '../../base/log.ts';
import { type Client, type DatabaseOptions, openPool, type Transaction } from './database.ts';
import { isUnreachable } from './database-error.ts';
import { RUNTIME } from './roles.ts';

export type JobContext = {
  /** Of the job; the same when it is retried. */
  readonly id: string;
  /** Aborted when the job was cancelled, when another process runs it, or when this process stops. */
  readonly signal: AbortSignal;
};

/** Runs at least once: again in another process when its process died, and up to `retries` times when it throws. */
export type JobHandler = (data: unknown, context: JobContext) => Promise<void>;

export type QueueOptions = {
  /** Maximum retries; 5 when absent. */
  readonly retries?: number;
  /** Jobs that run at once in this process; 1 when absent. */
  readonly concurrency?: number;
};

export type Jobs = {
  /** Takes jobs from the queue, which is created when it does not exist. */
  work(queue: string, handler: JobHandler, options?: QueueOptions): Promise<void>;
  /** The job exists once the transaction commits. `work` must have created the queue. */
  send(trx: Transaction, queue: string, data: object): Promise<void>;
  /** One job for each time, whatever the number of processes. A cron expression of five fields, in UTC. */
  schedule(queue: string, cron: string): Promise<void>;
  /** Resolves when running jobs have ended, or after `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>;
};

/** The job of a killed process runs again after this time, two supervision passes and one poll. */
const HEARTBEAT_SECONDS = 10;
const PASS_SECONDS = 1;
const POLL_SECONDS = 1;

const SCHEMA = 'pgboss';

const SETTINGS: ConstructorOptions = {
  schema: SCHEMA,
  // The runtime role does not own the indexes.
  reindex: false,
  monitorVacuum: false,
};

/** As the runtime role: `migrate` has created the schema. */
export async function openJobs(
  options: DatabaseOptions & { readonly log: Pick<Log, 'warn' | 'error'> },
): Promise<Jobs> {
  const { fromKysely, PgBoss } = await import('pg-boss');
  const { log } = options;
  const pool = openPool(options);
  const boss = new PgBoss({
    ...SETTINGS,
    db: { executeSql: (text, values) => pool.query(text, values) },
    migrate: false,
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
  return {
    work: (queue, handler, queueOptions = {}) =>
      startWork(boss, queue, withLogging(handler, queue, log), queueOptions),
    async send(trx, queue, data) {
      await boss.send(queue, data, { db: fromKysely(trx) });
    },
    schedule: (queue, cron) => boss.schedule(queue, cron, null, { tz: 'UTC' }),
    async close(timeoutMs = 10_000) {
      await boss.stop({ graceful: true, timeout: timeoutMs });
      await pool.end();
    },
  };
}

/** pg-boss itself retries a failed job, and finally drops it, without a log line. */
function withLogging(handler: JobHandler, queue: string, log: Pick<Log, 'error'>): JobHandler {
  return async (data, context) => {
    try {
      await handler(data, context);
    } catch (error) {
      log.error({ ...describeBug(error), queue, job: context.id }, 'a job failed');
      throw error;
    }
  };
}

async function startWork(boss: Boss, queue: string, handler: JobHandler, options: QueueOptions) {
  const { retries = 5, concurrency = 1 } = options;
  const settings = {
    retryLimit: retries,
    // Also after the death of a process.
    retryDelay: 1,
    // After this the job is considered lost and retried.
    expireInSeconds: 900,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    deleteAfterSeconds: 86_400,
  };
  await boss.createQueue(queue, settings);
  // createQueue leaves the settings of an existing queue as they are.
  await boss.updateQueue(queue, settings);
  await boss.work(
    queue,
    { batchSize: 1, localConcurrency: concurrency, pollingIntervalSeconds: POLL_SECONDS },
    async (jobs) => {
      for (const { id, data, signal } of jobs) await handler(data, { id, signal });
    },
  );
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
