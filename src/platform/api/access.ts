// Who may call a route, and what the call knows then. A module with callers of its own brings an access of its own.
import { DomainError, InvalidInput } from '../../base/domain-error.ts';
import type { RequestHead } from '../../base/http/request-head.ts';
import type { Authenticator, Caller, Credentials } from '../identity/authentication.ts';
import {
  authorizeInOrganization,
  authorizeInWorkspace,
  knownGrantIn,
  isLockedByRole,
  parseWorkspaceHeader,
  requirePermission,
} from '../identity/authorization.ts';
import type { Permission } from '../identity/permission.ts';
import { findRevokedGrants } from '../identity/revoked-grants.ts';
import type { Database } from '../store/database.ts';
import type { ClientAddress } from './client-address.ts';
import type { Party } from './shares/fair-queue.ts';
import { requireFormToken, sessionIn } from './session/session-cookie.ts';

/** What every access may grant; the audit log and the turns of an organization read it. */
export type Grant = {
  readonly caller?: Caller;
  readonly organizationId?: string;
  readonly workspaceId?: string;
  /** Whose shares it uses, where its caller is of no organization. */
  readonly party?: Party;
};

/** A request whose access is checked, and the database that knows its keys. */
export type Entry = {
  readonly head: RequestHead;
  /** The IP address of the client. */
  readonly peer: string;
  readonly client: ClientAddress;
  readonly requestId: string;
  /** Where sessions are allowed, the origin that a browser sent the request to. */
  readonly origin: string | undefined;
  readonly db: Database;
  readonly authenticator: Authenticator;
  /** Called as soon as the caller is known, and again with their workspace: a later rejection is recorded as theirs. */
  onCaller(known: Grant): void;
};

/** How a route lets callers in. `G` is what its phases get of them. */
export type Access<G extends Grant = Grant> = {
  /** Names the access in the API description. */
  readonly to: string;
  readonly permission?: Permission;
  /** Of the security schemes in the API description, those by which a caller may authenticate. */
  readonly schemes: readonly string[];
  /** The header fields that choose what a caller works in, by their names in the API description. */
  readonly parameters: readonly string[];
  /**
   * It finds out who calls without the database, and limits by itself how many it asks about at once: its callers take no turn
   * at the connections for that.
   */
  readonly isOffDatabase?: true;
  /** Throws DomainError, or InvalidInput for a malformed header. */
  enter(entry: Entry): Promise<G>;
  /**
   * What `enter` would grant by what was read in the last second; undefined where it has to read, or would reject. For requests whose
   * transaction confirms the grant before anything is done with it.
   */
  recall?(entry: Entry): G | undefined;
  /**
   * Checks the grant again inside the transaction, so that a slow request body or a slow `prepare` cannot outlive a
   * revoked key or role.
   */
  confirm(entry: Entry, granted: G): Promise<G>;
  /**
   * Whether all that `confirm` asks of the database for this grant are named statements that it sends without waiting for rows:
   * they are sent together with the first one of `handle`.
   */
  confirmsAtOnce?(granted: G): boolean;
  /** Who shares a limit for each caller. */
  callerOf(granted: G): string;
  /**
   * Of grants that accesses with this function gave, those that `confirm` would reject; asked for all open streams at
   * once. Without it each is confirmed by itself.
   */
  findRevoked?<S extends Granted<G>>(known: Known, granted: readonly S[]): Promise<ReadonlySet<S>>;
};

/** By whom a grant is confirmed. */
type Known = Pick<Entry, 'db' | 'authenticator'>;
/** A grant, and what gave it. */
export type Granted<G extends Grant> = {
  readonly granted: G;
  readonly access: { readonly permission?: Permission };
};

export type OrganizationGrant = {
  readonly caller: Caller;
  /** Of the caller, in the organization or the workspace that the route gives access to. */
  readonly permissions: ReadonlySet<Permission>;
  readonly organizationId: string;
};

export type WorkspaceGrant = OrganizationGrant & { readonly workspaceId: string };

/** Anybody: probes and documentation. */
export const anyone: Access<Record<never, never>> = {
  to: 'anyone',
  schemes: [],
  parameters: [],
  enter: async () => ({}),
  confirm: async () => ({}),
  callerOf: () => 'anyone',
  findRevoked: async () => new Set(),
};

const KEY_SCHEMES = ['API Key', 'Bearer Auth'];

/** In the organization of the key; `X-Organization-Id`, if sent, must name it. */
export function inOrganization(permission: Permission): Access<OrganizationGrant> {
  return {
    to: 'organization',
    permission,
    schemes: KEY_SCHEMES,
    parameters: ['OrganizationId'],
    async enter(entry) {
      const caller = await authenticate(entry);
      authorizeInOrganization(caller, entry.head.field('x-organization-id'), permission);
      return ofOrganization(caller);
    },
    recall(entry) {
      const caller = recallCaller(entry);
      if (!caller?.permissions.has(permission)) return undefined;
      entry.onCaller(ofOrganization(caller));
      return ofOrganization(caller);
    },
    async confirm({ authenticator, db }, granted) {
      const caller = await authenticator.confirm(db, granted.caller);
      requirePermission(caller.permissions, permission);
      return ofOrganization(caller);
    },
    confirmsAtOnce: ({ caller }) => caller.sessionId === undefined,
    callerOf: keyOf,
    findRevoked,
  };
}

