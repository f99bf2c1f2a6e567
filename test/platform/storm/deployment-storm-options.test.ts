// The command line of the storm of deployments.
import { expect, it } from 'vitest';
import { parseDeploymentStormOptions } from './deployment-storm-options.ts';

it('reads numbers, and refuses what is none', () => {
  expect(parseDeploymentStormOptions(['--kills', '3', '--seed', '7'])).toEqual({ kills: 3, seed: 7 });
  expect(parseDeploymentStormOptions([]).kills).toBe(50);
  for (const text of ['', 'x', '-1', '1.5', '20000'])
    expect(() => parseDeploymentStormOptions([`--kills=${text}`])).toThrow('--kills must be from 0 to 10000');
});
