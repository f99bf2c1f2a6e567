// Workers as processes: runs and calls, ends of every kind, and what a worker can do to its server.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WorkerError } from '../../../../src/platform/agent-server/workers/worker-error.ts';
import {
  collect,
  startTestWorkers,
  type TestWorkers,
  testRun,
} from '../../../support/agent-worker/test-workers.ts';

/** Whether a process lives: one that has ended may wait for its parent. */
function lives(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

async function resultOf(workers: TestWorkers, action: string): Promise<unknown> {
  const { values } = await workers.run(...testRun(action));
  return JSON.parse(values);
}

/** Of the tests that need no limits of their own: what ends is replaced. */
let workers: TestWorkers;
beforeAll(async () => {
  process.env['SALLYPORT_TEST_SECRET'] = 'sk-secret';
  workers = await startTestWorkers({ cancelMs: 50, heapMegabytes: 40 }, { env: { OWN: 'value' } });
});
afterAll(async () => {
  delete process.env['SALLYPORT_TEST_SECRET'];
  await workers?.close();
});

describe('a run', () => {
  it('hands on its events in order, one batch at a time, and then ends', async () => {
    const { events, onEvents } = collect();
    const end = await workers.run(...testRun('count', { onEvents, metadata: { to: 20_000 } }));
    expect(end).toEqual({ status: 'success', values: 'null', interrupts: '{}' });
    expect(events.map(({ data }) => Number(data))).toEqual(Array.from({ length: 20_000 }, (_, i) => i));
  });

  it('asks for checkpoints through the port of its call', async () => {
    const asked: unknown[] = [];
    const checkpoints = {
      async handle(...call: readonly unknown[]): Promise<never> {
        asked.push(call);
        return null as never;
      },
    };
    expect((await workers.run(...testRun('put', { checkpoints }))).values).toBe('null');
    expect(asked).toEqual([['checkpoint.get', { thread_id: 't', checkpoint_ns: '' }]]);
  });

  it('that asks for more than may wait is read again when some of it is done', { tags: 'long' }, async () => {
    await using own = await startTestWorkers({ askedBytes: 100_000 });
    let running = 0;
    let most = 0;
    let count = 0;
    const checkpoints = {
      async handle(): Promise<never> {
        running += 1;
        count += 1;
        most = Math.max(most, running);
        for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
        running -= 1;
        return null as never;
      },
    };
    await own.run(...testRun('puts', { checkpoints }));
    expect(count).toBe(20);
    expect(most).toBeLessThan(5);
  });

  it('that throws has the error of the graph', async () => {
    const error = await workers.run(...testRun('throws')).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: 'thrown', thrown: { error: 'RangeError', message: 'Boo!' } });
  });

  it('waits for who reads: a graph emits no more than a window', async () => {
    const controller = new AbortController();
    const reading = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    let events = 0;
    const run = workers.run(
      ...testRun('emit', {
        cancel: controller.signal,
        async onEvents(batch) {
          events += batch.length;
          first.resolve();
          await reading.promise;
        },
      }),
    );
    await first.promise;
    // It has emitted what it may when another call of the worker is done and nothing more has come.
    for (let i = 0; i < 3; i += 1) await workers.call('graph.schemas', { graph_id: 'a' });
    controller.abort('interrupt');
    reading.resolve();
    await expect(run).rejects.toMatchObject({ kind: 'cancelled', reason: 'interrupt' });
    expect(events).toBeLessThan(120);
    expect(await workers.logged(/emitted \d+/)).toMatch(/emitted \d{1,2}$/);
  });

  it('is cancelled with its reason, also when the graph does not listen', async () => {
    for (const action of ['wait', 'ignore']) {
      const controller = new AbortController();
      const run = workers.run(...testRun(action, { cancel: controller.signal }));
      await workers.call('graph.schemas', { graph_id: 'a' });
      controller.abort('rollback');
      await expect(run).rejects.toMatchObject({ kind: 'cancelled', reason: 'rollback' });
    }
  });

  it('is cancelled when its events cannot be handed on, with that error', async () => {
    const onEvents = async (): Promise<void> => {
      throw new Error('no place');
    };
    await expect(workers.run(...testRun('emit', { onEvents }))).rejects.toThrow('no place');
    await workers.logged(/emitted/);
  });
});

