// Cancellations are remembered for the runs that may be about to start, and no longer, also while some place is always reserved.
import { expect, it } from 'vitest';
import { RecentCancellations } from '../../../../src/platform/agent-server/queue/recent-cancellations.ts';

it('one that comes while a place is reserved is known to the run of that place, and to no later one', () => {
  const recent = new RecentCancellations();
  recent.add('before');
  const watch = recent.watch();
  recent.add('during');
  expect(['before', 'during', 'other'].map((id) => recent.mayHave(id, watch))).toEqual([false, true, false]);
  expect(recent.mayHave('during', recent.watch())).toBe(false);
});

it('places that overlap for ever keep no more than came while the oldest of them was reserved', () => {
  const recent = new RecentCancellations();
  let watch = recent.watch();
  for (let index = 0; index < 1_000; index += 1) {
    const next = recent.watch();
    recent.add(`run ${index}`);
    expect(recent.mayHave(`run ${index}`, watch)).toBe(true);
    recent.end(watch);
    watch = next;
    expect(recent.kept).toBeLessThanOrEqual(1);
  }
  recent.end(watch);
  expect(recent.kept).toBe(0);
});

it('more than are kept, while one place is reserved: each run of it may be cancelled', () => {
  const recent = new RecentCancellations(3);
  const watch = recent.watch();
  for (let index = 0; index < 3; index += 1) recent.add(`run ${index}`);
  expect(recent.mayHave('other', watch)).toBe(false);
  recent.add('run 3');
  expect(recent.kept).toBe(3);
  expect([recent.mayHave('run 0', watch), recent.mayHave('other', watch)]).toEqual([true, true]);
  const later = recent.watch();
  expect([recent.mayHave('run 0', later), recent.mayHave('other', later)]).toEqual([false, false]);
});
