// Authentication: an API key in, its caller out. Unknown, expired and revoked keys are rejected with the same message, so
// that a response never says which of them a key is.
import { BoundedCache } from '../../base/bounded-cache.ts';
import { DomainError } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { type KeyKind, parseKey } from './api-key.ts';
import { createFailureLimit } from './failure-limit.ts';
import { createLastUses } from './last-uses.ts';
import { lockMembership } from './membership-lock.ts';
import { type Permission, permissionsOf } from './permission.ts';
import { findSession, hasSession, sessionEnded } from './sessions.ts';
import { sql } from '../store/sql.ts';
import { defineStatement } from '../store/statement.ts';

export type Organization = {
  readonly id: string;
  readonly isPersonal: boolean;
  /** For example `enterprise`. */
  readonly plan: string;
  /** Feature flags by name. */
  readonly config: Readonly<Record<string, unknown>>;
};

/** The sender of a request, known by its API key. */
export type Caller = {
  readonly keyId: string;
  readonly kind: KeyKind;
  /** The user of a personal access token. */
  readonly userId: string | undefined;
  readonly organization: Organization;
  /** Permissions in the organization itself. */
  readonly permissions: ReadonlySet<Permission>;
  /** The one workspace of a service key that is bound to a workspace. */
  readonly boundTo: string | undefined;
  /** Its home workspace: that of requests that name none. */
  readonly home: string | undefined;
  /**
   * The workspace that the request names, or else that of the key or its home, if the organization has it; with the role that the caller
   * has in it. Read with the key.
   */
  readonly named: { readonly workspaceId: string; readonly role: string | null } | undefined;
  /** The id of the session, when the caller has no key but the cookie of one. */
  readonly sessionId: string | undefined;
  /** When the key expires. */
  readonly expiresAt: Date | undefined;
  /** The key with which somebody else created this personal token: its use is recorded with it. */
  readonly issuedBy: string | undefined;
};

/** What a caller is read again by. */
export type KnownCaller = Pick<Caller, 'keyId' | 'userId' | 'sessionId'> & {
  readonly organization: Pick<Organization, 'id'>;
};

export type Credentials = {
  /** X-Api-Key */
  readonly apiKey: string | undefined;
  /** Authorization: Bearer */
  readonly bearer: string | undefined;
  /** The IP address of the client. */
  readonly peer: string;
};

/** The text of the cookie, and the IP address of the client. */
export type SessionCredentials = { readonly text: string; readonly peer: string };

export type Authenticator = {
  /** By which keys expire; milliseconds since 1970. */
  now(): number;
  /** Throws DomainError. */
  authenticate(db: Database, credentials: Credentials, workspaceId?: string): Promise<Caller>;
  /**
   * The caller as it was in the last second, for requests whose transaction confirms it. Undefined where nobody has looked it up since,
   * and whenever only `authenticate` can reject it.
   */
  recall(credentials: Credentials, workspaceId?: string): Caller | undefined;
  /**
   * Reads the same caller again from `db`; throws DomainError when the key has since expired or been revoked. In a
   * transaction it locks the key and the membership: a revocation waits for the writes that began before it, and no
   * write that waited for a revocation goes on.
   */
  confirm(db: Database, caller: KnownCaller, workspaceId?: string): Promise<Caller>;
  /** The caller of a session, with what its key has now. It is a use of the key. */
  authenticateSession(db: Database, session: SessionCredentials, workspaceId?: string): Promise<Caller>;
  /** Counts a failed attempt from `peer`; returns `refusal`, or `too_many` when the limit is exceeded. */
  countFailure(peer: string, refusal: DomainError): DomainError;
  /** Whether that limit is exceeded for `peer`, whose valid keys are accepted all the same. */
  hasFailedOften(peer: string): boolean;
  /** Resolves when all pending updates of last-use times are written. */
  settle(): Promise<void>;
};

const WINDOW_MS = 60_000;
const RECALL_MS = 1000;
const MAX_RECALLED = 1000;

export function createAuthenticator(options: {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that is never set; that of the process when absent. */
  elapsed?(): number;
  /** The last-use time of a key could not be written. */
  onError?(error: unknown): void;
}): Authenticator {
  const { now, elapsed = () => performance.now(), onError } = options;
  const limit = createFailureLimit({ now, windowMs: WINDOW_MS, perPeer: 30, total: 3000, maxPeers: 10_000 });
  const lastUses = createLastUses(onError ?? (() => {}));
  const recent = new BoundedCache<Caller>({ max: MAX_RECALLED, ttlMs: RECALL_MS, now: elapsed });

  const countFailure = (peer: string, refusal: DomainError): DomainError => {
    const waitMs = limit.count(peer);
    return waitMs === 0 ? refusal : new DomainError('too_many', TOO_MANY, waitMs);
  };

  return {
    now,
    async authenticate(db, { apiKey, bearer, peer }, workspaceId) {
      if ((apiKey ?? bearer) === undefined) throw new DomainError('unauthenticated', NO_KEY);
      const hash = hashOf({ apiKey, bearer });
      const [row] =
        hash === undefined ? [] : await findByHash(db, { hash, workspaceId: workspaceId ?? null });
      if (hash === undefined || row === undefined || isExpired(row, now()))
        throw countFailure(peer, wrongKey());
      lastUses.note(db, row, now());
      const caller = toCaller(row);
      recent.set(toRecentKey(hash, workspaceId), caller);
      return caller;
    },
    recall(credentials, workspaceId) {
      const hash = hashOf(credentials);
      const caller = hash && recent.get(toRecentKey(hash, workspaceId));
      const hasExpired = caller?.expiresAt !== undefined && caller.expiresAt.getTime() <= now();
      return hasExpired ? undefined : caller;
    },
    async authenticateSession(db, { text, peer }, workspaceId) {
      const session = await findSession(db, text, now());
      const [row] =
        session === undefined
          ? []
          : await findById(db, { id: session.api_key_id, workspaceId: workspaceId ?? null });
      if (session === undefined || row === undefined || isExpired(row, now()))
        throw countFailure(peer, sessionEnded());
      lastUses.note(db, row, now());
      return toCaller(row, session.id);
    },
    async confirm(db, { keyId, userId, organization, sessionId }, workspaceId) {
      // First, and in a statement of its own: the next one reads the role as the lock found it. Nothing waits in between: a
      // transaction runs its statements in order, and may hold both back.
      const locking = userId && lockMembership(db, 'organization_members', organization.id, userId);
      const find = db.isTransaction ? findAndLock : findById;
      const [[row]] = await Promise.all([find(db, { id: keyId, workspaceId: workspaceId ?? null }), locking]);
      // Not counted as a failed attempt: the key was valid when the request arrived.
      if (row === undefined || isExpired(row, now())) throw wrongKey();
      if (sessionId !== undefined && !(await hasSession(db, sessionId, now()))) throw sessionEnded();
      return toCaller(row, sessionId);
    },
    countFailure,
    hasFailedOften: (peer) => limit.isExceeded(peer),
    settle: () => lastUses.settle(),
  };
}

