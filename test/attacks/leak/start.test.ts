// The stage `leak`, its starts: the environment, the arguments and the files of a process that holds secrets.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRows } from './rows-start.ts';
import { type StartScene, createStartScene } from './start-driver.ts';
import { everyNth } from '../../support/run-size.ts';

let scene: StartScene;
beforeAll(async () => {
  scene = await createStartScene();
}, 60_000);
afterAll(() => scene[Symbol.asyncDispose]());

everyNth(3, startRows, (some, options) =>
  it.each(some)('$id', { ...options, timeout: 60_000 }, async ({ script, expect: expected }) => {
    expect(await scene.play(script, expected)).toEqual([]);
  }),
);
