import { expect, it } from 'vitest';
import { PolicyRefresh } from '../../../../src/platform/runner/deployments/policy-refresh.ts';

/** What runs, and the rules as they are now and as they are in effect. */
function createScene() {
  const scene = {
    ...{ isRunning: true, now: 1, read: 1, inEffect: 1 },
    failures: [] as Error[],
    said: [] as string[],
    onRead: async (): Promise<void> => undefined,
  };
  const fail = (): void => {
    const failure = scene.failures.shift();
    if (failure !== undefined) throw failure;
  };
  const refresh = new PolicyRefresh({
    isRunning: () => scene.isRunning,
    async read() {
      await scene.onRead();
      const isChanged = scene.read !== scene.now;
      scene.read = scene.now;
      return isChanged;
    },
    async apply() {
      fail();
      scene.inEffect = scene.read;
    },
    onApplied: () => void scene.said.push('applied'),
    onFailed: (message) => void scene.said.push(message),
  });
  return { scene, refresh };
}

const settled = () => new Promise(setImmediate);

it('rules that did not change are not applied', async () => {
  const { scene, refresh } = createScene();
  await refresh.request();
  refresh.look();
  expect(scene.said).toEqual([]);
});

it('rules that could not be applied are applied later, although they have not changed again', async () => {
  const { scene, refresh } = createScene();
  scene.now = 2;
  scene.failures.push(new Error('away'), new Error('still away'));
  await refresh.request();
  expect([scene.inEffect, scene.said]).toEqual([1, ['away']]);
  refresh.look();
  await settled();
  // It is said once.
  expect([scene.inEffect, scene.said]).toEqual([1, ['away']]);
  refresh.look();
  await settled();
  expect([scene.inEffect, scene.said]).toEqual([2, ['away', 'applied']]);
});

it('rules that could not be read are read again', async () => {
  const { scene, refresh } = createScene();
  scene.now = 2;
  scene.onRead = () => Promise.reject(new Error('the database is away'));
  await refresh.request();
  scene.onRead = async () => undefined;
  refresh.look();
  await settled();
  expect([scene.inEffect, scene.said]).toEqual([2, ['the database is away', 'applied']]);
});

it('a change while nothing runs is applied when something does', async () => {
  const { scene, refresh } = createScene();
  Object.assign(scene, { isRunning: false, now: 2 });
  await refresh.request();
  expect(scene.inEffect).toBe(1);
  scene.isRunning = true;
  refresh.look();
  await settled();
  expect(scene.inEffect).toBe(2);
});

it('a change while another one is read is not lost', async () => {
  const { scene, refresh } = createScene();
  const reading = Promise.withResolvers<void>();
  scene.now = 2;
  scene.onRead = () => reading.promise;
  const first = refresh.request();
  await refresh.request();
  scene.now = 3;
  reading.resolve();
  await first;
  expect(scene.inEffect).toBe(3);
});

it('rules are applied again where something runs that may have older ones', async () => {
  const { scene, refresh } = createScene();
  scene.inEffect = 0;
  await refresh.requestAgain();
  expect([scene.inEffect, scene.said]).toEqual([1, []]);
});
