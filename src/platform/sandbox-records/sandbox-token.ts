// Tokens of sandboxes: which sandbox one belongs to.
import { DomainError } from '../../base/domain-error.ts';
import { hasKeyFormat, hashKey } from '../identity/api-key.ts';
import type { Credentials } from '../identity/authentication.ts';
import type { Database } from '../store/database.ts';
import { type Entity, sql } from '../store/sql.ts';

declare module '../store/tables.ts' {
  interface Tables {
    /** Authorizes a sidecar to send the records of one sandbox. */
    readonly sandbox_tokens: Entity & {
      readonly workspace_id: string;
      readonly sandbox: string;
      readonly short_token: string;
      readonly hash: Buffer;
      readonly expires_at: Date | null;
    };
  }
}

/** What the token of a sandbox gives access to. */
export type SandboxGrant = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

/** Of tokens that were created before they had a checksum. */
const EARLIER_FORMAT = /^sp_sb_[A-Za-z0-9_-]{43}$/;

/**
 * Throws DomainError, with one message for everything that can be wrong with a token: the reason would help to guess. In a
 * transaction it locks the token: its deletion waits for the writes that began before it.
 */
export async function authenticateSandbox(
  db: Database,
  { apiKey, bearer }: Pick<Credentials, 'apiKey' | 'bearer'>,
): Promise<SandboxGrant> {
  const text = apiKey ?? bearer ?? '';
  const isToken = hasKeyFormat(text, 'sandbox') || EARLIER_FORMAT.test(text);
  if (!isToken || (bearer ?? text) !== text) throw wrongToken();
  const row = await db
    .selectFrom('sandbox_tokens')
    .innerJoin('workspaces', 'workspaces.id', 'sandbox_tokens.workspace_id')
    .select(['organization_id', 'workspace_id', 'sandbox'])
    .where('hash', '=', hashKey(text))
    .where(sql<boolean>`coalesce(expires_at > now(), true)`)
    // The workspace first: so does its deletion, which deletes the token with it.
    .$if(db.isTransaction, (query) => query.forKeyShare(['workspaces', 'sandbox_tokens']))
    .executeTakeFirst();
  if (row === undefined) throw wrongToken();
  return { organizationId: row.organization_id, workspaceId: row.workspace_id, sandbox: row.sandbox };
}

function wrongToken(): DomainError {
  return new DomainError(
    'unauthenticated',
    'Send a valid sandbox token, as X-Api-Key or Authorization: Bearer',
  );
}