describe('a worker', () => {
  it('has the variables of the deployment and none of the server', async () => {
    const { PATH, HOME } = process.env;
    expect(await resultOf(workers, 'environment')).toEqual({ PATH, HOME, OWN: 'value' });
    expect(JSON.stringify(await resultOf(workers, 'facts'))).not.toContain('sk-secret');
  });

  it('that ends fails its calls as lost, and is replaced', async () => {
    const waiting = workers.run(...testRun('ignore'));
    const exit = workers.run(...testRun('exit'));
    const errors = await Promise.allSettled([waiting, exit]);
    const reason = { kind: 'lost', why: 'ended by itself with exit code 3' };
    expect(errors).toMatchObject([{ reason }, { reason }]);
    expect(await resultOf(workers, 'facts')).toMatchObject({ pid: expect.any(Number) });
  });

  it('that is killed ends with what it has started', async () => {
    const child = Number(await resultOf(workers, 'child'));
    const { pid } = (await resultOf(workers, 'facts')) as { readonly pid: number };
    expect(lives(child)).toBe(true);
    const run = workers.run(...testRun('ignore'));
    process.kill(pid, 'SIGKILL');
    await expect(run).rejects.toMatchObject({ kind: 'lost', why: expect.stringContaining('SIGKILL') });
    while (lives(child)) await new Promise(setImmediate);
  });

  it('that runs out of its heap ends alone', { tags: 'long' }, async () => {
    const why = 'reached its memory limit of 40 MiB';
    await expect(workers.run(...testRun('allocate'))).rejects.toMatchObject({ kind: 'lost', why });
    expect(await resultOf(workers, 'facts')).toBeDefined();
  });

  it.each(['garbage', 'unknownMessage'])('that breaks the protocol is ended: %s', async (action) => {
    const other = workers.run(...testRun('wait'));
    const errors = await Promise.allSettled([other, workers.run(...testRun(action))]);
    const reason = { kind: 'protocol', why: expect.stringContaining('broke the protocol: ') };
    expect(errors).toMatchObject([{ reason }, { reason }]);
    expect(await resultOf(workers, 'facts')).toBeDefined();
  });

  it('that does not respond gets no new work, and is ended', { tags: 'long' }, async () => {
    await using own = await startTestWorkers({ pingMs: 20, blockedMs: 100, killMs: 1500 });
    const started = Promise.withResolvers<void>();
    const run = own.run(...testRun('loop', { onEvents: async () => started.resolve() }));
    await started.promise;
    let isRunning = true;
    void run.catch(() => (isRunning = false));
    // One that has not begun is given back; the other may go on.
    await expect(own.run(...testRun('count'))).rejects.toMatchObject({ kind: 'blocked' });
    expect(isRunning).toBe(true);
    // Asked again of another one, while the first loops.
    const { pid } = JSON.parse(await own.call('graph.schemas', { graph_id: 'a' }));
    expect(lives(pid)).toBe(true);
    const why = 'did not respond for 1.5 seconds';
    await expect(run).rejects.toMatchObject({ kind: 'blocked', isRetryable: true, why });
    expect(JSON.parse(await own.call('graph.schemas', { graph_id: 'a' }))).toMatchObject({ pid });
  });

  it('that a graph holds up from its start goes on with its run until it is ended', async () => {
    await using own = await startTestWorkers({ pingMs: 20, blockedMs: 60, killMs: 200 });
    const why = 'did not respond for 0.2 seconds';
    await expect(own.run(...testRun('loopAtOnce'))).rejects.toMatchObject({ kind: 'blocked', why });
  });

  it('that floods its output is slowed down, and lines are counted', { tags: 'long' }, async () => {
    await workers.run(...testRun('flood'));
    await workers.logged(/lines of a worker were dropped/);
    expect(workers.lines.filter((line) => line.includes('"source":"stdout"')).length).toBeLessThan(1000);
  });
});

describe('a run that is executed alone', () => {
  const alone = (action: string, given: Parameters<typeof testRun>[1] = {}) =>
    testRun(action, { ...given, isAlone: true });

  it('ends with nobody but itself, and its worker with it', async () => {
    const controller = new AbortController();
    const other = workers.run(...testRun('wait', { cancel: controller.signal }));
    await expect(workers.run(...alone('exit'))).rejects.toMatchObject({ kind: 'lost' });
    const { pid } = JSON.parse((await workers.run(...alone('facts'))).values);
    expect(await resultOf(workers, 'facts')).not.toMatchObject({ pid });
    while (lives(pid)) await new Promise(setImmediate);
    controller.abort('interrupt');
    await expect(other).rejects.toMatchObject({ kind: 'cancelled', reason: 'interrupt' });
  });

  it('is cancelled while its worker starts', async () => {
    const run = workers.run(...alone('wait', { cancel: AbortSignal.abort('rollback') }));
    await expect(run).rejects.toMatchObject({ kind: 'cancelled', reason: 'rollback' });
  });
});

