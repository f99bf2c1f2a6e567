// The states of exports and of their runs, and every move between them. Pure.

/** In the order of a life: the last four are final. */
export const runStatuses = ['CREATED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEDOUT'] as const;
export const exportStatuses = [...runStatuses, 'INTERVALSCHEDULED'] as const;
export type RunStatus = (typeof runStatuses)[number];
/** `INTERVALSCHEDULED`: a schedule, which makes exports and has no runs of its own. */
export type ExportStatus = (typeof exportStatuses)[number];

/**
 * `begin`: the first run of an export, or an attempt of a run. `requeue`: an attempt has ended, and another one follows. `complete`,
 * `fail`, `cancel` and `time_out` end it.
 */
export type Move = 'begin' | 'requeue' | 'complete' | 'fail' | 'cancel' | 'time_out';

type Table<S extends string> = Readonly<Record<S, Partial<Readonly<Record<Move, S>>>>>;

const STOPPED = { cancel: 'CANCELLED', time_out: 'TIMEDOUT' } as const;
const FINAL = { COMPLETED: {}, FAILED: {}, CANCELLED: {}, TIMEDOUT: {} } as const;

const exportMoves: Table<ExportStatus> = {
  CREATED: { begin: 'RUNNING', cancel: 'CANCELLED' },
  RUNNING: { begin: 'RUNNING', complete: 'COMPLETED', fail: 'FAILED', ...STOPPED },
  INTERVALSCHEDULED: { cancel: 'CANCELLED' },
  ...FINAL,
};

const runMoves: Table<RunStatus> = {
  CREATED: { begin: 'RUNNING', ...STOPPED },
  RUNNING: { requeue: 'CREATED', complete: 'COMPLETED', fail: 'FAILED', ...STOPPED },
  ...FINAL,
};

/** Undefined: there is no such move from this state. */
export function moveExport(from: ExportStatus, move: Move): ExportStatus | undefined {
  return exportMoves[from][move];
}

/** Undefined: there is no such move from this state. */
export function moveRun(from: RunStatus, move: Move): RunStatus | undefined {
  return runMoves[from][move];
}

export function isFinal(status: ExportStatus): boolean {
  return Object.hasOwn(FINAL, status);
}

/**
 * How an attempt of a run ended. `interrupted`: its worker was stopped or died, or the database was away. `preempted`: another workspace
 * waited for its place.
 */
export type AttemptEnd =
  | { readonly is: 'completed' }
  | { readonly is: 'interrupted'; readonly waits?: true }
  | { readonly is: 'preempted' }
  | { readonly is: 'failed'; readonly isRetryable: boolean; readonly message: string };

export type AttemptConsequence = {
  readonly move: Extract<Move, 'complete' | 'fail' | 'requeue'>;
  /** The next attempt is a retry. */
  readonly isRetry: boolean;
  /** It comes after the delay of retries. */
  readonly waits: boolean;
};

/** What follows the end of an attempt of a run that has had `retryNumber` retries of `maxRetries`. */
export function decideAfterAttempt(
  end: AttemptEnd,
  { retryNumber, maxRetries }: { readonly retryNumber: number; readonly maxRetries: number },
): AttemptConsequence {
  if (end.is === 'completed') return { move: 'complete', isRetry: false, waits: false };
  if (end.is === 'preempted') return { move: 'requeue', isRetry: false, waits: false };
  if (end.is === 'interrupted') return { move: 'requeue', isRetry: false, waits: end.waits ?? false };
  const isLast = !end.isRetryable || retryNumber >= maxRetries;
  return { move: isLast ? 'fail' : 'requeue', isRetry: !isLast, waits: !isLast };
}

/**
 * What follows for an export from its runs: the first that failed fails it, and the last that completed completes it. Undefined: it
 * goes on. The runs of a failed export that have not ended are cancelled.
 */
export function decideAfterRun(runs: {
  readonly failed: number;
  readonly unfinished: number;
}): Extract<Move, 'complete' | 'fail'> | undefined {
  if (runs.failed > 0) return 'fail';
  return runs.unfinished === 0 ? 'complete' : undefined;
}
