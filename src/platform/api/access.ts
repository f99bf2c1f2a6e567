// Who calls, and where: access to the route of a request, granted or denied.
import { DomainError, InvalidInput } from '../../base/domain-error.ts';
import type { RequestHead } from '../../base/http/request-head.ts';
import type { Authenticator, Caller, Credentials } from '../identity/authentication.ts';
import {
  authorizeInOrganization,
  authorizeInWorkspace,
  parseWorkspaceHeader,
  requirePermission,
} from '../identity/authorization.ts';
import type { Permission } from '../identity/permission.ts';
import type { Database } from '../store/database.ts';
import type { Access } from './route.ts';

/** What the token of a sandbox gives access to. */
export type SandboxGrant = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

export type Gatekeeper = {
  readonly authenticator: Authenticator;
  authenticateSandbox(db: Database, credentials: Credentials): Promise<SandboxGrant>;
};

/** Empty where there is no organization, workspace or sandbox. */
export type Granted = {
  readonly caller: Caller | undefined;
  /** Of the caller, in the organization or the workspace that the route gives access to. */
  readonly permissions: ReadonlySet<Permission>;
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

/** A request whose access is checked, and the database that knows its keys. */
export type Entry = { readonly head: RequestHead; readonly peer: string; readonly db: Database };

/**
 * Throws DomainError, or InvalidInput for a malformed header. `onCaller` is called as soon as the caller is known: a
 * later rejection is recorded as theirs.
 */
export async function grant(
  access: Access,
  { head, peer, db }: Entry,
  gatekeeper: Gatekeeper,
  onCaller: (caller: Caller) => void,
): Promise<Granted> {
  if (access.to === 'anyone') return nobody;
  const credentials = credentialsOf(head, peer);
  if (access.to === 'sandbox') return enterSandbox(db, credentials, gatekeeper);
  const caller = await gatekeeper.authenticator.authenticate(db, credentials);
  onCaller(caller);
  const named = head.field('x-organization-id');
  if (access.to === 'organization') {
    authorizeInOrganization(caller, named, access.permission);
    return grantedTo(caller);
  }
  authorizeInOrganization(caller, named);
  const workspace = parseWorkspaceHeader(head.field('x-tenant-id'));
  if (!workspace.ok) throw new InvalidInput(workspace.issues);
  const inWorkspace = await authorizeInWorkspace(db, caller, workspace.value, access.permission);
  return { ...grantedTo(caller), ...inWorkspace };
}

/**
 * Checks the grant again inside the transaction, so that a slow request body cannot outlive a revoked key or role.
 */
export async function confirm(
  access: Access,
  granted: Granted,
  { head, peer, db }: Entry,
  { authenticator, authenticateSandbox }: Gatekeeper,
): Promise<Granted> {
  if (access.to === 'sandbox')
    return { ...nobody, ...(await authenticateSandbox(db, credentialsOf(head, peer))) };
  if (access.to === 'anyone' || granted.caller === undefined) return granted;
  const caller = await authenticator.confirm(db, granted.caller);
  if (access.to === 'organization') {
    requirePermission(caller.permissions, access.permission);
    return grantedTo(caller);
  }
  const inWorkspace = await authorizeInWorkspace(db, caller, granted.workspaceId, access.permission);
  return { ...grantedTo(caller), ...inWorkspace };
}

async function enterSandbox(
  db: Database,
  credentials: Credentials,
  { authenticator, authenticateSandbox }: Gatekeeper,
): Promise<Granted> {
  try {
    return { ...nobody, ...(await authenticateSandbox(db, credentials)) };
  } catch (error) {
    const isShown = (credentials.apiKey ?? credentials.bearer) !== undefined;
    const isWrong = error instanceof DomainError && error.kind === 'unauthenticated';
    throw isShown && isWrong ? authenticator.countFailure(credentials.peer, error) : error;
  }
}

const nobody: Granted = {
  caller: undefined,
  permissions: new Set(),
  organizationId: '',
  workspaceId: '',
  sandbox: '',
};

/** Before the workspace is known, or outside of one. */
export function grantedTo(caller: Caller): Granted {
  const { organization, permissions } = caller;
  return { ...nobody, caller, permissions, organizationId: organization.id };
}

function credentialsOf(head: RequestHead, peer: string): Credentials {
  const authorization = head.field('authorization');
  const bearer = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (authorization !== undefined && bearer === undefined)
    throw new DomainError('unauthenticated', 'Authorization must be: Bearer KEY');
  return { apiKey: head.field('x-api-key'), bearer, peer };
}
