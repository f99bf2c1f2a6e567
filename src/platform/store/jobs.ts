// The door to pg-boss, loaded with the first job: work that outlives the request, or comes by the clock. What a queue
// does is not known here.
import type { ConstructorOptions, Db, PgBoss as Boss } from 'pg-boss';
import type { Log } from '../../base/log.ts';
import { describeBug } from '../../base/log.ts';
import { type Client, type DatabaseOptions, openPool, type Transaction } from './database.ts';
import { RUNTIME } from './roles.ts';

export type JobContext = {
  /** Of the job; the same when it runs again. */
  readonly id: string;
  /** Aborted when the job was cancelled, runs elsewhere, or we stop. */
  readonly signal: AbortSignal;
};

/** Runs at least once: again, elsewhere, when its process died. Throwing means again, `retries` times. */
export type JobHandler = (data: unknown, context: JobContext) => Promise<void>;

export type QueueOptions = {
  /** How often it is tried again that failed. */
  readonly retries?: number;
  /** Also before a job runs again whose process died. */
  readonly retryDelaySeconds?: number;
  /** A job that runs for longer is given to another. */
  readonly timeoutSeconds?: number;
  /** How many at once in this process. */
  readonly concurrency?: number;
};

export type Jobs = {
  /** Takes jobs from the queue, which is made if it is not there. */
  work(queue: string, handler: JobHandler, options?: QueueOptions): Promise<void>;
  /** The job is there when the transaction commits and not before. The queue must have been named to `work` once. */
  send(trx: Transaction, queue: string, data: object): Promise<void>;
  /** One job each time, whatever the number of processes. Five fields, UTC. */
  schedule(queue: string, cron: string): Promise<void>;
  /** Ends when what runs has ended, or after `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>;
};

/** A job of a killed process runs again after this, two passes over the queues, and a poll. */
const HEARTBEAT_SECONDS = 10;
const PASS_SECONDS = 1;
const POLL_SECONDS = 1;

const SCHEMA = 'pgboss';

/** As the role of run time: the schema is there by `migrate`. */
export async function openJobs(
  options: DatabaseOptions & { readonly log: Pick<Log, 'warn' | 'error'> },
): Promise<Jobs> {
  const { fromKysely, PgBoss } = await import('pg-boss');
  const pool = openPool(options);
  const boss = new PgBoss({
    ...SETTINGS,
    db: { executeSql: (text, values) => pool.query(text, values) },
    migrate: false,
    superviseIntervalSeconds: PASS_SECONDS,
    monitorIntervalSeconds: PASS_SECONDS,
  });
  // Never its message: it may quote what a job carries.
  boss.on('error', (error) => options.log.error(describeBug(error), 'jobs failed'));
  boss.on('warning', ({ message }) => options.log.warn({ warning: message }, 'jobs'));
  await boss.start();
  return {
    work: (queue, handler, queueOptions) =>
      startWork(boss, queue, reportedOf(handler, queue, options.log), queueOptions ?? {}),
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

/** A job that fails is tried again in silence, and given up so. */
function reportedOf(handler: JobHandler, queue: string, log: Pick<Log, 'error'>): JobHandler {
  return async (data, context) => {
    try {
      await handler(data, context);
    } catch (error) {
      log.error({ ...describeBug(error), queue, job: context.id }, 'a job failed');
      throw error;
    }
  };
}

const SETTINGS: ConstructorOptions = {
  schema: SCHEMA,
  // Who runs it does not own the indexes.
  reindex: false,
  monitorVacuum: false,
};

async function startWork(
  boss: Boss,
  queue: string,
  handler: JobHandler,
  options: QueueOptions,
): Promise<void> {
  const { retries = 5, retryDelaySeconds = 1, timeoutSeconds = 900, concurrency = 1 } = options;
  const settings = {
    retryLimit: retries,
    retryDelay: retryDelaySeconds,
    expireInSeconds: timeoutSeconds,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    deleteAfterSeconds: 86_400,
  };
  await boss.createQueue(queue, settings);
  // One of an earlier version keeps its settings otherwise.
  await boss.updateQueue(queue, settings);
  await boss.work(
    queue,
    { batchSize: 1, localConcurrency: concurrency, pollingIntervalSeconds: POLL_SECONDS },
    async (jobs) => {
      for (const { id, data, signal } of jobs) await handler(data, { id, signal });
    },
  );
}

/** Part of `migrate`: makes the schema or brings it up to date, by its owner. */
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
