// Who stands behind a request, and where: the access of its route, granted or refused. It must not know what the route
// does.
import { DomainError, InvalidInput } from '../../base/domain-error.ts';
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

/** What the token of a sandbox stands for. */
export type SandboxStanding = {
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

export type Gatekeeper = {
  readonly authenticator: Authenticator;
  authenticateSandbox(db: Database, credentials: Credentials): Promise<SandboxStanding>;
};

/** Empty texts where there is nothing of the kind. */
export type Granted = {
  readonly caller: Caller | undefined;
  /** Of the caller, in the organization or the workspace that the route gives access to. */
  readonly permissions: ReadonlySet<Permission>;
  readonly organizationId: string;
  readonly workspaceId: string;
  readonly sandbox: string;
};

/** A request at the door, and where to ask about it. */
export type Entry = { readonly headers: Headers; readonly peer: string; readonly db: Database };

/**
 * Throws DomainError, or InvalidInput for a header that is none. `onCaller` is told who asks as soon as it is known: a
 * refusal after that is his too.
 */
export async function grant(
  access: Access,
  { headers, peer, db }: Entry,
  gatekeeper: Gatekeeper,
  onCaller: (caller: Caller) => void,
): Promise<Granted> {
  if (access.to === 'anyone') return nobody;
  const credentials = credentialsOf(headers, peer);
  if (access.to === 'sandbox') return enterSandbox(db, credentials, gatekeeper);
  const caller = await gatekeeper.authenticator.authenticate(db, credentials);
  onCaller(caller);
  const named = headers.get('x-organization-id') ?? undefined;
  if (access.to === 'organization') {
    authorizeInOrganization(caller, named, access.permission);
    return grantedTo(caller);
  }
  authorizeInOrganization(caller, named);
  const workspace = parseWorkspaceHeader(headers.get('x-tenant-id') ?? undefined);
  if (!workspace.ok) throw new InvalidInput(workspace.issues);
  const inWorkspace = await authorizeInWorkspace(db, caller, workspace.value, access.permission);
  return { ...grantedTo(caller), ...inWorkspace };
}

/**
 * What was granted, as it stands in `db` now. A body may have been long in coming: who held one back could else go on
 * with a key that was deleted in between, or a role that was taken from him.
 */
export async function confirm(
  access: Access,
  granted: Granted,
  { headers, peer, db }: Entry,
  { authenticator, authenticateSandbox }: Gatekeeper,
): Promise<Granted> {
  if (access.to === 'sandbox')
    return { ...nobody, ...(await authenticateSandbox(db, credentialsOf(headers, peer))) };
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

function credentialsOf(headers: Headers, peer: string): Credentials {
  const authorization = headers.get('authorization');
  const bearer = authorization === null ? undefined : /^bearer +(\S+)$/i.exec(authorization)?.[1];
  if (authorization !== null && bearer === undefined)
    throw new DomainError('unauthenticated', 'Authorization should be: Bearer KEY');
  return { apiKey: headers.get('x-api-key') ?? undefined, bearer, peer };
}
