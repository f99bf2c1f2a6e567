import { expect, it } from 'vitest';
import { parseExportStormOptions } from './export-storm-options.ts';

it('a storm of exports kills two hundred times', () => {
  expect(parseExportStormOptions(['--seed', '7'])).toEqual({ kills: 200, rows: 100, seed: 7 });
});

it.each([
  [['--kills', '1.5'], /--kills must be from 0 to 10000/],
  [['--rows', '0'], /--rows must be from 1 to 10000/],
  [['--seed='], /--seed must be/],
  [['--other'], /Unknown option '--other'/],
])('%j is no storm', (args, reason) => {
  expect(() => parseExportStormOptions(args)).toThrow(reason);
});
