// A job as data: work that outlives a request or runs on a schedule, its limits, and what follows when it cannot be done.
import type { Log } from '../../base/log.ts';
import type { z } from '../../base/schema.ts';
import type { Database, Store } from './database.ts';

/** `db` is the transaction that the job depends on: the job exists once that commits. Throws when the data does not fit. */
export type SendJob = <S extends z.ZodObject>(db: Database, job: Job<S>, data: z.input<S>) => Promise<void>;

export type JobContext = {
  /** Of the job; the same when it is retried. */
  readonly id: string;
  /** Aborted by the timeout, when another process runs the job, and when this process stops. */
  readonly signal: AbortSignal;
  /** Of connections apart from those of requests: its statements may take minutes. */
  readonly store: Store;
  /** Of what follows this job. */
  readonly send: SendJob;
  readonly log: Log;
};

/** A cron expression has five fields and is in UTC. */
export type Schedule<T> = (
  | { readonly cron: string }
  | { readonly everyMinutes: 1 | 2 | 3 | 4 | 5 | 6 | 10 | 12 | 15 | 20 | 30 }
) & { readonly data: T };

/** `data`: another version stored it, and the schema of this one rejects it. */
export type Exhausted<T> =
  | { readonly reason: 'retries'; readonly data: T }
  | { readonly reason: 'data'; readonly data: unknown };

export type Job<S extends z.ZodObject = z.ZodObject> = {
  /** Of its queue: jobs that are stored under another name are lost to it. */
  readonly name: string;
  /**
   * Checked when a job is sent and again when it runs: the version that sent it may be another one. A new field needs a
   * default, so that stored jobs still fit. Stored as it is: never a secret, only where to find one.
   */
  readonly data: S;
  /** Attempts after the first one. The death of a process ends an attempt as an error does. */
  readonly retries: number;
  /** Before each retry. */
  readonly delaySeconds: number;
  /** Of one attempt. Then the signal aborts and the attempt has failed; a `run` that does not end then may run twice. */
  readonly timeoutSeconds: number;
  /** Jobs that run at once in one process; 1 when absent. */
  readonly concurrency?: number;
  /** One job for each time, whatever the number of processes. */
  readonly schedule?: Schedule<z.input<S>>;
  /** Runs at least once: an attempt whose process dies after its work is repeated. */
  run(data: z.output<S>, context: JobContext): Promise<void>;
  /**
   * Runs once the retries are used up, also when the process died in the last attempt, and is itself retried. Without it
   * a line in the log is all that follows.
   */
  onExhausted?(exhausted: Exhausted<z.output<S>>, context: JobContext): Promise<void>;
};

/** A job whose `run` sees its data by the type of its schema. */
export function defineJob<S extends z.ZodObject>(job: Job<S>): Job<S> {
  return job;
}
