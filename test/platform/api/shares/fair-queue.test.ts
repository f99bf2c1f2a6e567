// Who gets the next place, on a clock of the test.
import { describe, expect, it } from 'vitest';
import { FairQueue, type Leave, type QueueLimits } from '../../../../src/platform/api/shares/fair-queue.ts';
import { RecentOrganizations } from '../../../../src/platform/api/shares/recent-organizations.ts';
import { createFakeClock, type FakeClock, settle } from './fake-clock.ts';

const LIMITS: QueueLimits = { places: 8, perOrganization: 6, perKey: 5, waitMs: 2_000, maxWaiting: 256 };
const WINDOW_MS = 1_000;

type Scene = {
  readonly clock: FakeClock;
  /** The names of what runs. */
  readonly running: Map<string, Leave>;
  readonly rejected: Map<string, number>;
  /** Asks for `count` places, as `a/1`: an organization and a key. */
  ask(name: string, count?: number, weight?: number): Promise<void>;
  /** Ends the oldest that runs of the organization or key. */
  end(name: string): Promise<void>;
  /** How many run. */
  count(prefix: string): number;
};

/** `contended` is the share of an organization while others are active. */
function open({ contended, ...limits }: Partial<QueueLimits> & { contended?: number } = {}): Scene {
  const clock = createFakeClock();
  const recent = new RecentOrganizations({ windowMs: WINDOW_MS, now: clock.now });
  const contention = contended === undefined ? undefined : { perOrganization: contended, recent };
  const queue = new FairQueue({ ...LIMITS, contention, ...limits }, clock, 'too many');
  const running = new Map<string, Leave>();
  const rejected = new Map<string, number>();
  let asked = 0;
  const namesOf = (prefix: string): string[] => [...running.keys()].filter((name) => name.startsWith(prefix));
  return {
    ...{ clock, running, rejected },
    async ask(name, count = 1, weight = 1) {
      const [organization = '', key = '1'] = name.split('/');
      for (let at = 0; at < count; at += 1) {
        const request = `${organization}/${key} ${(asked += 1)}`;
        queue.enter({ organization, key }, weight).then(
          (leave) => void running.set(request, leave),
          ({ retryMs }) => void rejected.set(request, retryMs),
        );
      }
      await settle();
    },
    async end(name) {
      const [first = ''] = namesOf(name);
      const leave = running.get(first);
      running.delete(first);
      leave?.();
      await settle();
    },
    count: (prefix) => namesOf(prefix).length,
  };
}

describe('places', () => {
  it('of one key, and of one organization, have a limit although others are free', async () => {
    const scene = open();
    await scene.ask('a/1', 40);
    expect(scene.count('a/1')).toBe(5);
    await scene.ask('a/2', 40);
    expect([scene.count('a/1'), scene.count('a/2')]).toEqual([5, 1]);
  });

  it('are found at once by another organization while one waits for more', async () => {
    const scene = open();
    await scene.ask('a', 40);
    await scene.ask('b');
    expect(scene.count('b')).toBe(1);
    await scene.end('b');
    await scene.ask('b');
    expect(scene.count('b')).toBe(1);
  });

  it('go to who holds the fewest', async () => {
    const scene = open();
    await scene.ask('a', 40);
    await scene.ask('b', 40);
    expect([scene.count('a'), scene.count('b')]).toEqual([5, 3]);
    await scene.end('a');
    expect([scene.count('a'), scene.count('b')]).toEqual([4, 4]);
    for (let at = 0; at < 20; at += 1) {
      await scene.end('a');
      await scene.end('b');
      expect([scene.count('a'), scene.count('b')]).toEqual([4, 4]);
    }
  });

  it('go round among equals, organizations and keys', async () => {
    const scene = open({ places: 1, perOrganization: 1, perKey: 1 });
    await scene.ask('a/1', 3);
    await scene.ask('a/2', 2);
    await scene.ask('b/1', 2);
    const order: string[] = [];
    for (let at = 0; at < 7; at += 1) {
      const [name = ''] = [...scene.running.keys()];
      order.push(name.slice(0, 3));
      await scene.end(name);
    }
    expect(order).toEqual(['a/1', 'b/1', 'a/2', 'b/1', 'a/1', 'a/2', 'a/1']);
  });

  it('reach who always waits, however many come who were never there before', async () => {
    const scene = open({ places: 1, perOrganization: 1, perKey: 1 });
    await scene.ask('first');
    await scene.ask('busy', 10);
    const order: string[] = [];
    for (let at = 0; at < 20; at += 1) {
      await scene.ask(`new${at}`, 1);
      await scene.ask(`newer${at}`, 1);
      const [name = ''] = [...scene.running.keys()];
      order.push(name.slice(0, 4));
      await scene.end(name);
    }
    expect(order.filter((name) => name === 'busy').length).toBeGreaterThan(1);
  });

  it('that were given back twice count once', async () => {
    const scene = open({ places: 1, perOrganization: 1, perKey: 1 });
    await scene.ask('a');
    const [leave] = scene.running.values();
    leave?.();
    leave?.();
    await scene.ask('b', 2);
    expect(scene.count('b')).toBe(1);
  });

  it('are as many as a request weighs, at most those of a key, and no smaller request overtakes for ever', async () => {
    const scene = open({ places: 10, perOrganization: 8, perKey: 8 });
    await scene.ask('a', 1, 100);
    expect(scene.count('a')).toBe(1);
    await scene.ask('b', 1, 8);
    await scene.ask('c', 1, 1);
    expect([scene.count('b'), scene.count('c')]).toEqual([0, 0]);
    await scene.end('a');
    expect([scene.count('b'), scene.count('c')]).toEqual([1, 1]);
  });

  it('of who gave up are not waited for: the smaller request behind is served', async () => {
    const scene = open({ places: 10, perOrganization: 8, perKey: 8 });
    await scene.ask('a', 1, 8);
    await scene.ask('b', 1, 8);
    await scene.clock.advance(1_000);
    await scene.ask('c', 1, 2);
    expect(scene.count('c')).toBe(0);
    await scene.clock.advance(1_000);
    expect([scene.rejected.size, scene.count('c')]).toEqual([1, 1]);
  });
});

