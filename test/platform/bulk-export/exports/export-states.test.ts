// Every move of exports and runs, as a table, and what follows the end of an attempt.
import { describe, expect, it } from 'vitest';
import {
  decideAfterAttempt,
  decideAfterRun,
  exportStatuses,
  isFinal,
  type Move,
  moveExport,
  moveRun,
  runStatuses,
} from '../../../../src/platform/bulk-export/exports/export-states.ts';

const MOVES: readonly Move[] = ['begin', 'requeue', 'complete', 'fail', 'cancel', 'time_out'];

/** `FROM move TO`, for every move that there is. */
function tableOf<S extends string>(
  from: readonly S[],
  move: (from: S, move: Move) => S | undefined,
): readonly string[] {
  return from.flatMap((one) =>
    MOVES.flatMap((name) => {
      const to = move(one, name);
      return to === undefined ? [] : [`${one} ${name} ${to}`];
    }),
  );
}

describe('the moves', () => {
  it('of an export', () => {
    expect(tableOf(exportStatuses, moveExport)).toEqual([
      'CREATED begin RUNNING',
      'CREATED cancel CANCELLED',
      'RUNNING begin RUNNING',
      'RUNNING complete COMPLETED',
      'RUNNING fail FAILED',
      'RUNNING cancel CANCELLED',
      'RUNNING time_out TIMEDOUT',
      'INTERVALSCHEDULED cancel CANCELLED',
    ]);
  });

  it('of a run', () => {
    expect(tableOf(runStatuses, moveRun)).toEqual([
      'CREATED begin RUNNING',
      'CREATED cancel CANCELLED',
      'CREATED time_out TIMEDOUT',
      'RUNNING requeue CREATED',
      'RUNNING complete COMPLETED',
      'RUNNING fail FAILED',
      'RUNNING cancel CANCELLED',
      'RUNNING time_out TIMEDOUT',
    ]);
  });

  it('lead out of every state but the final ones', () => {
    for (const status of exportStatuses)
      expect(isFinal(status)).toBe(MOVES.every((move) => moveExport(status, move) === undefined));
  });
});

describe('after an attempt', () => {
  const failed = (isRetryable: boolean) => ({ is: 'failed', isRetryable, message: 'no' }) as const;

  it.each([
    ['completed', { is: 'completed' } as const, 0, ['complete', false, false]],
    [
      'interrupted: no retry is used, even the last',
      { is: 'interrupted' } as const,
      20,
      ['requeue', false, false],
    ],
    [
      'interrupted by the database: later',
      { is: 'interrupted', waits: true } as const,
      3,
      ['requeue', false, true],
    ],
    ['failed: the first retry', failed(true), 0, ['requeue', true, true]],
    ['failed: the last retry', failed(true), 19, ['requeue', true, true]],
    ['failed with its retries used up', failed(true), 20, ['fail', false, false]],
    ['failed for good', failed(false), 0, ['fail', false, false]],
  ])('that %s', (_, end, retryNumber, expected) => {
    const { move, isRetry, waits } = decideAfterAttempt(end, { retryNumber, maxRetries: 20 });
    expect([move, isRetry, waits]).toEqual(expected);
  });
});

it('an export ends with its first failed run, or with its last one', () => {
  expect(decideAfterRun({ failed: 1, unfinished: 4 })).toBe('fail');
  expect(decideAfterRun({ failed: 0, unfinished: 1 })).toBeUndefined();
  expect(decideAfterRun({ failed: 0, unfinished: 0 })).toBe('complete');
});
