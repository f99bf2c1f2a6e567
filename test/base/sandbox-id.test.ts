// A sandbox id is safe as a path segment, as a file name and as a label of a host name.
import { expect, it } from 'vitest';
import { SANDBOX_ID } from '../../src/base/sandbox-id.ts';

it.each(['a', '7', 'build-7', 'a--b', 'a'.repeat(63)])('%s is an id', (text) => {
  expect(SANDBOX_ID.test(text)).toBe(true);
});

it.each(['', '-a', 'a-', 'A', 'a.b', 'a/b', '..', 'a b', 'a_b', 'a\n', 'ä', 'a'.repeat(64)])(
  '%j is not an id',
  (text) => {
    expect(SANDBOX_ID.test(text)).toBe(false);
  },
);
