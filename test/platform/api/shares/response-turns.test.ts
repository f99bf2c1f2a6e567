// Whose response is built next, on a clock of the test.
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RecentOrganizations } from '../../../../src/platform/api/shares/recent-organizations.ts';
import { ResponseTurns, YOUNG_MS } from '../../../../src/platform/api/shares/response-turns.ts';
import type { Steps } from '../../../../src/base/steps.ts';
import { createFakeClock } from './fake-clock.ts';

function open(...active: readonly string[]) {
  const clock = createFakeClock();
  const recent = new RecentOrganizations({ windowMs: 1000, now: clock.now });
  for (const organization of active) recent.note(organization);
  const responses = new ResponseTurns(clock, recent);
  const taken: string[] = [];
  /** A response of so many steps; the last one ends it. */
  const build = (organization: string, count: number): Promise<string> => {
    function* steps(): Steps<string> {
      for (let left = count; left > 1; left -= 1) {
        taken.push(organization);
        yield;
      }
      taken.push(organization);
      return organization;
    }
    return responses.build(organization, steps());
  };
  return { clock, responses, taken, build };
}

describe('a large response', () => {
  it('is built at once where nobody else asks', async () => {
    const { taken, build } = open('a');
    const built = build('a', 5);
    expect(taken).toHaveLength(5);
    expect(await built).toBe('a');
  });

  it('is built in slices where others ask, one in a turn of the event loop', async () => {
    const { taken, build } = open('b', 'a');
    const built = [build('a', 3), build('a', 3)];
    for (let turns = 0; turns <= 6; turns += 1) {
      expect(taken).toHaveLength(turns);
      await turn();
    }
    expect(await Promise.all(built)).toEqual(['a', 'a']);
  });

  it('takes turns with those of other organizations, however many each has', async () => {
    const { taken, build } = open('b', 'a');
    await Promise.all([build('a', 3), build('a', 3), build('b', 3)]);
    expect(taken.join('')).toBe('abababaaa');
  });

  it('whose step throws rejects, and those behind it go on', async () => {
    const { responses, build } = open('b', 'a');
    function* failing(): Steps<string> {
      yield;
      throw new Error('a bug');
    }
    const failed = responses.build('a', failing());
    const built = build('a', 2);
    await expect(failed).rejects.toThrow('a bug');
    expect(await built).toBe('a');
  });
});

describe('a slice of a large response', () => {
  it('waits for a request of another organization that has just begun', async () => {
    const { responses, taken, build } = open('b', 'a');
    const asked = Promise.withResolvers<void>();
    const request = responses.during('b', () => asked.promise);
    const built = build('a', 2);
    for (let turns = 0; turns < 5; turns += 1) await turn();
    expect(taken).toEqual([]);
    asked.resolve();
    await request;
    expect(await built).toBe('a');
  });

  it('waits no longer than a short time, also where requests begin all the time', async () => {
    const { clock, responses, taken, build } = open('b', 'a');
    const asked = Promise.withResolvers<void>();
    const requests = [responses.during('b', () => asked.promise)];
    const built = build('a', 1);
    await turn();
    for (let passed = 0; passed < YOUNG_MS; passed += YOUNG_MS / 4) {
      expect(taken).toEqual([]);
      requests.push(responses.during('b', () => asked.promise));
      await responses.during('c', async () => undefined);
      await clock.advance(YOUNG_MS / 4);
    }
    expect(await built).toBe('a');
    asked.resolve();
    await Promise.all(requests);
  });

  it('waits for no request that takes long, and for none of its own organization', async () => {
    const { clock, responses, build } = open('b', 'a');
    const asked = Promise.withResolvers<void>();
    const requests = [responses.during('b', () => asked.promise)];
    await clock.advance(YOUNG_MS);
    requests.push(responses.during('a', () => asked.promise));
    expect(await build('a', 2)).toBe('a');
    asked.resolve();
    await Promise.all(requests);
  });

  it('waits for no request that failed', async () => {
    const { responses, build } = open('b', 'a');
    const failed = responses.during('b', () => Promise.reject(new Error('failed')));
    await expect(failed).rejects.toThrow('failed');
    expect(await build('a', 2)).toBe('a');
  });
});
