import { describe, expect, it } from 'vitest';
import { CallRejected, TransportError } from '../../../src/cli/deploy/platform-call.ts';
import { repeatCall } from '../../../src/cli/deploy/repeated-call.ts';

/** Throws the errors one after the other, then returns `done`; counts its calls and the waits between them. */
function scene(errors: readonly Error[]) {
  const waits: number[] = [];
  let calls = 0;
  const work = async (): Promise<string> => {
    const error = errors[calls];
    calls += 1;
    if (error) throw error;
    return 'done';
  };
  return { work, waits, wait: async (ms: number) => waits.push(ms), calls: () => calls };
}

const lost = new TransportError('lost');

describe('a call', () => {
  it('is made again after a lost response, three times, and later each time', async () => {
    const { work, waits, wait } = scene([lost, lost, lost]);
    expect(await repeatCall(work, { wait })).toBe('done');
    expect(waits).toEqual([500, 1000, 2000]);
  });

  it('is given up then', async () => {
    const { work, wait, calls } = scene([lost, lost, lost, lost]);
    await expect(repeatCall(work, { wait })).rejects.toBe(lost);
    expect(calls()).toBe(4);
  });

  it('is not made again when the platform has done it', async () => {
    const { work, wait, calls } = scene([lost]);
    expect(await repeatCall(work, { wait, find: async () => 'found' })).toBe('found');
    expect(calls()).toBe(1);
  });

  it.each([
    [429, false, true],
    [429, true, true],
    [503, true, true],
    [502, true, true],
    [503, false, false],
    [500, true, false],
    [404, true, false],
  ])('with the response %d, a read: %s, is made again: %s', async (status, isRead, expected) => {
    const { work, wait, calls } = scene([new CallRejected('no', status)]);
    await repeatCall(work, { wait, isRead }).catch(() => undefined);
    expect(calls()).toBe(expected ? 2 : 1);
  });

  it('waits as long as the platform asks, and no longer than half a minute', async () => {
    const { work, waits, wait } = scene([
      new CallRejected('no', 429, { retryAfterMs: 7000 }),
      new CallRejected('no', 429, { retryAfterMs: 9e9 }),
    ]);
    await repeatCall(work, { wait });
    expect(waits).toEqual([7000, 30_000]);
  });
});
