import { expect, it } from 'vitest';
import { isStorable, pathToUnstorable } from '../../../src/base/json/storable-text.ts';

it('a text with U+0000 or half of a surrogate pair cannot be stored', () => {
  expect(['', 'a\u{1f600}', 'a\0', '\ud800', 'a\udc00b'].map(isStorable)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

it.each([
  [{ a: ['b', { c: null }] }, undefined],
  ['\0', []],
  [{ a: ['b', '\0', '\0'] }, ['a', 1]],
  [[{ b: { '\ud800': 1 } }], [0, 'b', '…']],
])('%j has its first at %j', (value, path) => expect(pathToUnstorable(value)).toEqual(path));
