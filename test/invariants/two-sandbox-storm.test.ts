// I12 at length: ten thousand requests of two sandboxes of one sidecar. `npm run test:all` runs it.
import { describe, expect, it } from 'vitest';
import { findCrossings } from './crossings.ts';
import { createTwoBoxes } from './two-sandbox-scene.ts';
import { expectAll, runTraffic } from './two-sandbox-traffic.ts';

const COUNT = 10_000;

describe('I12 ten thousand requests of two sandboxes', () => {
  it('I12 share nothing', { tags: ['long'], timeout: 300_000 }, async () => {
    await using scene = await createTwoBoxes();
    const traffic = await runTraffic(scene, COUNT, 1);
    expectAll(scene, traffic, COUNT);
    expect(Object.values(findCrossings(traffic)).flat()).toEqual([]);
  });
});
