// Tokens of services: each is for one port of one box, is stored as a hash, and expires by the clock of the database. A browser gets a
// code in its place, which becomes a cookie once.
import { randomBytes } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import type { Caller, KnownCaller } from '../../identity/authentication.ts';
import { hasKeyFormat, hashKey, mintKey } from '../../identity/api-key.ts';
import type { Database, Transaction } from '../../store/database.ts';
import { type Entity, sql } from '../../store/sql.ts';
import { defineStatement } from '../../store/statement.ts';
import type { Service } from './service-address.ts';

declare module '../../store/tables.ts' {
  interface Tables {
    readonly box_service_tokens: Entity & {
      readonly workspace_id: string;
      readonly box_id: string;
      readonly port: number;
      readonly hash: Buffer;
      /** Null once a browser has used it. */
      code_hash: Buffer | null;
      cookie_hash: Buffer | null;
      readonly api_key_id: string;
      readonly session_id: string | null;
      readonly created_by: string;
      readonly expires_at: Date;
    };
  }
}

/** Enough for clients that ask for another one before the last has expired. */
const MAX_TOKENS = 100;

export type NewToken = {
  readonly id: string;
  readonly expiresAt: Date;
  /** Both are shown once and never stored. */
  readonly token: string;
  readonly code: string;
};

type Wanted = {
  readonly workspaceId: string;
  readonly caller: Caller;
  readonly service: Service;
  readonly seconds: number;
};

/** The box is locked, so that concurrent requests are counted one after the other. Throws `quota_exceeded`. */
export async function issueToken(
  trx: Transaction,
  { workspaceId, caller, service: { boxId, port }, seconds }: Wanted,
): Promise<NewToken> {
  const ofBox = trx.deleteFrom('box_service_tokens').where('box_id', '=', boxId);
  await ofBox.where('expires_at', '<=', sql<Date>`now()`).execute();
  const { count } = await trx
    .selectFrom('box_service_tokens')
    .where('box_id', '=', boxId)
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  if (Number(count) >= MAX_TOKENS) throw new DomainError('quota_exceeded', TOO_MANY);
  const { text: token, hash } = mintKey('box_service');
  const code = randomText();
  const sessionId = caller.sessionId ?? null;
  const row = await trx
    .insertInto('box_service_tokens')
    .values({
      ...{ workspace_id: workspaceId, box_id: boxId, port, hash, code_hash: hashKey(code) },
      ...{ api_key_id: caller.keyId, session_id: sessionId, created_by: caller.userId ?? caller.keyId },
      expires_at: sql<Date>`least(now() + make_interval(secs => ${seconds}), ${caller.expiresAt ?? null}::timestamptz,
        (select expires_at from sessions where id = ${sessionId}::uuid))`,
    })
    .returning(['id', 'expires_at'])
    .executeTakeFirstOrThrow();
  return { id: row.id, expiresAt: row.expires_at, token, code };
}

const TOO_MANY = `A sandbox can have at most ${MAX_TOKENS} service URLs: delete one, or wait until one expires`;

/** How a token is presented: itself, or as what a browser has of it. */
export type Presented = { readonly kind: 'token' | 'code' | 'cookie'; readonly text: string };

/** A token that has not expired, and by whose key it was made. Whether that key still has the permission is not known. */
export type KnownToken = Service & {
  readonly id: string;
  readonly workspaceId: string;
  readonly maker: KnownCaller;
  readonly leftMs: number;
};

/** The index of hashes is searched: the time of a lookup exposes at most a part of a hash, and a hash exposes nothing of a token. */
export async function findToken(
  db: Database,
  { kind, text }: Presented,
  { boxId, port }: Service,
): Promise<KnownToken | undefined> {
  if (kind === 'token' ? !hasKeyFormat(text, 'box_service') : !RANDOM_TEXT.test(text)) return undefined;
  const [row] = await findBy[kind](db, { hash: hashKey(text) });
  return row?.box_id === boxId && row.port === port ? toKnownToken(row) : undefined;
}

