import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import {
  isSigned,
  newestKey,
  replaceSigningKeys,
  signedAddress,
  signingKeys,
} from '../../../../src/platform/traces/artifacts/signed-address.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/platform-database.ts';
import { createTestWiring } from '../../../support/test-wiring.ts';

const key = randomBytes(32);
const other = randomBytes(32);
const now = Date.parse('2026-11-20T12:00:00.500Z');
const address = signedAddress(key, '2026112012/a b&c=\n', now);
const search = (): URLSearchParams => new URL(address, 'http://a.invalid').searchParams;
const HOUR = 3_600_000;

describe('a signed address', () => {
  it('is a path below the prefix that clients take off their endpoint', () => {
    expect(address).toMatch(
      /^\/api\/v1\/attachments\?object=2026112012%2Fa\+b%26c%3D%0A&expires=\d+&signature=[\w-]{43}$/,
    );
  });

  it('is accepted by every process with the key, until it expires', () => {
    expect(isSigned([key], search(), now)).toBe(true);
    expect(isSigned([other, key], search(), now + HOUR - 1_000)).toBe(true);
    expect(isSigned([key], search(), now + HOUR)).toBe(false);
    expect(isSigned([other], search(), now)).toBe(false);
    expect(isSigned([], search(), now)).toBe(false);
  });

  it('is refused with any part changed, absent, or moved into another one', () => {
    for (const [name, value] of [
      ['object', '2026112012/other'],
      ['object', ''],
      ['expires', String(Math.floor((now + 2 * HOUR) / 1000))],
      ['expires', '9e9'],
      ['expires', ''],
      ['signature', ''],
      ['signature', search().get('signature')?.slice(0, -2) ?? ''],
      ['signature', `A${search().get('signature')?.slice(1)}`],
    ] as const) {
      const changed = search();
      if (changed.get(name) === value) changed.set(name, `B${value.slice(1)}`);
      else changed.set(name, value);
      expect([name, value, isSigned([key], changed, now)]).toEqual([name, value, false]);
      changed.delete(name);
      expect(isSigned([key], changed, now)).toBe(false);
    }
    const [expires, object] = [search().get('expires'), search().get('object')];
    const moved = new URLSearchParams({
      ...Object.fromEntries(search()),
      expires: `${expires}\n${object}`,
      object: '',
    });
    expect(isSigned([key], moved, now)).toBe(false);
  });
});

describe('the keys of addresses', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('are one at first, and the one before the newest is accepted until its addresses have expired', async () => {
    const { db } = database.store;
    const [first, ...none] = await signingKeys(db);
    expect([first?.length, none.length]).toEqual([32, 0]);
    const replace = (): Promise<void> =>
      replaceSigningKeys.run(
        {},
        {
          ...{ id: '1', store: database.store, log: createLog('info', { write: () => undefined }) },
          ...{ signal: new AbortController().signal, send: createTestWiring().send },
        },
      );
    await replace();
    const [second, ...rest] = await signingKeys(db);
    expect(rest).toEqual([first]);
    expect(await newestKey(db)).toEqual(second);
    const age = (one: Buffer | undefined, hours: number) =>
      database.owner.db
        .updateTable('trace_signing_keys')
        .set({ created_at: new Date(Date.now() - hours * HOUR) } as never)
        .where('key', '=', one ?? key)
        .execute();
    // The job did not run for days, and the first key has signed addresses until a moment ago.
    await age(first, 72);
    await replace();
    expect((await signingKeys(db)).slice(1)).toEqual([second, first]);
    await age(second, 3);
    await replace();
    expect(await signingKeys(db)).toEqual([expect.any(Buffer), expect.any(Buffer), second]);
  });
});
