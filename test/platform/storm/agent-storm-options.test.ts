import { expect, it } from 'vitest';
import { parseAgentStormOptions } from './agent-storm-options.ts';

it('a storm of agent servers kills a hundred times', () => {
  expect(parseAgentStormOptions(['--seed', '7'])).toEqual({ kills: 100, clients: 12, seed: 7 });
  expect(parseAgentStormOptions(['--kills', '3', '--clients', '2'])).toMatchObject({ kills: 3, clients: 2 });
});

it.each([
  [['--kills', '1.5'], /--kills must be from 0 to 10000/],
  [['--clients', '0'], /--clients must be from 1 to 1000/],
  [['--seed='], /--seed must be/],
  [['--other'], /Unknown option '--other'/],
])('%j is no storm', (args, reason) => {
  expect(() => parseAgentStormOptions(args)).toThrow(reason);
});
