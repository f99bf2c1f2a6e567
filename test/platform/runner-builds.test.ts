import { expect, it } from 'vitest';
import { whenServing } from '../../src/platform/runner-builds.ts';

/** Responds from the look with this number on. */
function deployed(from: number) {
  let looks = 0;
  return {
    get isServing(): boolean {
      looks += 1;
      return looks >= from;
    },
    looks: () => looks,
  };
}

const { signal } = new AbortController();

it('builds wait until what was deployed responds', async () => {
  const one = deployed(3);
  await whenServing(one, signal);
  expect(one.looks()).toBe(3);
});

it('builds wait no longer than their limit, and not at all in a runner that ends', async () => {
  const never = deployed(Infinity);
  await whenServing(never, signal, 1);
  await whenServing(never, AbortSignal.abort());
  expect(never.looks()).toBeLessThanOrEqual(3);
});
