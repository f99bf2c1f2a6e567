// Access with the token of a service: the call has what the key that made the token has now, in the workspace of the box. Without
// that key, its member's role, or its session, there is none.
import { DomainError } from '../../../base/domain-error.ts';
import { type Access, type Entry, type Granted, inWorkspace, type WorkspaceGrant } from '../../api/access.ts';
import { authorizeInWorkspace } from '../../identity/authorization.ts';
import type { Service } from './service-address.ts';
import { confirmToken, findLeft, findToken, type KnownToken, type Presented } from './service-tokens.ts';

export type ServiceGrant = WorkspaceGrant & { readonly token: KnownToken };

/** What the maker of a token needs as long as the token is used. */
const PERMISSION = 'sandboxes:manage';
const { findRevoked: findRevokedMakers } = inWorkspace(PERMISSION);

/** Throws one error for everything that can be wrong with a token: the reason would help to guess. */
export function withServiceToken(service: Service, presented: Presented): Access<ServiceGrant> {
  return {
    to: 'service',
    permission: PERMISSION,
    schemes: ['Service Token'],
    parameters: [],
    async enter(entry) {
      const token = await findToken(entry.db, presented, service);
      const granted = token && (await grantOf(entry, token));
      if (granted === undefined) throw entry.authenticator.countFailure(entry.peer, wrongToken());
      entry.onCaller(granted);
      return granted;
    },
    async confirm(entry, { token: { id } }) {
      const token = await confirmToken(entry.db, id);
      const granted = token && (await grantOf(entry, token));
      if (granted === undefined) throw wrongToken();
      return granted;
    },
    callerOf: ({ caller }) => caller.keyId,
    findRevoked,
  };
}

/** Undefined where the maker has lost what the token gives. */
async function grantOf({ authenticator, db }: Entry, token: KnownToken): Promise<ServiceGrant | undefined> {
  const { workspaceId, maker } = token;
  try {
    const caller = await authenticator.confirm(db, maker, workspaceId);
    const grant = await authorizeInWorkspace(db, caller, workspaceId, PERMISSION);
    return { ...grant, caller, organizationId: caller.organization.id, token };
  } catch (error) {
    const isLost =
      error instanceof DomainError && (error.kind === 'unauthenticated' || error.kind === 'forbidden');
    if (isLost) return undefined;
    throw error;
  }
}

async function findRevoked<S extends Granted<ServiceGrant>>(
  known: Pick<Entry, 'db' | 'authenticator'>,
  given: readonly S[],
): Promise<ReadonlySet<S>> {
  const left = await findLeft(
    known.db,
    given.map(({ granted }) => granted.token.id),
  );
  const ended = given.filter(({ granted }) => !left.has(granted.token.id));
  const revoked = await findRevokedMakers?.(known, given);
  return new Set([...ended, ...(revoked ?? [])]);
}

export function wrongToken(): DomainError {
  return new DomainError('unauthenticated', WRONG_TOKEN);
}

const WRONG_TOKEN =
  'The token of the service is missing, wrong, expired or revoked: send one as X-Langsmith-Sandbox-Service-Token, or open its browser_url';
