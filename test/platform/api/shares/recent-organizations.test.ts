// Who is active beside whom, on a clock of the test, compared with a table of all.
import { assert, constantFrom, property, tuple, array, integer } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RecentOrganizations } from '../../../../src/platform/api/shares/recent-organizations.ts';

const WINDOW_MS = 10;
const NAMES = ['a', 'b', 'c'];

describe('the organizations that asked lately', () => {
  it('are none at first, and nobody has another one beside it', () => {
    const recent = new RecentOrganizations({ windowMs: WINDOW_MS, now: () => 0 });
    expect([recent.hasOtherThan('a'), recent.changesInMs()]).toEqual([false, 0]);
    recent.note('a');
    expect([recent.hasOtherThan('a'), recent.hasOtherThan('b')]).toEqual([false, true]);
  });

  it('are those of the window, and a change is announced for the moment of the next one', () => {
    const step = tuple(constantFrom(...NAMES), integer({ min: 0, max: 2 * WINDOW_MS }));
    assert(
      property(array(step, { maxLength: 30 }), (steps) => {
        let nowMs = 0;
        const recent = new RecentOrganizations({ windowMs: WINDOW_MS, now: () => nowMs });
        const seen = new Map<string, number>();
        const hasOtherThan = (name: string, atMs: number): boolean =>
          [...seen].some(([other, seenMs]) => other !== name && atMs - seenMs < WINDOW_MS);
        for (const [name, afterMs] of steps) {
          nowMs += afterMs;
          recent.note(name);
          seen.set(name, nowMs);
          const expected = NAMES.map((one) => hasOtherThan(one, nowMs));
          expect(NAMES.map((one) => recent.hasOtherThan(one))).toEqual(expected);
          const changes = Array.from({ length: WINDOW_MS + 1 }, (_, inMs) => inMs).find((inMs) =>
            NAMES.some((one, at) => hasOtherThan(one, nowMs + inMs) !== expected[at]),
          );
          expect(recent.changesInMs()).toBe(changes ?? 0);
        }
      }),
    );
  });
});