const NO_KEY = 'API key missing: send it as X-Api-Key: KEY or Authorization: Bearer KEY';
const WRONG_KEY =
  'Invalid, expired or revoked API key. If you send both X-Api-Key and Authorization, they must match.';
const TOO_MANY = 'Too many failed attempts from this address. Valid keys still work.';

/** By which the key is looked up; undefined for what is none. Two different keys are none: the audit log can name only one. */
function hashOf({ apiKey, bearer }: Pick<Credentials, 'apiKey' | 'bearer'>): Buffer | undefined {
  const text = apiKey ?? bearer ?? '';
  return bearer === undefined || bearer === text ? parseKey(text)?.hash : undefined;
}

function toRecentKey(hash: Buffer, workspaceId = ''): string {
  return hash.toString('latin1') + workspaceId;
}

function wrongKey(): DomainError {
  return new DomainError('unauthenticated', WRONG_KEY);
}

type KeyRow = NonNullable<Awaited<ReturnType<ReturnType<typeof selectKey>['executeTakeFirst']>>>;
type Named = { readonly workspaceId: string | null };

/**
 * Uses the index of hashes: the time of a lookup can expose at most a part of a hash, and a hash exposes nothing of a
 * key. A personal token exists only while its owner is a member, and has the owner's current role.
 */
const findByHash = defineStatement(
  'find-key-by-hash',
  (db, { hash, workspaceId }: Named & { readonly hash: Buffer }) =>
    selectKey(db, workspaceId).where('k.hash', '=', hash).compile(),
);
const findById = defineStatement('find-key', (db, { id, workspaceId }: Named & { readonly id: string }) =>
  selectKey(db, workspaceId).where('k.id', '=', id).compile(),
);
// Its lock conflicts with the deletion of the key, and not with the update of its last use.
const findAndLock = defineStatement(
  'find-key-and-lock',
  (db, { id, workspaceId }: Named & { readonly id: string }) =>
    selectKey(db, workspaceId).where('k.id', '=', id).forKeyShare('k').compile(),
);

function selectKey(db: Database, workspaceId: string | null) {
  const named = sql<string>`coalesce(${workspaceId}::uuid, k.workspace_id, k.home_workspace_id)`;
  return db
    .selectFrom('api_keys as k')
    .innerJoin('organizations as o', 'o.id', 'k.organization_id')
    .leftJoin('organization_members as m', (join) =>
      join.onRef('m.organization_id', '=', 'k.organization_id').onRef('m.user_id', '=', 'k.user_id'),
    )
    .leftJoin('workspaces as w', (join) =>
      join.onRef('w.organization_id', '=', 'k.organization_id').on('w.id', '=', named),
    )
    .leftJoin('workspace_members as wm', (join) =>
      join.onRef('wm.workspace_id', '=', 'w.id').onRef('wm.user_id', '=', 'k.user_id'),
    )
    .select(['k.id as key_id', 'k.kind', 'k.user_id', 'k.workspace_id', 'k.role as key_role'])
    .select(['k.expires_at', 'k.last_used_at', 'k.created_by_key_id', 'k.created_by_user_id'])
    .select('k.home_workspace_id')
    .select(['o.id as organization_id', 'o.is_personal', 'o.plan', 'o.config', 'm.role as member_role'])
    .select(['w.id as named_id', 'wm.role as named_role']);
}

function isExpired({ expires_at }: KeyRow, nowMs: number): boolean {
  return expires_at !== null && expires_at.getTime() <= nowMs;
}

function toCaller(row: KeyRow, sessionId?: string): Caller {
  const role = row.kind === 'personal' ? row.member_role : row.workspace_id === null ? row.key_role : null;
  const ownRole = row.named_id === row.workspace_id ? row.key_role : null;
  const isOwn = row.kind === 'service' || row.created_by_user_id === row.user_id;
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
    sessionId,
    boundTo: row.workspace_id ?? undefined,
    home: row.home_workspace_id ?? undefined,
    named: row.named_id === null ? undefined : { workspaceId: row.named_id, role: row.named_role ?? ownRole },
    expiresAt: row.expires_at ?? undefined,
    issuedBy: isOwn ? undefined : (row.created_by_key_id ?? undefined),
  };
}
