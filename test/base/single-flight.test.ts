import { expect, it } from 'vitest';
import { SingleFlight } from '../../src/base/single-flight.ts';

it('a thousand concurrent callers share one outcome', async () => {
  const flights = new SingleFlight<object>();
  const landing = Promise.withResolvers<object>();
  let starts = 0;
  const work = (): Promise<object> => {
    starts += 1;
    return landing.promise;
  };
  const asked = Array.from({ length: 1_000 }, () => flights.run('key', work));
  expect(flights.size).toBe(1);
  const outcome = {};
  landing.resolve(outcome);
  const outcomes = await Promise.all(asked);
  expect(outcomes.every((each) => each === outcome)).toBe(true);
  expect(starts).toBe(1);
});

it('two keys are two flights', async () => {
  const flights = new SingleFlight<string>();
  const both = [flights.run('a', async () => 'of a'), flights.run('b', async () => 'of b')];
  expect(flights.size).toBe(2);
  expect(await Promise.all(both)).toEqual(['of a', 'of b']);
});

it('nothing is cached: once settled, the work starts again', async () => {
  const flights = new SingleFlight<number>();
  let starts = 0;
  const work = async (): Promise<number> => ++starts;
  expect(await flights.run('key', work)).toBe(1);
  expect(flights.size).toBe(0);
  expect(await flights.run('key', work)).toBe(2);
});

const failures: readonly { name: string; work: () => Promise<never> }[] = [
  { name: 'rejects', work: () => Promise.reject(new Error('failed')) },
  {
    name: 'throws before its first await',
    work: () => {
      throw new Error('failed');
    },
  },
];

it.each(failures)('work that $name fails for everyone and leaves nothing behind', async ({ work }) => {
  const flights = new SingleFlight<never>();
  const outcomes = await Promise.allSettled([flights.run('key', work), flights.run('key', work)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(flights.size).toBe(0);
});
