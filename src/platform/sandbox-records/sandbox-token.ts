// Tokens of sandboxes: how one is minted, how it is stored and which sandbox it belongs to.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../base/domain-error.ts';
import { hashKey } from '../identity/api-key.ts';
import type { Credentials } from '../identity/authentication.ts';
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';

/** What the token of a sandbox gives access to. */
export type SandboxGrant = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

/** `text` is shown once; the other fields are stored. */
export type MintedToken = { readonly text: string; readonly shortToken: string; readonly hash: Buffer };

const PREFIX = 'sp_sb_';
// 256 random bits cannot be guessed, so a plain hash protects them.
const SECRET_BYTES = 32;
const FORMAT = /^sp_sb_[A-Za-z0-9_-]{43}$/;

export function mintSandboxToken(): MintedToken {
  const text = PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
  return { text, shortToken: `${text.slice(0, PREFIX.length + 4)}…${text.slice(-4)}`, hash: hashKey(text) };
}

/** Throws DomainError, with one message for everything that can be wrong with a token: the reason would help to guess. */
export async function authenticateSandbox(
  db: Database,
  { apiKey, bearer }: Pick<Credentials, 'apiKey' | 'bearer'>,
): Promise<SandboxGrant> {
  const text = apiKey ?? bearer ?? '';
  if (!FORMAT.test(text) || (bearer ?? text) !== text) throw wrongToken();
  const hash = hashKey(text);
  const row = await db
    .selectFrom('sandbox_tokens')
    .innerJoin('workspaces', 'workspaces.id', 'sandbox_tokens.workspace_id')
    .select(['organization_id', 'workspace_id', 'sandbox', 'hash'])
    .where('hash', '=', hash)
    .where(sql<boolean>`coalesce(expires_at > now(), true)`)
    .executeTakeFirst();
  if (row === undefined || !timingSafeEqual(row.hash, hash)) throw wrongToken();
  return { organizationId: row.organization_id, workspaceId: row.workspace_id, sandbox: row.sandbox };
}

function wrongToken(): DomainError {
  return new DomainError(
    'unauthenticated',
    'Send a valid sandbox token, as X-Api-Key or Authorization: Bearer',
  );
}
