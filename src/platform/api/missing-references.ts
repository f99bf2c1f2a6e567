// What a new row refers to and was deleted meanwhile, by the foreign key that PostgreSQL names: a caller learns what is
// missing, and a key that nobody thought of is a bug.
import { DomainError } from '../../base/domain-error.ts';
import { noWorkspace } from '../identity/authorization.ts';
import { sessionEnded } from '../identity/sessions.ts';
import { brokenReferenceOf } from '../store/database.ts';

/** By the end of the constraint's name, which PostgreSQL makes of the table and its columns. */
const MISSING: readonly (readonly [columns: string, () => DomainError])[] = [
  // The workspace of the request, since access to it was granted.
  ['_workspace_id_fkey', noWorkspace],
  // Of a sandbox or a deployment.
  ['_proxy_profile_id_fkey', () => new DomainError('not_found', 'Proxy profile not found')],
  ['_listener_id_fkey', () => new DomainError('unusable', 'There is no such listener in this workspace')],
  // Of an upload, whose deployment was deleted meanwhile.
  ['_deployment_id_fkey', () => new DomainError('not_found', 'There is no such deployment')],
  ['_revision_id_fkey', () => new DomainError('not_found', 'There is no such revision')],
  ['_snapshot_id_fkey', () => new DomainError('unusable', 'There is no such snapshot in this workspace')],
  // Of a token that a session makes, which ends at the same moment.
  ['_session_id_fkey', sessionEnded],
  // Of a run or a checkpoint, whose assistant or thread was deleted meanwhile.
  ['_assistant_id_fkey', () => new DomainError('not_found', 'There is no such assistant')],
  ['_thread_id_fkey', () => new DomainError('not_found', 'There is no such thread')],
  ['_user_id_fkey', () => new DomainError('not_found', 'User not found in this organization')],
];

/** The error itself, unless it is a broken reference that a caller can do something about. */
export function toMissingReference(error: unknown): unknown {
  const constraint = brokenReferenceOf(error);
  const found = MISSING.find(([columns]) => constraint?.endsWith(columns) === true);
  return found === undefined ? error : found[1]();
}
