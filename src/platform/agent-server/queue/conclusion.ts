// Writes what an attempt has come to: the end of its run, its removal, or that it is given back. The error of a run is among its
// events before the commit that ends it; its stream ends after that commit.
import type { JsonText, ThrownError } from '../../../agent-worker/protocol/messages.ts';
import { describeBug } from '../../../base/log.ts';
import type { RunEventWriter } from '../streams/run-streams.ts';
import { type Claim, type GivenBack, giveBack } from './claims.ts';
import { type Ended, type Ending, endRun, removeProgress, removeRun } from './ending.ts';
import { type Attempt, type Attempted, attemptRun, type ExecutionParts } from './execution.ts';
import { untilAvailable } from './patience.ts';
import type { RunControl } from './run-control.ts';
import { readThreadOutcome } from './thread-state.ts';

export type Concluded =
  /** With its status, or removed. */
  | {
      readonly kind: 'ended';
      readonly status: Ending['status'] | 'removed';
      /** Of the thread, runs wait. Undefined: they may. */
      readonly hasNext?: boolean;
    }
  /** Pending again. */
  | { readonly kind: 'given_back' }
  /** It was not this process's any more, or still is in its rows until its lease runs out. */
  | { readonly kind: 'lost' };

export type Conclusion = ExecutionParts & {
  /** Of this process, as `lease_owner` names it. */
  readonly owner: string;
  /** Before a lost run may be claimed again. */
  pauseMs(losses: number): number;
};

/** Executes one attempt, to its end. Never rejects. */
export async function executeRun(parts: Conclusion, attempt: Attempt): Promise<Concluded> {
  const { claim, control } = attempt;
  const { run_id: runId, thread_id: threadId, attempt: number, is_resumable: isResumable } = claim;
  const streamedBy = claim.streamed_by;
  let writer: RunEventWriter | undefined;
  try {
    const run = { runId, threadId, attempt: number, isResumable, streamedBy };
    writer = await untilAvailable(control.lost, () => parts.streams.open(run));
    const attempted = await attemptRun(parts, attempt, writer);
    const concluded = await conclude(parts, { claim, control, writer }, attempted);
    await (concluded.kind === 'ended' ? writer.end() : writer.release());
    return concluded;
  } catch (error) {
    if (!control.lost.aborted)
      parts.log.error({ ...describeBug(error), run: runId, attempt: number }, NOT_CONCLUDED);
    await writer?.release().catch(() => undefined);
    return { kind: 'lost' };
  }
}

const NOT_CONCLUDED =
  'the end of a run could not be written: it is executed again when its lease has run out';

type Scope = { readonly claim: Claim; readonly control: RunControl; readonly writer: RunEventWriter };

function conclude(parts: Conclusion, scope: Scope, attempted: Attempted): Promise<Concluded> {
  switch (attempted.kind) {
    case 'ended':
      return end(parts, scope, ofEnd(attempted));
    case 'failed':
      return endWithError(parts, scope, 'error', attempted.error);
    case 'timeout':
      return endWithError(parts, scope, 'timeout', toTimeout(parts.timeoutMs));
    case 'interrupt':
      return endInterrupted(parts, scope);
    case 'rollback':
      return rollBack(parts, scope);
    case 'drained':
      return putBack(parts, scope, { loss: null, isAlone: false, pauseMs: 0 });
    case 'again': {
      const { loss, isAlone } = attempted;
      return putBack(parts, scope, { loss, isAlone, pauseMs: parts.pauseMs(scope.claim.losses + 1) });
    }
    case 'lost':
      return Promise.resolve({ kind: 'lost' });
  }
}

async function end(
  { store, owner, log }: Conclusion,
  { claim, control: { lost } }: Scope,
  ending: Ending,
): Promise<Concluded> {
  let ended: Ended | undefined;
  let { status } = ending;
  try {
    ended = await untilAvailable(lost, () => endRun(store, owner, claim, ending));
  } catch (error) {
    lost.throwIfAborted();
    log.error({ ...describeBug(error), run: claim.run_id }, 'the values of a run could not be stored');
    ended = await untilAvailable(lost, () => endRun(store, owner, claim, UNSTORABLE));
    ({ status } = UNSTORABLE);
  }
  return ended === undefined ? { kind: 'lost' } : { kind: 'ended', status, ...ended };
}

/** Of a run whose values the database does not take: it would not take those of another attempt either. */
const UNSTORABLE: Ending = (() => {
  const error = JSON.stringify({
    error: 'StorageError',
    message: 'The values of the run could not be stored',
  });
  return { status: 'error', output: error, thread: { status: 'error', error } };
})();

function ofEnd({
  end: { status, values, interrupts },
  values: last,
}: Extract<Attempted, { kind: 'ended' }>): Ending {
  return {
    // A graph that waits for somebody has done what this run asked of it.
    status: 'success',
    output: last ?? values,
    thread: {
      status: status === 'interrupted' ? 'interrupted' : 'idle',
      values: values === 'null' ? undefined : values,
      interrupts,
    },
  };
}

async function endWithError(
  parts: Conclusion,
  scope: Scope,
  status: 'error' | 'timeout',
  thrown: ThrownError,
): Promise<Concluded> {
  const error: JsonText = JSON.stringify(thrown);
  await scope.writer.write([{ event: 'error', data: error }]);
  const thread = { ...(await readThreadOutcome(parts, scope.claim)), status: 'error', error } as const;
  return end(parts, scope, { status, output: error, thread });
}

function toTimeout(timeoutMs: number): ThrownError {
  return { error: 'TimeoutError', message: `The run took longer than ${timeoutMs / 1000} seconds` };
}

async function endInterrupted(parts: Conclusion, scope: Scope): Promise<Concluded> {
  const thread = { ...(await readThreadOutcome(parts, scope.claim)), status: 'idle' } as const;
  return end(parts, scope, { status: 'interrupted', output: thread.values ?? null, thread });
}

/** In two steps, because a worker must read what the thread was before: an attempt that ends between them repeats the first. */
async function rollBack(parts: Conclusion, { claim, control }: Scope): Promise<Concluded> {
  const { store, owner } = parts;
  const { lost } = control;
  if (!(await untilAvailable(lost, () => removeProgress(store, owner, claim)))) return { kind: 'lost' };
  const thread = await readThreadOutcome(parts, claim);
  const isRemoved = await untilAvailable(lost, () => removeRun(store, owner, claim, thread));
  return isRemoved ? { kind: 'ended', status: 'removed' } : { kind: 'lost' };
}

async function putBack(
  parts: Conclusion,
  { claim, control }: Scope,
  back: Omit<GivenBack, 'runId' | 'attempt'>,
): Promise<Concluded> {
  const { store, owner } = parts;
  const { run_id: runId, attempt } = claim;
  const given = { ...back, runId, attempt };
  const isPending = await untilAvailable(control.lost, () => giveBack(store.db, owner, given));
  return { kind: isPending ? 'given_back' : 'lost' };
}
