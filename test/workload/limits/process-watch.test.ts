import { describe, expect, it, onTestFinished } from 'vitest';
import { type ProcessWatched, ProcessWatch } from '../../../src/workload/limits/process-watch.ts';

const MIB = 1024 * 1024;

/** This process as a workload. */
async function check(given: Partial<ProcessWatched>): Promise<readonly string[]> {
  const watch = new ProcessWatch();
  const reasons: string[] = [];
  const stop = watch.add({
    unheld: {},
    processes: () => [process.pid],
    events: async () => ({ oomKills: undefined, refusedForks: undefined }),
    exceed: (reason) => reasons.push(reason),
    ...given,
  });
  onTestFinished(stop);
  await watch.check();
  return reasons;
}

describe('a workload is ended', () => {
  it('by its memory', async () => expect(await check({ unheld: { memBytes: MIB } })).toEqual(['memory']));
  it('by the number of its processes', async () => {
    const processes = () => [process.pid, process.ppid];
    expect(await check({ unheld: { pids: 1 }, processes })).toEqual(['processes']);
  });
  it('by attempts to start more', async () => {
    const events = async () => ({ oomKills: 0, refusedForks: 1_000 });
    expect(await check({ events })).toEqual(['processes']);
  });
});

describe('a workload goes on', () => {
  it('within its limits', async () =>
    expect(await check({ unheld: { memBytes: 1024 ** 4, pids: 1 } })).toEqual([]));
  it('when it was denied a few processes', async () => {
    const events = async () => ({ oomKills: 3, refusedForks: 5 });
    expect(await check({ events })).toEqual([]);
  });
  it('when it was denied many over a long time', async () => {
    const watch = new ProcessWatch();
    const reasons: string[] = [];
    let refusedForks = 0;
    const events = async () => ({ oomKills: 0, refusedForks });
    onTestFinished(
      watch.add({ unheld: {}, processes: () => [], events, exceed: (reason) => reasons.push(reason) }),
    );
    const begin = performance.now();
    for (let hour = 1; hour <= 10; hour += 1) {
      refusedForks += 100;
      await watch.check(begin + hour * 3_600_000);
    }
    expect(reasons).toEqual([]);
  });
  it('without its own limits', async () => expect(await check({})).toEqual([]));
});