/** In the workspace that `X-Tenant-Id` names; without it, in that of the key or in its home workspace. */
export function inWorkspace(permission: Permission): Access<WorkspaceGrant> {
  return {
    to: 'workspace',
    permission,
    schemes: KEY_SCHEMES,
    parameters: ['TenantId', 'OrganizationId'],
    async enter(entry) {
      const { head, db } = entry;
      const workspace = parseWorkspaceHeader(head.field('x-tenant-id'));
      const caller = await authenticate(entry, workspace.ok ? workspace.value : undefined);
      authorizeInOrganization(caller, head.field('x-organization-id'));
      if (!workspace.ok) throw new InvalidInput(workspace.issues);
      const grant = await authorizeInWorkspace(db, caller, workspace.value);
      // First: who lacks the permission is rejected in this workspace, and the audit log says so.
      entry.onCaller({ ...ofOrganization(caller), workspaceId: grant.workspaceId });
      requirePermission(grant.permissions, permission);
      return { ...ofOrganization(caller), ...grant };
    },
    recall(entry) {
      const workspace = parseWorkspaceHeader(entry.head.field('x-tenant-id'));
      const caller = workspace.ok ? recallCaller(entry, workspace.value) : undefined;
      const grant = caller && workspace.ok ? knownGrantIn(caller, workspace.value) : undefined;
      if (caller === undefined || !grant?.permissions.has(permission)) return undefined;
      entry.onCaller({ ...ofOrganization(caller), workspaceId: grant.workspaceId });
      return { ...ofOrganization(caller), ...grant };
    },
    async confirm({ authenticator, db }, granted) {
      const { workspaceId } = granted;
      const caller = await authenticator.confirm(db, granted.caller, workspaceId);
      return {
        ...ofOrganization(caller),
        ...(await authorizeInWorkspace(db, caller, workspaceId, permission)),
      };
    },
    confirmsAtOnce: ({ caller }) => caller.sessionId === undefined && !isLockedByRole(caller),
    callerOf: keyOf,
    findRevoked,
  };
}

async function findRevoked<S extends Granted<OrganizationGrant & { readonly workspaceId?: string }>>(
  { db, authenticator }: Known,
  given: readonly S[],
): Promise<ReadonlySet<S>> {
  const grants = given.map((of) => ({ ...of.granted, permission: of.access.permission, of }));
  const revoked = await findRevokedGrants(db, grants, authenticator.now());
  return new Set(Array.from(revoked, ({ of }) => of));
}

function keyOf({ caller }: OrganizationGrant): string {
  return caller.keyId;
}

/** Every method but those that browsers use to read. */
const CHANGING: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** By a key, or without one by the session of a browser. */
async function authenticate(entry: Entry, workspaceId?: string): Promise<Caller> {
  const { authenticator, db } = entry;
  const credentials = credentialsOf(entry);
  const hasKey = (credentials.apiKey ?? credentials.bearer) !== undefined;
  const session = hasKey ? undefined : sessionIn(entry);
  if (session !== undefined && CHANGING.has(entry.head.method))
    requireFormToken(entry, session, entry.head.field('x-csrf-token'));
  const caller =
    session === undefined
      ? await authenticator.authenticate(db, credentials, workspaceId)
      : await authenticator.authenticateSession(db, { text: session, peer: entry.peer }, workspaceId);
  entry.onCaller(ofOrganization(caller));
  return caller;
}

/** Undefined where `X-Organization-Id` names another organization than that of the key. */
function recallCaller(entry: Entry, workspaceId?: string): Caller | undefined {
  const caller = entry.authenticator.recall(credentialsOf(entry), workspaceId);
  const organization = entry.head.field('x-organization-id') ?? caller?.organization.id;
  return organization?.toLowerCase() === caller?.organization.id ? caller : undefined;
}

function ofOrganization(caller: Caller): OrganizationGrant {
  return { caller, permissions: caller.permissions, organizationId: caller.organization.id };
}

/** Throws DomainError for an Authorization field that holds no bearer token. */
export function credentialsOf({ head, peer }: Pick<Entry, 'head' | 'peer'>): Credentials {
  const authorization = head.field('authorization');
  const bearer = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (authorization !== undefined && bearer === undefined)
    throw new DomainError('unauthenticated', 'Authorization must be: Bearer KEY');
  return { apiKey: head.field('x-api-key'), bearer, peer };
}
