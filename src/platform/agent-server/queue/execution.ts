// Executes one attempt of a run: a worker runs the graph, its events go to the streams, its checkpoints to the database, and the
// end into one transaction. An attempt that was lost writes nothing more; one whose worker was lost is given back.
import { setTimeout } from 'node:timers/promises';
import type { RunEnd, StoredCheckpoint } from '../../../agent-worker/protocol/calls.ts';
import type { JsonText, ThrownError, WorkerEvent } from '../../../agent-worker/protocol/messages.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import type { Store } from '../../store/database.ts';
import type { RunUser } from '../access/run-users.ts';
import type { CheckpointPort } from '../checkpoints/checkpoint-port.ts';
import type { CheckpointScope } from '../checkpoints/checkpoint-scope.ts';
import type { RunEventWriter, RunStreams } from '../streams/run-streams.ts';
import type { GraphWorkers } from '../workers/graph-workers.ts';
import { WorkerError } from '../workers/worker-error.ts';
import type { Claim } from './claims.ts';
import { waitForDatabase } from './patience.ts';
import type { RunControl } from './run-control.ts';
import { toRunToStart } from './start-parameters.ts';

export type ExecutionParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly workers: Pick<GraphWorkers, 'run' | 'call'>;
  readonly streams: Pick<RunStreams, 'open'>;
  readonly log: Log;
  createCheckpoints(scope: CheckpointScope): CheckpointPort;
  /** Undefined: it does not open, and the run must not be executed. */
  openUser(runId: string): Promise<RunUser | undefined>;
  /** An attempt that takes longer ends as `timeout`. */
  readonly timeoutMs: number;
};

/** Of a run that was created as running: what needs not be read any more. */
export type KnownStart = {
  readonly user: RunUser;
  /** The last checkpoint of the thread; null where there is none; undefined where it is not known. */
  readonly latest: StoredCheckpoint | null | undefined;
};

/** What an attempt has come to; its end is still to be written. */
export type Attempted =
  | { readonly kind: 'ended'; readonly end: RunEnd; readonly values: JsonText | undefined }
  | { readonly kind: 'failed'; readonly error: ThrownError }
  /** Somebody asked for it, or its time is up. */
  | { readonly kind: 'interrupt' | 'rollback' | 'timeout' }
  /** Another attempt follows. */
  | { readonly kind: 'drained' }
  /** Another one follows. With a `loss` this one counts, and with `isAlone` the others are executed alone. */
  | { readonly kind: 'again'; readonly loss: string | null; readonly isAlone: boolean }
  /** Another process has the run. */
  | { readonly kind: 'lost' };

/** An attempt after so many lost ones ends the run. */
export const MAX_LOSSES = 3;

function toExhausted(loss: string | null): ThrownError {
  const why = loss === null ? '' : `: the last time ${loss}`;
  const message = `The run was lost ${MAX_LOSSES} times with its worker or its server process, and is not tried again${why}`;
  return { error: 'RunLost', message };
}

const NO_USER = {
  error: 'RunUserUnavailable',
  message: 'The user of this run cannot be read, so the run was not executed',
};

/** Runs the graph, unless its row says that it must not. Never rejects. */
export async function attemptRun(
  parts: ExecutionParts,
  { claim, control, known }: Attempt,
  writer: RunEventWriter,
): Promise<Attempted> {
  if (claim.cancellation !== null) return { kind: claim.cancellation };
  if (claim.losses >= MAX_LOSSES) return { kind: 'failed', error: toExhausted(claim.loss) };
  const user = known?.user ?? (await findUser(parts, claim));
  if (user === 'later') return { kind: 'drained' };
  if (user === undefined) return { kind: 'failed', error: NO_USER };
  const values = new LastValues();
  const timer = globalThis.setTimeout(() => control.end('timeout'), parts.timeoutMs);
  try {
    const end = await runOnWorker(parts, { claim, control, user, latest: known?.latest }, async (events) => {
      await writer.write(events);
      values.take(events);
    });
    return decideEnd(control, end, values.last);
  } catch (error) {
    return decideFailure(parts.log, claim, control, error);
  } finally {
    clearTimeout(timer);
  }
}

