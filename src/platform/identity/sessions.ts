// Sessions of pages: a random id that a cookie holds and the database knows as a hash. A session has what its key has now, and
// ends with it, or eight hours after it began.
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { sendRevocation } from './revocation-notices.ts';

export const SESSION_MS = 8 * 3_600_000;

/** Of one key: the next one ends the oldest. */
export const MAX_SESSIONS = 20;

export type NewSession = {
  readonly id: string;
  /** For the cookie; never stored. */
  readonly text: string;
};

/** Never one that a client proposes: who plants a cookie must not know the session that begins with it. */
export async function createSession(trx: Database, keyId: string, nowMs: number): Promise<NewSession> {
  // One at a time for each key, so that the bound is exact.
  const { organization_id } = await trx
    .selectFrom('api_keys')
    .select('organization_id')
    .where('id', '=', keyId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(sessionEnded);
  const text = randomBytes(32).toString('base64url');
  const { id } = await trx
    .insertInto('sessions')
    .values({ api_key_id: keyId, hash: hashOf(text), expires_at: new Date(nowMs + SESSION_MS) })
    .returning('id')
    .executeTakeFirstOrThrow();
  if (await endOldest(trx, keyId, id)) await sendRevocation(trx, organization_id);
  return { id, text };
}

/** Ends the sessions above the bound, never the new one: a clock that was set back makes it the oldest. Returns whether it ended any. */
async function endOldest(trx: Database, keyId: string, newId: string): Promise<boolean> {
  const kept = trx
    .selectFrom('sessions')
    .select('id')
    .where('api_key_id', '=', keyId)
    .where('id', '!=', newId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(MAX_SESSIONS - 1);
  const ended = await trx
    .deleteFrom('sessions')
    .where('api_key_id', '=', keyId)
    .where('id', '!=', newId)
    .where('id', 'not in', kept)
    .executeTakeFirst();
  return ended.numDeletedRows > 0n;
}

/** Undefined for one that has ended. */
export async function findSession(db: Database, text: string, nowMs: number) {
  if (!FORMAT.test(text)) return undefined;
  return db
    .selectFrom('sessions')
    .select(['id', 'api_key_id'])
    .where('hash', '=', hashOf(text))
    .where('expires_at', '>', new Date(nowMs))
    .executeTakeFirst();
}

/** In a transaction it locks the session: its end waits for what it began. */
export async function hasSession(db: Database, id: string, nowMs: number): Promise<boolean> {
  const found = await db
    .selectFrom('sessions')
    .select('id')
    .where('id', '=', id)
    .where('expires_at', '>', new Date(nowMs))
    .$if(db.isTransaction, (query) => query.forKeyShare())
    .executeTakeFirst();
  return found !== undefined;
}

export async function endSession(trx: Database, text: string): Promise<void> {
  if (!FORMAT.test(text)) return;
  const ended = await trx
    .deleteFrom('sessions')
    .using('api_keys as k')
    .whereRef('k.id', '=', 'sessions.api_key_id')
    .where('sessions.hash', '=', hashOf(text))
    .returning('k.organization_id')
    .executeTakeFirst();
  if (ended !== undefined) await sendRevocation(trx, ended.organization_id);
}

/** Returns how many were removed. */
export async function removeExpiredSessions(db: Database, now: Date): Promise<number> {
  const removed = await db.deleteFrom('sessions').where('expires_at', '<=', now).executeTakeFirst();
  return Number(removed.numDeletedRows);
}

/** What the forms of a session send beside its cookie, which other sites can make a browser send. It reveals nothing of the id. */
export function formTokenOf(text: string): string {
  return createHmac('sha256', text).update('form').digest('base64url');
}

export function isFormToken(text: string, token: string): boolean {
  const [own, given] = [formTokenOf(text), token].map((one) => createHash('sha256').update(one).digest());
  return own !== undefined && given !== undefined && timingSafeEqual(own, given);
}

export function sessionEnded(): DomainError {
  return new DomainError('unauthenticated', 'The session has ended: sign in again at /login');
}

const FORMAT = /^[\w-]{43}$/;

/** The id has 256 random bits, so that a hash without a salt is enough. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}