/** The same again. In a transaction it is locked: its deletion waits for what began before it. */
export async function confirmToken(db: Database, id: string): Promise<KnownToken | undefined> {
  const row = await selectToken(db)
    .where('t.id', '=', id)
    .$if(db.isTransaction, (query) => query.forKeyShare('t'))
    .executeTakeFirst();
  return row && toKnownToken(row);
}

/** Which of them are neither expired nor deleted. */
export async function findLeft(db: Database, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('box_service_tokens')
    .select('id')
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where('expires_at', '>', sql<Date>`now()`)
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** The text of the cookie that a browser gets in place of the code; undefined where another one was first. */
export async function redeemCode(
  trx: Transaction,
  { id }: Pick<KnownToken, 'id'>,
  code: string,
): Promise<string | undefined> {
  const cookie = randomText();
  const redeemed = await trx
    .updateTable('box_service_tokens')
    .set({ code_hash: null, cookie_hash: hashKey(cookie) })
    .where('id', '=', id)
    .where('code_hash', '=', hashKey(code))
    .returning('id')
    .executeTakeFirst();
  return redeemed && cookie;
}

/** Those that have not expired, the newest first. */
export function listTokens(db: Pick<Database, 'selectFrom'>, boxId: string) {
  return db
    .selectFrom('box_service_tokens')
    .select(['id', 'port', 'created_at', 'created_by', 'expires_at'])
    .where('box_id', '=', boxId)
    .where('expires_at', '>', sql<Date>`now()`)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

/** False: there is none. */
export async function deleteToken(
  trx: Transaction,
  { id, boxId }: Pick<KnownToken, 'id' | 'boxId'>,
): Promise<boolean> {
  const deleted = await trx
    .deleteFrom('box_service_tokens')
    .where('id', '=', id)
    .where('box_id', '=', boxId)
    .returning('id')
    .executeTakeFirst();
  return deleted !== undefined;
}

export async function removeExpiredTokens(db: Database): Promise<void> {
  await db.deleteFrom('box_service_tokens').where('expires_at', '<=', sql<Date>`now()`).execute();
}

const RANDOM_TEXT = /^[\w-]{43}$/;

function randomText(): string {
  return randomBytes(32).toString('base64url');
}

type Hashed = { readonly hash: Buffer };
const findBy = {
  token: defineStatement('find-service-by-token', (db, { hash }: Hashed) =>
    selectToken(db).where('t.hash', '=', hash).compile(),
  ),
  code: defineStatement('find-service-by-code', (db, { hash }: Hashed) =>
    selectToken(db).where('t.code_hash', '=', hash).compile(),
  ),
  cookie: defineStatement('find-service-by-cookie', (db, { hash }: Hashed) =>
    selectToken(db).where('t.cookie_hash', '=', hash).compile(),
  ),
};

type TokenRow = NonNullable<Awaited<ReturnType<ReturnType<typeof selectToken>['executeTakeFirst']>>>;

function selectToken(db: Database) {
  return db
    .selectFrom('box_service_tokens as t')
    .innerJoin('api_keys as k', 'k.id', 't.api_key_id')
    .select(['t.id', 't.box_id', 't.port', 't.workspace_id', 't.session_id'])
    .select(['k.id as key_id', 'k.user_id', 'k.organization_id'])
    .select(sql<string>`extract(epoch from t.expires_at - now()) * 1000`.as('left_ms'))
    .where('t.expires_at', '>', sql<Date>`now()`);
}

function toKnownToken(row: TokenRow): KnownToken {
  return {
    ...{ id: row.id, boxId: row.box_id, port: row.port, workspaceId: row.workspace_id },
    leftMs: Number(row.left_ms),
    maker: {
      ...{ keyId: row.key_id, userId: row.user_id ?? undefined, sessionId: row.session_id ?? undefined },
      organization: { id: row.organization_id },
    },
  };
}
