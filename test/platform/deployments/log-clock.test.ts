// Times of log lines by the clock of the database.
import { expect, it } from 'vitest';
import { LogClock } from '../../../src/platform/deployments/log-clock.ts';
import type { Database } from '../../../src/platform/store/database.ts';

const db = {} as Database;

function createClocks(given: { aheadMs: number; tripMs?: number }) {
  const clocks = { trueMs: 1_000_000, aheadMs: given.aheadMs, reads: 0 };
  const clock = new LogClock({
    nowMs: () => clocks.trueMs + clocks.aheadMs,
    async readMs() {
      clocks.reads += 1;
      clocks.trueMs += (given.tripMs ?? 0) / 2;
      const read = clocks.trueMs;
      clocks.trueMs += (given.tripMs ?? 0) / 2;
      return read;
    },
  });
  const stored = () => clock.toStored(new Date(clocks.trueMs + clocks.aheadMs)).getTime() - clocks.trueMs;
  return { clock, clocks, stored };
}

it.each([3_600_000, -3_600_000, 0])(
  'a machine whose clock is %i ms ahead has those of the database',
  async (aheadMs) => {
    const { clock, stored } = createClocks({ aheadMs, tripMs: 10 });
    await clock.compare(db);
    expect(Math.abs(stored())).toBeLessThanOrEqual(5);
  },
);

it('a difference that the time of the question explains changes nothing', async () => {
  const { clock, clocks, stored } = createClocks({ aheadMs: 60_000, tripMs: 10 });
  await clock.compare(db);
  const before = stored();
  clocks.aheadMs += 4;
  clocks.trueMs += 30_000;
  await clock.compare(db);
  expect([stored() - before, clocks.reads]).toEqual([4, 2]);
});

it('a clock that is set is followed within half a minute, also when it is set back', async () => {
  const { clock, clocks, stored } = createClocks({ aheadMs: 0 });
  await clock.compare(db);
  clocks.trueMs += 1_000;
  await clock.compare(db);
  expect(clocks.reads).toBe(1);
  clocks.aheadMs = -600_000;
  await clock.compare(db);
  expect([clocks.reads, stored()]).toEqual([2, 0]);
});
