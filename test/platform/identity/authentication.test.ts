import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import {
  type Authenticator,
  type Caller,
  type Credentials,
  createAuthenticator,
} from '../../../src/platform/identity/authentication.ts';
import { organizationRoles } from '../../../src/platform/identity/permission.ts';
import type { Database } from '../../../src/platform/store/database.ts';
import { sql } from '../../../src/platform/store/sql.ts';
import { createTestDatabase, type TestDatabase } from '../../support/platform-database.ts';
import {
  type InsertedKey,
  insertKey,
  insertMember,
  insertOrganization,
  insertWorkspace,
} from './test-rows.ts';

const START_MS = Date.parse('2026-11-22T00:00:00Z');
let database: TestDatabase;
let db: Database;
let organization: string;
let nowMs: number;
let elapsedMs: number;
let authenticator: Authenticator;
let errors: unknown[];

beforeAll(async () => {
  database = await createTestDatabase();
  db = database.store.db;
  organization = await insertOrganization(database.owner.db);
});
afterAll(async () => database[Symbol.asyncDispose]());
beforeEach(() => {
  nowMs = START_MS;
  errors = [];
  elapsedMs = 0;
  authenticator = createAuthenticator({
    now: () => nowMs,
    elapsed: () => elapsedMs,
    onError: (error) => void errors.push(error),
  });
});

function authenticate(given: Partial<Credentials>): Promise<Caller> {
  return authenticator.authenticate(db, {
    apiKey: undefined,
    bearer: undefined,
    peer: '192.0.2.1',
    ...given,
  });
}

function addKey(of: Parameters<typeof insertKey>[2] = { role: 'ORGANIZATION_USER' }): Promise<InsertedKey> {
  return insertKey(database.owner.db, organization, of);
}

async function refusalOf(given: Partial<Credentials>): Promise<unknown> {
  const error = await authenticate(given).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const { kind, message, retryMs } = error as { kind?: unknown; message?: unknown; retryMs?: unknown };
  return { kind, message, retryMs };
}

describe('a caller is recalled', () => {
  const recall = (given: Partial<Credentials>, workspaceId?: string): Caller | undefined =>
    authenticator.recall({ apiKey: undefined, bearer: undefined, peer: '192.0.2.1', ...given }, workspaceId);

  it('as it was found, for less than a second', async () => {
    const { text } = await addKey();
    expect(recall({ apiKey: text })).toBeUndefined();
    const caller = await authenticate({ apiKey: text });
    elapsedMs = 999;
    expect(recall({ bearer: text })).toEqual(caller);
    elapsedMs = 1000;
    expect(recall({ bearer: text })).toBeUndefined();
  });

  it('in the workspace that it was found with', async () => {
    const { text } = await addKey();
    await authenticate({ apiKey: text });
    expect(recall({ apiKey: text }, randomUUID())).toBeUndefined();
  });

  it('by no key that expires meanwhile, and by no two different ones', async () => {
    const { text } = await addKey({ role: 'ORGANIZATION_USER', expiresAt: new Date(START_MS + 500) });
    await authenticate({ apiKey: text });
    expect(recall({ apiKey: text, bearer: (await addKey()).text })).toBeUndefined();
    nowMs += 500;
    expect(recall({ apiKey: text })).toBeUndefined();
  });

  it('by no key that was rejected', async () => {
    const { text } = mintKey('service');
    await expect(authenticate({ apiKey: text })).rejects.toThrow();
    expect(recall({ apiKey: text })).toBeUndefined();
  });
});