export type Attempt = {
  readonly claim: Claim;
  readonly control: RunControl;
  readonly known?: KnownStart | undefined;
};
type Started = Attempt & KnownStart;

/** For a graph that does not end when it is cancelled. What it still writes is refused. */
const CANCEL_MS = 10_000;

async function runOnWorker(
  { workers, createCheckpoints }: ExecutionParts,
  { claim, control, user, latest }: Started,
  onEvents: (events: readonly WorkerEvent[]) => Promise<void>,
): Promise<RunEnd> {
  const { thread_id: threadId, run_id: runId, attempt } = claim;
  const port = createCheckpoints({ threadId, lease: { runId, attempt } });
  const checkpoints = waitForDatabase(port, control.lost);
  const ended = new AbortController();
  const overdue = async (): Promise<never> => {
    await aborted(AbortSignal.any([control.signal, ended.signal]));
    await setTimeout(CANCEL_MS, undefined, { signal: ended.signal, ref: false });
    throw new WorkerError('blocked');
  };
  const waiting = overdue();
  // Its end after that of the run is nobody's.
  waiting.catch(() => undefined);
  const { is_alone: isAlone } = claim;
  const options = { cancel: control.signal, isAlone, checkpoints, onEvents };
  const running = workers.run(toRunToStart(claim, user, latest), options);
  running.catch(() => undefined);
  try {
    return await Promise.race([running, waiting]);
  } finally {
    ended.abort();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** `later`: the database is away. */
async function findUser(
  { openUser, log }: ExecutionParts,
  { run_id: run }: Claim,
): Promise<RunUser | 'later' | undefined> {
  try {
    return await openUser(run);
  } catch (error) {
    log.error({ ...describeBug(error), run }, 'the user of a run cannot be read');
    return isDatabaseAway(error) ? 'later' : undefined;
  }
}

/** A master key that is missing has a code of its own, and does not come back by itself. */
function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error) || !('kind' in error) || error.kind !== 'unavailable') return false;
  return !('code' in error && String(error.code).startsWith('MASTER_KEY'));
}

/** A run that has done its work is not interrupted any more; it is still rolled back. */
function decideEnd(control: RunControl, end: RunEnd, values: JsonText | undefined): Attempted {
  const { intent } = control;
  return intent === 'rollback' || intent === 'lost' ? { kind: intent } : { kind: 'ended', end, values };
}

function decideFailure(log: Log, claim: Claim, { intent }: RunControl, error: unknown): Attempted {
  if (intent !== undefined) return { kind: intent };
  const of = { run: claim.run_id, attempt: claim.attempt };
  if (error instanceof Error && error.name === 'LostRun') return { kind: 'lost' };
  // Another attempt would not be stored either.
  if (error instanceof DomainError && error.kind === 'storage_full')
    return { kind: 'failed', error: { error: 'StorageFull', message: error.message } };
  if (!(error instanceof WorkerError)) {
    log.error({ ...describeBug(error), ...of }, 'a run could not be executed');
    return { kind: 'again', loss: 'its server could not store or read what it needed', isAlone: false };
  }
  if (error.kind === 'unavailable') {
    log.warn(of, 'no worker could take a run');
    return { kind: 'again', loss: null, isAlone: false };
  }
  if (error.isRetryable || error.reason !== undefined) {
    const { kind: reason, why = 'has ended' } = error;
    log.warn({ ...of, reason, why }, 'the worker of a run was lost');
    return { kind: 'again', loss: `its worker ${why}`, isAlone: true };
  }
  const { thrown } = error;
  const { error: name, message } = thrown ?? { error: 'Error', message: error.message };
  return { kind: 'failed', error: { error: name, message } };
}

/** The values that a client who streams sees last: those of the graph itself, not of a subgraph. */
class LastValues {
  #last: JsonText | undefined;

  get last(): JsonText | undefined {
    return this.#last;
  }

  take(events: readonly WorkerEvent[]): void {
    this.#last = events.findLast(({ event }) => event === 'values')?.data ?? this.#last;
  }
}
