// The queue of runs in this process: it claims pending runs of the database, executes them by workers, and gives them back
// when the process drains. Several processes share one database, and any of them may execute any run.

/** What a running run was asked for: to end and keep its progress, or to end and be removed with its checkpoints. */
export type Cancellation = 'interrupt' | 'rollback';

export type RunQueue = {
  /** After the commit of the run: it is claimed now if there is a place. `undefined` after a commit that may have made several due. */
  offer(runId?: string): void;
  /** After the commit of a cancellation: it ends at once where this process executes the run; others learn it by NOTIFY. */
  cancel(runId: string, action: Cancellation): void;
  /** Claims nothing more, lets running ones end within the time to drain, and gives the others back, as pending. */
  close(): Promise<void>;
};
