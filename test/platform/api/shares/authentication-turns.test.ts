// Who sends much, with right keys or wrong ones, delays the lookup of another address by one turn and no more.
import { describe, expect, it } from 'vitest';
import { createAuthenticationTurns } from '../../../../src/platform/api/shares/authentication-turns.ts';
import { mintKey } from '../../../../src/platform/identity/api-key.ts';
import { sql } from '../../../../src/platform/store/sql.ts';
import { createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createFakeClock, settle } from './fake-clock.ts';

type Lookup = { readonly peer: string; end(): void };

/** Turns at one connection, and what holds it: the latest is the one that runs. */
function createScene(failing: readonly string[] = []) {
  const clock = createFakeClock();
  const begun: Lookup[] = [];
  const takeTurn = createAuthenticationTurns({
    places: 1,
    hasFailedOften: (peer) => failing.includes(peer),
    clock,
  });
  const ask = (peer: string): Promise<string> =>
    takeTurn(peer, () => new Promise((resolve) => begun.push({ peer, end: () => resolve(peer) })));
  return {
    clock,
    ask,
    /** Ends the lookups that began, one after the other; returns whose they were. */
    async endAll(): Promise<readonly string[]> {
      await settle();
      for (let at = 0; at < begun.length; at += 1) {
        begun[at]?.end();
        await settle();
      }
      return begun.map(({ peer }) => peer);
    },
  };
}

describe('the turns', () => {
  it('of an address come after one of each other address', async () => {
    const { ask, endAll } = createScene();
    const all = ['a', 'a', 'a', 'a', 'b', 'c'].map(ask);
    expect(await endAll()).toEqual(['a', 'b', 'c', 'a', 'a', 'a']);
    await Promise.all(all);
  });

  it('of all addresses with too many wrong keys are those of one', async () => {
    const { ask, endAll } = createScene(['x', 'y', 'z']);
    const all = ['x', 'y', 'z', 'x', 'a', 'a'].map(ask);
    expect(await endAll()).toEqual(['x', 'a', 'y', 'a', 'z', 'x']);
    await Promise.all(all);
  });

  it('of addresses of one IPv6 network are those of one', async () => {
    const { ask, endAll } = createScene();
    const all = ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1'].map(ask);
    expect(await endAll()).toEqual(['2001:db8::1', '2001:db8:0:1::1', '2001:db8::2']);
    await Promise.all(all);
  });

  it('that do not come in time are an error of the platform, not of the client', async () => {
    const { ask, clock, endAll } = createScene();
    const first = ask('a');
    const second = ask('b').catch((error: unknown) => error);
    await clock.advance(3_000);
    expect(await second).toMatchObject({ kind: 'unavailable' });
    await endAll();
    expect(await first).toBe('a');
  });
});

async function countWaiting({ database }: PlatformApi): Promise<number> {
  const { rows } = await sql<{ readonly count: number }>`select count(*)::int from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(database.owner.db);
  return rows[0]?.count ?? 0;
}

describe('the API', () => {
  it('looks up a right key next, however many wrong ones its connections are busy with', async () => {
    await using api = await createPlatformApi();
    const key = await api.addServiceKey(await api.addOrganization(), 'ORGANIZATION_ADMIN');
    const ask = (text: string, peer: string): Promise<number> =>
      api.ask('GET', '/api/v1/orgs/current', { key: text, peer }).then(({ status }) => status);
    const done: string[] = [];
    let wrong: readonly Promise<number>[] = [];
    let right: Promise<unknown> = Promise.resolve();
    await api.database.owner.write(async (trx) => {
      // Every lookup waits, so that all requests are there before the first ends.
      await sql`lock table api_keys in access exclusive mode`.execute(trx);
      wrong = Array.from({ length: 200 }, () => ask(mintKey('service').text, '192.0.2.66'));
      for (const one of wrong) void one.then(() => done.push('wrong'));
      right = ask(key, '192.0.2.1').then((status) => done.push(`right ${status}`));
      for (let waiting = 0; waiting < api.database.store.size; ) waiting = await countWaiting(api);
    });
    await right;
    expect(done.at(-1)).toBe('right 200');
    // First come, first served would be all of them.
    expect(done.length).toBeLessThan(wrong.length / 2);
    expect(new Set(await Promise.all(wrong))).toEqual(new Set([401, 429]));
  });
});
