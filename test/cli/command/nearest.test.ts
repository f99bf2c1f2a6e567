import { expect, it } from 'vitest';
import { editDistance, nearestOf } from '../../../src/cli/command/nearest.ts';

it.each([
  ['chekc', 'check'],
  ['prxy', 'proxy'],
  ['explian', 'explain'],
  ['plattform', 'platform'],
])('%s is probably %s', (written, name) => {
  expect(nearestOf(written, ['run', 'ca', 'proxy', 'check', 'explain', 'platform'])).toBe(name);
});

it.each(['serve', 'cat', 'x', '', 'constructor'])('%s is near to none', (written) => {
  expect(nearestOf(written, ['run', 'ca', 'proxy', 'check'])).toBeUndefined();
});

it('the distance counts letters that are added, removed and changed', () => {
  expect([editDistance('abc', 'abc'), editDistance('abc', 'ab'), editDistance('abc', 'xbcd')]).toEqual([
    0, 1, 2,
  ]);
});