describe('a request without a place', () => {
  it('is rejected after the wait, and says when those before it will have ended', async () => {
    const scene = open({ places: 4, perOrganization: 2, perKey: 2 });
    await scene.ask('a', 6);
    await scene.clock.advance(1_999);
    expect(scene.rejected.size).toBe(0);
    await scene.clock.advance(1);
    // Four waited, in two places that are held for two seconds at least: (4 + 1) * 2 / 2, then 4, 3 and 2 waiting.
    expect([...scene.rejected.values()]).toEqual([5_000, 4_000, 3_000, 2_000]);
    expect(scene.count('a')).toBe(2);
  });

  it('that comes back when it was asked to finds a place, when the others take as long as before', async () => {
    const scene = open({ places: 4, perOrganization: 1, perKey: 1 });
    // Each takes three seconds; a new one waits behind.
    await scene.ask('a');
    await scene.clock.advance(3_000);
    await scene.end('a');
    await scene.ask('a');
    await scene.clock.advance(500);
    await scene.ask('a');
    await scene.clock.advance(2_000);
    const [retryMs = 0] = scene.rejected.values();
    expect(retryMs).toBeGreaterThanOrEqual(500);
    await scene.clock.advance(500);
    await scene.end('a');
    await scene.clock.advance(retryMs - 500);
    await scene.ask('a');
    expect(scene.count('a')).toBe(1);
  });

  it('is rejected at once where too many of its organization wait, or none may wait; others are not', async () => {
    const scene = open({ places: 4, perOrganization: 2, perKey: 2, maxWaiting: 3 });
    await scene.ask('a', 6);
    expect([scene.count('a'), scene.rejected.size]).toEqual([2, 1]);
    await scene.ask('b');
    expect(scene.count('b')).toBe(1);
    const impatient = open({ perKey: 1, waitMs: 0 });
    await impatient.ask('a', 2);
    expect([impatient.count('a'), impatient.rejected.size]).toEqual([1, 1]);
  });
});

describe('the share of an organization', () => {
  it('is the full one while it asks alone, with several keys', async () => {
    const scene = open({ contended: 2 });
    await scene.ask('a/1', 40);
    await scene.ask('a/2', 40);
    await scene.clock.advance(WINDOW_MS / 2);
    expect(scene.count('a')).toBe(6);
    await scene.end('a');
    expect(scene.count('a')).toBe(6);
  });

  it('is smaller while another one is active: what runs goes on, and nothing starts above it', async () => {
    const scene = open({ contended: 2 });
    await scene.ask('a', 40);
    expect(scene.count('a')).toBe(5);
    await scene.ask('b');
    await scene.end('b');
    expect(scene.count('a')).toBe(5);
    for (const left of [4, 3, 2, 2, 2]) {
      await scene.end('a');
      expect(scene.count('a')).toBe(left);
    }
    await scene.ask('b', 40);
    expect([scene.count('a'), scene.count('b')]).toEqual([2, 2]);
  });

  it('is smaller for who comes second too, also where nothing waits', async () => {
    const scene = open({ contended: 2 });
    await scene.ask('a');
    await scene.ask('b', 3);
    expect([scene.count('a'), scene.count('b')]).toEqual([1, 2]);
  });

  it('is the full one again when the other was silent for the window: what waits starts then', async () => {
    const scene = open({ contended: 2, waitMs: 60_000 });
    await scene.ask('b');
    await scene.ask('a', 40);
    await scene.end('b');
    await scene.clock.advance(WINDOW_MS - 1);
    expect(scene.count('a')).toBe(2);
    await scene.clock.advance(1);
    expect(scene.count('a')).toBe(5);
  });

  it('stays small as long as the other asks now and then, however often the window begins again', async () => {
    const scene = open({ contended: 2, waitMs: 60_000 });
    await scene.ask('a', 2);
    for (let at = 0; at < 10; at += 1) {
      await scene.ask('b');
      await scene.end('b');
      await scene.ask('a');
      await scene.clock.advance(WINDOW_MS - 1);
      expect(scene.count('a')).toBe(2);
    }
    await scene.clock.advance(1);
    expect(scene.count('a')).toBe(5);
  });

  it('stays small while the other holds a place, however long it asks for nothing else', async () => {
    const scene = open({ contended: 2, waitMs: 60_000 });
    await scene.ask('b');
    await scene.ask('a', 40);
    await scene.clock.advance(10 * WINDOW_MS);
    expect(scene.count('a')).toBe(2);
    // Then it may be about to ask for the next one.
    await scene.end('b');
    expect(scene.count('a')).toBe(2);
    await scene.clock.advance(WINDOW_MS);
    expect(scene.count('a')).toBe(5);
  });

  it('says after how long a rejected request finds a place beside the others', async () => {
    const scene = open({ contended: 2 });
    await scene.ask('a', 5);
    await scene.ask('a');
    await scene.ask('b');
    await scene.clock.advance(2_000);
    // One waited, for two places that are held for two seconds at least: (1 + 1) * 2 / 2.
    expect([...scene.rejected.values()]).toEqual([2_000]);
  });

  it('holds a request that weighs more than it', async () => {
    const scene = open({ contended: 2 });
    await scene.ask('b');
    await scene.ask('a', 1, 100);
    expect(scene.count('a')).toBe(1);
  });
});
