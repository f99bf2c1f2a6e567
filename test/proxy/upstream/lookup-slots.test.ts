// Who gets a thread for a lookup: nobody all of them, and whoever holds none before whoever holds many.
import { describe, expect, it } from 'vitest';
import { type LookupShare, createLookupSlots } from '../../../src/proxy/upstream/lookup-slots.ts';

const LONG_MS = 60_000;

/** Takes what can be had at once. */
function takeAll(share: LookupShare, most: number): number {
  let taken = 0;
  while (taken < most && share.acquire(LONG_MS) === true) taken += 1;
  return taken;
}

describe('thirty slots', () => {
  it('leave some for a tenth sandbox, though nine ask for all they can get', () => {
    const slots = createLookupSlots(30);
    const taken = Array.from({ length: 10 }, () =>
      takeAll(
        slots.share(() => 8),
        100,
      ),
    );
    expect(taken[0]).toBe(8);
    expect(taken.every((count) => count > 0)).toBe(true);
    expect(taken.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(30);
  });

  it('go to a sandbox within its own limit, which may change', () => {
    let max = 2;
    const share = createLookupSlots(30).share(() => max);
    expect(takeAll(share, 100)).toBe(2);
    max = 3;
    // The one that the last attempt left waiting is served with the next release, so this asks anew.
    expect(share.acquire(LONG_MS)).toBe(true);
  });
});

describe('a slot that is given back', () => {
  it('goes to whoever holds none, not to whoever waited longest', async () => {
    const slots = createLookupSlots(4);
    const [greedy, second, third, fourth] = Array.from({ length: 4 }, () => slots.share(() => 8));
    for (const share of [greedy, second, third, fourth]) expect(share?.acquire(LONG_MS)).toBe(true);
    const served: string[] = [];
    void Promise.resolve(greedy?.acquire(LONG_MS)).then(() => served.push('greedy'));
    const modest = Promise.resolve(slots.share(() => 8).acquire(LONG_MS)).then(() => served.push('modest'));
    fourth?.release();
    await modest;
    expect(served).toEqual(['modest']);
  });

  it('goes to nobody who has given up', async () => {
    const slots = createLookupSlots(1);
    const share = slots.share(() => 8);
    expect(share.acquire(LONG_MS)).toBe(true);
    expect(await share.acquire(1)).toBe(false);
    share.release();
    expect(share.acquire(LONG_MS)).toBe(true);
  });
});
