// The rows of the stage `h2`, one after another, against one proxy and one host.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type H2Scene, createH2Scene, violations } from './h2-driver.ts';
import { h2Rows } from './h2-rows.ts';
import { everyNth } from '../../support/run-size.ts';

let scene: H2Scene;
beforeAll(async () => {
  scene = await createH2Scene();
});
afterAll(() => scene[Symbol.asyncDispose]());

describe('the h2 attacks', () => {
  everyNth(2, h2Rows, (some, options) =>
    it.each(some)('$id', options, async (row) => {
      expect(violations(row, await scene.play(row), scene.origin.port)).toEqual([]);
    }),
  );
});

describe('after the h2 attacks', () => {
  it('no exchange is open: the proxy closes at once', async () => {
    const startedMs = performance.now();
    await scene.proxy[Symbol.asyncDispose]();
    // The drain waits 500 ms for open exchanges.
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });
});
