// The stage `leak`, its bytes: a running sidecar, and every sink that it has.
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { trafficRows } from './rows-traffic.ts';
import { type TrafficScene, createTrafficScene, filesWithValues } from './traffic-driver.ts';

let scene: TrafficScene;
beforeAll(async () => {
  scene = await createTrafficScene();
}, 60_000);
afterAll(() => scene[Symbol.asyncDispose]());

it.each(trafficRows)('$id', async ({ script, expect: expected }) => {
  expect(await scene.play(script, expected)).toEqual([]);
});

it('and no file of its state holds a value', async () => {
  expect(await filesWithValues(dirname(dirname(scene.sallyport.caFile)))).toEqual([]);
});
