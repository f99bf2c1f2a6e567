// Tokens of sandboxes: how they are made, how they are kept, and for which sandbox one speaks. It must not know routes.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../base/domain-error.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';

/** `text` is told once; the rest is kept. */
export type MintedToken = { readonly text: string; readonly shortToken: string; readonly hash: Buffer };

export type SandboxIdentity = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

/** What a request may show a token by. */
export type ShownToken = { readonly apiKey: string | undefined; readonly bearer: string | undefined };

const PREFIX = 'sp_sb_';
// 256 random bits: nobody guesses them, so that a plain hash keeps them.
const SECRET_BYTES = 32;
const FORM = /^sp_sb_[A-Za-z0-9_-]{43}$/;

export function mintSandboxToken(): MintedToken {
  const text = PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
  return { text, shortToken: `${text.slice(0, PREFIX.length + 4)}…${text.slice(-4)}`, hash: hashOf(text) };
}

/** Throws DomainError. The same text for whatever is wrong with a token: which it is would help to guess. */
export async function authenticateSandbox(
  db: Database,
  { apiKey, bearer }: ShownToken,
): Promise<SandboxIdentity> {
  const text = apiKey ?? bearer ?? '';
  if (!FORM.test(text) || (bearer ?? text) !== text) throw refused();
  const hash = hashOf(text);
  const row = await db
    .selectFrom('sandbox_tokens')
    .innerJoin('workspaces', 'workspaces.id', 'sandbox_tokens.workspace_id')
    .select(['organization_id', 'workspace_id', 'sandbox', 'hash'])
    .where('hash', '=', hash)
    .where(sql<boolean>`coalesce(expires_at > now(), true)`)
    .executeTakeFirst();
  if (row === undefined || !timingSafeEqual(row.hash, hash)) throw refused();
  return { organizationId: row.organization_id, workspaceId: row.workspace_id, sandbox: row.sandbox };
}

function refused(): DomainError {
  return new DomainError(
    'unauthenticated',
    'Send a valid sandbox token, as X-Api-Key or Authorization: Bearer',
  );
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text, 'utf8').digest();
}
