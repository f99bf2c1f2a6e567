import { expect, it } from 'vitest';
import { buildNeedleTree, nextState } from '../../../src/platform/deployments/needle-tree.ts';

/** By each byte of the text: the length of the longest string that ends with it. */
function search(strings: readonly string[], text: string, maxLength = 100) {
  const tree = buildNeedleTree(
    strings.map((one) => Buffer.from(one)),
    maxLength,
  );
  let state = 0;
  return Array.from(Buffer.from(text), (byte) => {
    state = nextState(tree, state, byte);
    return (tree.found[state] as number) * (tree.isBeginning[state] === 1 ? -1 : 1);
  });
}

it('each string is found where it ends, also within and behind another one', () => {
  expect(search(['he', 'she', 'hers', 'his'], 'ushers')).toEqual([0, 0, 0, 3, 0, 4]);
  expect(search(['aab', 'ab'], 'aaab')).toEqual([0, 0, 0, 3]);
});

it('the beginning of a long string is found as such', () => {
  expect(search(['abcdef', 'abc', 'xyz'], 'abcxyz', 3)).toEqual([0, 0, -3, 0, 0, 3]);
});

it('bytes of any value are distinguished', () => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const tree = buildNeedleTree([all], 256);
  const end = all.reduce((state, byte) => nextState(tree, state, byte), 0);
  expect(tree.found[end]).toBe(256);
  expect(nextState(tree, end, 0)).toBe(nextState(tree, 0, 0));
  expect(nextState(tree, end, 1)).toBe(0);
});

it('a tree of nothing finds nothing', () => {
  expect(search([], 'text')).toEqual([0, 0, 0, 0]);
});
