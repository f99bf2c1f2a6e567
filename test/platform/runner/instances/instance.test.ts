// One place of a revision, with agent servers that end and respond as a test says.
import { expect, it } from 'vitest';
import { Instance, type InstanceOptions } from '../../../../src/platform/runner/instances/instance.ts';
import { createFakeAgent, type FakeAgent } from '../../../support/fake-agent.ts';

function open(options: Partial<InstanceOptions> = {}) {
  const fakes: FakeAgent[] = [];
  const restarts: string[] = [];
  const changes: boolean[] = [];
  const instance: Instance = new Instance({
    async start() {
      const fake = createFakeAgent();
      fakes.push(fake);
      return fake;
    },
    onChange: () => changes.push(instance.ready !== undefined),
    onRestart: (reason, pauseMs) => restarts.push(`${reason}, ${pauseMs}`),
    healthMs: 1,
    ...options,
  });
  return { instance, fakes, restarts, changes };
}

it('one that ends is started again', async () => {
  const { instance, fakes, restarts, changes } = open();
  expect(await instance.first).toBeUndefined();
  fakes[0]?.end('it used more memory than 100 MiB');
  await expect.poll(() => changes, { timeout: 10_000 }).toEqual([true, false, true]);
  expect(restarts).toEqual(['it used more memory than 100 MiB, 1000']);
  expect(instance.ready).toBe(fakes[1]);
  await instance.close(5);
  expect(fakes[1]?.stops).toEqual([5]);
});

it('one that does not respond is ended, after no more requests go to it', async () => {
  const { instance, fakes, restarts } = open();
  await instance.first;
  const [fake] = fakes;
  if (fake === undefined) throw new Error('none was started');
  fake.isHealthy = false;
  await expect.poll(() => restarts).toEqual(['it did not respond to three health checks, 1000']);
  expect(instance.ready).toBeUndefined();
  expect(fake.stops).toEqual([0]);
  await instance.close(0);
  expect(fakes).toHaveLength(1);
});

it('says why the first start failed', async () => {
  const start = async (): Promise<never> => {
    throw new Error('no such graph');
  };
  const { instance, restarts } = open({ start });
  expect(await instance.first).toBe('no such graph');
  expect(restarts).toEqual(['no such graph, 1000']);
  await instance.close(0);
});

it('a start that is under way ends with the place', async () => {
  const start = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const { instance, restarts } = open({ start });
  await instance.close(0);
  expect(await instance.first).toBe('it is not wanted any more');
  expect(restarts).toEqual([]);
});

it('one that is ready at the moment at which the place is given up is ended', async () => {
  const starting = Promise.withResolvers<FakeAgent>();
  const { instance } = open({ start: () => starting.promise });
  const closed = instance.close(0);
  const fake = createFakeAgent();
  starting.resolve(fake);
  await closed;
  expect(fake.stops).toEqual([0]);
});

it('one that is taken goes on, and nothing follows it', async () => {
  const { instance, fakes, restarts } = open();
  await instance.first;
  const taken = await instance.take();
  expect(taken).toBe(fakes[0]);
  expect(fakes[0]?.stops).toEqual([]);
  fakes[0]?.end('it was stopped');
  expect(restarts).toEqual([]);
  expect(fakes).toHaveLength(1);
});