describe('a key', () => {
  it('is accepted as X-Api-Key, as a bearer token, and as both when they are equal', async () => {
    const { id, text } = await addKey();
    for (const given of [{ apiKey: text }, { bearer: text }, { apiKey: text, bearer: text }])
      expect((await authenticate(given)).keyId).toBe(id);
  });

  it('of the organization has the permissions of its role', async () => {
    const { id, text } = await addKey({ role: 'ORGANIZATION_ADMIN' });
    expect(await authenticate({ apiKey: text })).toEqual({
      keyId: id,
      kind: 'service',
      userId: undefined,
      organization: { id: organization, isPersonal: false, plan: 'enterprise', config: {} },
      permissions: new Set(organizationRoles.ORGANIZATION_ADMIN),
      boundTo: undefined,
      expiresAt: undefined,
      issuedBy: undefined,
    });
  });

  it('of a workspace has no permissions in the organization, even with the name of an organization role', async () => {
    const workspaceId = await insertWorkspace(database.owner.db, organization);
    for (const role of ['WORKSPACE_ADMIN', 'ORGANIZATION_ADMIN']) {
      const { text } = await addKey({ workspaceId, role });
      const caller = await authenticate({ apiKey: text });
      expect([caller.boundTo, caller.permissions.size]).toEqual([workspaceId, 0]);
    }
  });

  it('of a member has their current permissions, and is rejected after they left', async () => {
    const { owner } = database;
    const userId = await insertMember(owner.db, organization, 'ORGANIZATION_VIEWER');
    const { text } = await addKey({ userId });
    const caller = await authenticate({ apiKey: text });
    expect([caller.kind, caller.userId]).toEqual(['personal', userId]);
    expect(caller.permissions).toEqual(new Set(['organization:read']));

    const member = owner.db.updateTable('organization_members').where('user_id', '=', userId);
    await member.set({ role: 'ORGANIZATION_OPERATOR' }).execute();
    expect((await authenticate({ apiKey: text })).permissions.has('organization:manage')).toBe(true);

    await owner.db.deleteFrom('organization_members').where('user_id', '=', userId).execute();
    expect(await refusalOf({ apiKey: text })).toMatchObject({ kind: 'unauthenticated' });
  });

  it('with an unknown role has no permissions', async () => {
    for (const role of ['ORGANIZATION_EMPEROR', 'toString', '__proto__']) {
      const { text } = await addKey({ role });
      expect((await authenticate({ apiKey: text })).permissions.size).toBe(0);
    }
  });

  it('is rejected from the moment of its expiry', async () => {
    const { text } = await addKey({ role: 'ORGANIZATION_USER', expiresAt: new Date(START_MS + 1000) });
    nowMs = START_MS + 999;
    expect((await authenticate({ apiKey: text })).kind).toBe('service');
    nowMs = START_MS + 1000;
    expect(await refusalOf({ apiKey: text })).toMatchObject({ kind: 'unauthenticated' });
  });
});

describe('a rejection', () => {
  it('has the same message for a key that is malformed, unknown, expired, revoked or one of two different keys', async () => {
    const expired = await addKey({ role: 'ORGANIZATION_USER', expiresAt: new Date(START_MS) });
    const revoked = await addKey();
    await database.owner.db.deleteFrom('api_keys').where('id', '=', revoked.id).execute();
    const right = await addKey();
    const other = await addKey();
    const refusals = [
      await refusalOf({ apiKey: 'nonsense' }),
      await refusalOf({ apiKey: '' }),
      await refusalOf({ apiKey: `${right.text}, ${right.text}` }),
      await refusalOf({ apiKey: mintKey('service').text }),
      await refusalOf({ bearer: mintKey('personal').text }),
      await refusalOf({ apiKey: expired.text }),
      await refusalOf({ apiKey: revoked.text }),
      await refusalOf({ apiKey: right.text, bearer: other.text }),
      await refusalOf({ apiKey: right.text, bearer: 'nonsense' }),
    ];
    expect(refusals[0]).toMatchObject({ kind: 'unauthenticated' });
    expect(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size).toBe(1);
  });

  it('explains how to send a key when none was sent', async () => {
    const refusal = await refusalOf({});
    expect(refusal).toMatchObject({ kind: 'unauthenticated', message: /X-Api-Key/ });
  });

  it('never repeats what was sent', async () => {
    const { text } = mintKey('service');
    expect(JSON.stringify(await refusalOf({ apiKey: text }))).not.toContain(text.slice(6));
  });
});

