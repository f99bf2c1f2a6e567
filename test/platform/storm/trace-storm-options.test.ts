import { expect, it } from 'vitest';
import { parseTraceStormOptions } from './trace-storm-options.ts';

it('a storm of traces kills fifty times', () => {
  expect(parseTraceStormOptions(['--seed', '7'])).toEqual({ kills: 50, clients: 8, seed: 7 });
});

it.each([
  [['--kills', '1.5'], /--kills must be from 0 to 10000/],
  [['--clients', '0'], /--clients must be from 1 to 100/],
  [['--seed='], /--seed must be/],
  [['--other'], /Unknown option '--other'/],
])('%j is no storm', (args, reason) => {
  expect(() => parseTraceStormOptions(args)).toThrow(reason);
});
