// Work in steps gives the same result however it is run, and in slices it leaves turns to others.
import { describe, expect, it } from 'vitest';
import { createPace, finish, finishInSlices, type Steps } from '../../src/base/steps.ts';

function* sumTo(count: number, done: number[] = []): Steps<number> {
  let sum = 0;
  for (let n = 1; n <= count; n += 1) {
    sum += n;
    done.push(n);
    yield;
  }
  return sum;
}

function* failAfter(count: number): Steps<never> {
  for (let n = 0; n < count; n += 1) yield;
  throw new Error('the work failed');
}

describe('work in steps', () => {
  it('has one result, at once and in slices', async () => {
    expect(finish(sumTo(100))).toBe(5050);
    expect(await finishInSlices(sumTo(100))).toBe(5050);
    expect(finish(sumTo(0))).toBe(0);
    expect(await finishInSlices(sumTo(0))).toBe(0);
  });

  it('in slices ends each turn once its time is over, and always does at least one step', async () => {
    const done: number[] = [];
    let at = 0;
    // Each look at the clock is 10 ms later, more than a slice: one step a turn.
    const running = finishInSlices(sumTo(5, done), () => (at += 10));
    const seen: number[] = [];
    let isRunning = true;
    const watch = (): void => {
      seen.push(done.length);
      if (isRunning) setImmediate(watch);
    };
    watch();
    expect(await running).toBe(15);
    isRunning = false;
    const growth = seen.slice(1).map((length, i) => length - (seen[i] ?? 0));
    expect(Math.max(...growth)).toBe(1);
  });

  it('begins in a later turn', async () => {
    const done: number[] = [];
    const running = finishInSlices(sumTo(3, done));
    expect(done).toEqual([]);
    await running;
    expect(done).toEqual([1, 2, 3]);
  });

  it('fails as the work does', async () => {
    expect(() => finish(failAfter(2))).toThrow('the work failed');
    await expect(finishInSlices(failAfter(2))).rejects.toThrow('the work failed');
  });
});

describe('a pace', () => {
  it('lets others go on once the steps have taken a millisecond, and not before', async () => {
    let at = 0;
    const pace = createPace(() => at);
    let turns = 0;
    const count = (): void => {
      turns += 1;
      if (turns < 100) setImmediate(count);
    };
    setImmediate(count);
    for (let step = 0; step < 3; step += 1) {
      at += 0.25;
      await pace();
    }
    expect(turns).toBe(0);
    at += 0.25;
    await pace();
    expect(turns).toBe(1);
    await pace();
    expect(turns).toBe(1);
    turns = 100;
  });
});
