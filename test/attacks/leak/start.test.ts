// The stage `leak`, its starts: the environment, the arguments and the files of a process that holds secrets.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRows } from './rows-start.ts';
import { type StartScene, createStartScene } from './start-driver.ts';

let scene: StartScene;
beforeAll(async () => {
  scene = await createStartScene();
}, 60_000);
afterAll(() => scene[Symbol.asyncDispose]());

it.each(startRows)('$id', { timeout: 60_000 }, async ({ script, expect: expected }) => {
  expect(await scene.play(script, expected)).toEqual([]);
});
