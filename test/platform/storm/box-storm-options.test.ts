import { expect, it } from 'vitest';
import { parseBoxStormOptions } from './box-storm-options.ts';

it('a storm of boxes has a hundred of them at two loads, and none beside kills', () => {
  expect(parseBoxStormOptions(['--seed', '7'])).toEqual({
    ...{ boxes: 100, loads: [2, 20], kills: 0, seed: 7, runtime: 'auto' },
  });
  expect(parseBoxStormOptions(['--kills', '50', '--seed', '7'])).toMatchObject({ boxes: 0, kills: 50 });
  expect(parseBoxStormOptions(['--kills', '5', '--boxes', '3', '--loads', '4'])).toMatchObject({
    ...{ boxes: 3, loads: [4], kills: 5 },
  });
});

it.each([
  [['--boxes=-1'], /--boxes must be from 0 to 1000/],
  [['--boxes', 'many'], /--boxes must be/],
  [['--loads', '2,'], /--loads must be/],
  [['--kills', '1.5'], /--kills must be from 0 to 10000/],
  [['--runtime', 'docker'], /--runtime must be auto, attached, bubblewrap/],
  [['--other'], /Unknown option '--other'/],
])('%j is no storm', (args, reason) => {
  expect(() => parseBoxStormOptions(args)).toThrow(reason);
});
