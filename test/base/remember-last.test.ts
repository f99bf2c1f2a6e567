import { expect, it } from 'vitest';
import { rememberLast } from '../../src/base/remember-last.ts';

it('reads a text again when another one came in between, and not before', () => {
  const read: string[] = [];
  const lengthOf = rememberLast((text) => {
    read.push(text);
    return text === '' ? undefined : text.length;
  });
  expect(['ab', 'ab', 'c', '', '', 'ab'].map(lengthOf)).toEqual([2, 2, 1, undefined, undefined, 2]);
  expect(read).toEqual(['ab', 'c', '', 'ab']);
});