describe('a call', () => {
  it('of a worker that ends is made once more, and no more', { tags: 'long' }, async () => {
    await expect(workers.call('graph.schemas', { graph_id: 'exit' })).rejects.toMatchObject({ kind: 'lost' });
    await workers.logged(/exit code 1"/);
    await workers.logged(/exit code 1"/);
  });

  it('that was left ends at once', async () => {
    const controller = new AbortController();
    const call = workers.call('graph.schemas', { graph_id: 'a' }, { signal: controller.signal });
    controller.abort();
    await expect(call).rejects.toMatchObject({ kind: 'cancelled', reason: 'lost' });
  });

  it('that was left and never ends is given up, and a worker with many of them is replaced', {
    tags: 'long',
  }, async () => {
    await using own = await startTestWorkers({ cancelMs: 1, abandonedCalls: 2 });
    const controller = new AbortController();
    const run = own.run(...testRun('wait', { cancel: controller.signal }));
    run.catch(() => undefined);
    const pidOf = async (): Promise<number> =>
      JSON.parse(await own.call('graph.schemas', { graph_id: 'a' })).pid;
    const first = await pidOf();
    for (let n = 0; n < 3; n += 1) {
      const call = own.call('graph.schemas', { graph_id: 'hang' }, { signal: AbortSignal.timeout(1) });
      await expect(call).rejects.toMatchObject({ kind: 'cancelled' });
    }
    while ((await pidOf()) === first);
    // What runs in it is not disturbed.
    expect(lives(first)).toBe(true);
    controller.abort('interrupt');
    await expect(run).rejects.toMatchObject({ kind: 'cancelled', reason: 'interrupt' });
    await own.logged(/a worker has ended/);
    expect(own.lines.join('')).toMatch(/\d cancelled calls have not ended/);
  });

  it('of a method that the worker does not have is refused', async () => {
    const call = workers.call('graph.drawing', { graph_id: 'a', config: {}, xray: false });
    await expect(call).rejects.toMatchObject({ kind: 'refused', code: 'unsupported' });
  });

  it('after the end fails', async () => {
    const closed = await startTestWorkers();
    await closed.close();
    const call = closed.call('graph.schemas', { graph_id: 'a' });
    await expect(call).rejects.toBeInstanceOf(WorkerError);
  });
});

describe('a deployment that cannot be loaded', { tags: 'long' }, () => {
  it.each([
    ['broken', { failure: { key: 'graphs.broken', message: 'cannot be loaded' } }],
    ['ends', { message: expect.stringContaining('a worker has not started') }],
  ])('%s', async (graph, error) => {
    const graphs = { [graph]: { file: '/x', name: 'x', source: './x.ts:x' } };
    const start = startTestWorkers({}, { load: { root: '/', graphs } });
    await expect(start).rejects.toMatchObject({ name: 'WorkerStartError', ...error });
  });
});

it('handlers have a worker of their own, which no graph keeps busy', { tags: 'long' }, async () => {
  const auth = { file: '/x', name: 'x', source: './x.ts:x' };
  await using own = await startTestWorkers({}, { load: { root: '/', graphs: {}, auth } });
  const identify = async (): Promise<number> => {
    const request = { method: 'GET', url: 'http://x/', headers: {} };
    return Number((await own.call('auth.authenticate', request)).identity);
  };
  const pid = await identify();
  expect(await resultOf(own, 'facts')).not.toMatchObject({ pid });
  const looping = Promise.withResolvers<void>();
  const run = own.run(...testRun('loop', { onEvents: async () => looping.resolve() }));
  run.catch(() => undefined);
  await looping.promise;
  expect(await identify()).toBe(pid);
});

it('more workers are started when those that there are have work', { tags: 'long' }, async () => {
  await using own = await startTestWorkers({ workers: 2 });
  const controller = new AbortController();
  const pids = new Set<number>();
  const runs = [own.run(...testRun('wait', { cancel: controller.signal }))];
  while (pids.size < 2) {
    runs.push(own.run(...testRun('wait', { cancel: controller.signal })));
    pids.add(JSON.parse(await own.call('graph.schemas', { graph_id: 'a' })).pid);
  }
  controller.abort('timeout');
  for (const run of await Promise.allSettled(runs))
    expect(run).toMatchObject({ reason: { reason: 'timeout' } });
});