describe('wrong keys', () => {
  async function failTimes(times: number, peer: string): Promise<readonly unknown[]> {
    const kinds: unknown[] = [];
    for (let at = 0; at < times; at += 1)
      kinds.push(((await refusalOf({ apiKey: 'wrong', peer })) as { kind: unknown }).kind);
    return kinds;
  }

  it('from one address are limited until the minute has ended', async () => {
    const kinds = await failTimes(31, '198.51.100.1');
    expect([...new Set(kinds.slice(0, 30)), kinds[30]]).toEqual(['unauthenticated', 'too_many']);
    nowMs += 15_000;
    expect(await refusalOf({ apiKey: 'wrong', peer: '198.51.100.1' })).toMatchObject({ retryMs: 45_000 });
    expect(await failTimes(1, '198.51.100.2')).toEqual(['unauthenticated']);
    nowMs += 45_000;
    expect(await failTimes(1, '198.51.100.1')).toEqual(['unauthenticated']);
  });

  it('do not lock out a valid key from the same address', async () => {
    const { id, text } = await addKey();
    await failTimes(40, '198.51.100.1');
    expect((await authenticate({ apiKey: text, peer: '198.51.100.1' })).keyId).toBe(id);
  });

  it('from very many addresses are limited in total', async () => {
    const kinds = new Set<unknown>();
    for (let at = 0; at < 3001; at += 1)
      for (const kind of await failTimes(1, `10.0.${at >> 8}.${at & 255}`)) kinds.add(kind);
    expect([...kinds]).toEqual(['unauthenticated', 'too_many']);
  });

  it('are not counted for requests without a key', async () => {
    for (let at = 0; at < 40; at += 1) await refusalOf({ peer: '198.51.100.7' });
    expect(await failTimes(1, '198.51.100.7')).toEqual(['unauthenticated']);
  });
});

describe('the last-use time', () => {
  async function lastUse(id: string): Promise<Date | null> {
    await authenticator.settle();
    const row = db.selectFrom('api_keys').select('last_used_at').where('id', '=', id);
    return (await row.executeTakeFirstOrThrow()).last_used_at;
  }

  it('is written at the first use, and then at most once a minute', async () => {
    const { id, text } = await addKey();
    expect(await lastUse(id)).toBeNull();
    await authenticate({ apiKey: text });
    expect(await lastUse(id)).toEqual(new Date(START_MS));
    nowMs = START_MS + 59_999;
    // A write would fail here, so none is attempted.
    const credentials = { apiKey: text, bearer: undefined, peer: '192.0.2.1' };
    await authenticator.authenticate(failingUpdates(db), credentials);
    expect([await lastUse(id), errors]).toEqual([new Date(START_MS), []]);
    nowMs = START_MS + 60_000;
    await authenticate({ apiKey: text });
    expect(await lastUse(id)).toEqual(new Date(nowMs));
  });

  it('does not delay a request, and a failed write is reported to the operator', async () => {
    const { id, text } = await addKey();
    const holder = await database.owner.db.startTransaction().execute();
    await holder.selectFrom('api_keys').select('id').where('id', '=', id).forUpdate().execute();
    // Another transaction locks the row: nothing waits, and a later request writes.
    for (let at = 0; at < 10; at += 1) expect((await authenticate({ apiKey: text })).keyId).toBe(id);
    expect(await lastUse(id)).toBeNull();
    await holder.rollback().execute();
    await authenticate({ apiKey: text });
    expect(await lastUse(id)).toEqual(new Date(START_MS));
    expect(errors).toEqual([]);

    const other = await addKey();
    const broken = failingUpdates(db);
    await authenticator.authenticate(broken, { apiKey: other.text, bearer: undefined, peer: '' });
    expect(await lastUse(other.id)).toBeNull();
    expect(errors).toEqual([new Error('no update today')]);
  });
});

/** A database that can be read but not updated. */
function failingUpdates(real: Database): Database {
  return new Proxy(real, {
    get(target, name) {
      if (name === 'updateTable')
        return () => {
          throw new Error('no update today');
        };
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('the lookup', () => {
  it('uses the index of hashes, so that its time reveals nothing about other keys', async () => {
    const { owner } = database;
    const plan = await owner.db.transaction().execute(async (trx) => {
      await sql`set local enable_seqscan = off`.execute(trx);
      const hash = Buffer.alloc(32);
      return sql<Record<string, string>>`explain select id from api_keys where hash = ${hash}`.execute(trx);
    });
    expect(plan.rows.map((row) => Object.values(row)[0]).join('\n')).toContain('api_keys_hash');
  });
});
