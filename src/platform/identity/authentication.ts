// Who is asking: a key in, the caller that it stands for out. A wrong key is refused by the same words whether it is
// unknown, expired or revoked. It must not know what is asked for.
import { DomainError } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { type KeyKind, parseKey } from './api-key.ts';
import type { Caller } from './caller.ts';
import { createFailureLimit } from './failure-limit.ts';
import { permissionsOf } from './permission.ts';

export type Credentials = {
  /** X-Api-Key */
  readonly apiKey: string | undefined;
  /** Authorization: Bearer */
  readonly bearer: string | undefined;
  /** The address of the client. */
  readonly peer: string;
};

export type Authenticator = {
  /** Throws DomainError. */
  authenticate(db: Database, credentials: Credentials): Promise<Caller>;
  /** The same caller as he stands in `db` now; throws DomainError where his key has gone since. */
  confirm(db: Database, caller: Caller): Promise<Caller>;
  /** Counts a wrong key or token from `peer`; answers `refusal`, or the one for whoever sends too many. */
  countFailure(peer: string, refusal: DomainError): DomainError;
  /** Resolves when the last uses that are being written are written. */
  settle(): Promise<void>;
};

const WINDOW_MS = 60_000;
const LAST_USE_EVERY_MS = 60_000;

export function createAuthenticator(options: {
  /** Milliseconds since 1970. */
  now(): number;
  /** A last use could not be written. */
  onError?(error: unknown): void;
}): Authenticator {
  const { now, onError } = options;
  const limit = createFailureLimit({ now, windowMs: WINDOW_MS, perPeer: 30, inAll: 3000, maxPeers: 10_000 });
  const lastUses = createLastUses(onError ?? (() => {}));

  const countFailure = (peer: string, refusal: DomainError): DomainError => {
    const waitMs = limit.count(peer);
    if (waitMs === 0) return refusal;
    return new DomainError(
      'too_many',
      'Too many wrong keys from here: a right one is taken at any time',
      waitMs,
    );
  };

  return {
    async authenticate(db, { apiKey, bearer, peer }) {
      const text = apiKey ?? bearer;
      if (text === undefined) throw new DomainError('unauthenticated', NO_KEY);
      // Two different keys: whom of them would the audit log name?
      const key = bearer === undefined || bearer === text ? parseKey(text) : undefined;
      const row = key === undefined ? undefined : await findKey(db, 'hash', key.hash);
      if (row === undefined || isOver(row, now())) throw countFailure(peer, wrongKey());
      if (row.last_used_at === null || now() - row.last_used_at.getTime() >= LAST_USE_EVERY_MS)
        lastUses.write(db, row.key_id, now());
      return toCaller(row);
    },
    async confirm(db, { keyId }) {
      const row = await findKey(db, 'id', keyId);
      // Nobody guesses here, so that there is nothing to count.
      if (row === undefined || isOver(row, now())) throw wrongKey();
      return toCaller(row);
    },
    countFailure,
    settle: () => lastUses.settle(),
  };
}

const NO_KEY = 'A key is needed: send it as X-Api-Key: KEY or as Authorization: Bearer KEY';
const WRONG_KEY = 'The key is wrong, has expired or was revoked; of two that are sent both must be the same';

function wrongKey(): DomainError {
  return new DomainError('unauthenticated', WRONG_KEY);
}

type KeyRow = {
  readonly key_id: string;
  readonly kind: KeyKind;
  readonly user_id: string | null;
  readonly workspace_id: string | null;
  readonly key_role: string | null;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
  readonly organization_id: string;
  readonly is_personal: boolean;
  readonly plan: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly member_role: string | null;
};

/**
 * By the index of hashes: how long that takes tells at most of a hash, from which nothing follows for a key. A personal
 * token is there only as long as its owner is a member, and is worth what he is.
 */
function findKey(db: Database, by: 'hash' | 'id', value: Buffer | string): Promise<KeyRow | undefined> {
  return db
    .selectFrom('api_keys as k')
    .innerJoin('organizations as o', 'o.id', 'k.organization_id')
    .leftJoin('organization_members as m', (join) =>
      join.onRef('m.organization_id', '=', 'k.organization_id').onRef('m.user_id', '=', 'k.user_id'),
    )
    .select(['k.id as key_id', 'k.kind', 'k.user_id', 'k.workspace_id', 'k.role as key_role'])
    .select(['k.expires_at', 'k.last_used_at'])
    .select(['o.id as organization_id', 'o.is_personal', 'o.plan', 'o.config', 'm.role as member_role'])
    .where(`k.${by}`, '=', value)
    .executeTakeFirst();
}

function isOver({ expires_at }: KeyRow, nowMs: number): boolean {
  return expires_at !== null && expires_at.getTime() <= nowMs;
}

function toCaller(row: KeyRow): Caller {
  const role = row.kind === 'personal' ? row.member_role : row.workspace_id === null ? row.key_role : null;
  return {
    keyId: row.key_id,
    kind: row.kind,
    userId: row.user_id ?? undefined,
    organization: {
      id: row.organization_id,
      isPersonal: row.is_personal,
      plan: row.plan,
      config: row.config,
    },
    permissions: permissionsOf('organization', role),
    boundTo: row.workspace_id ?? undefined,
  };
}

type LastUses = { write(db: Database, keyId: string, atMs: number): void; settle(): Promise<void> };

/** One write a key at a time, which no request waits for. */
function createLastUses(onError: (error: unknown) => void): LastUses {
  const underWay = new Map<string, Promise<void>>();
  const store = async (db: Database, keyId: string, atMs: number): Promise<void> => {
    const since = new Date(atMs - LAST_USE_EVERY_MS);
    await db
      .updateTable('api_keys')
      .set({ last_used_at: new Date(atMs) })
      .where('id', '=', keyId)
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', since)]))
      .execute();
  };
  return {
    write(db, keyId, atMs) {
      if (underWay.has(keyId)) return;
      const writing = store(db, keyId, atMs)
        .catch(onError)
        .finally(() => underWay.delete(keyId));
      underWay.set(keyId, writing);
    },
    async settle() {
      await Promise.all(underWay.values());
    },
  };
}
