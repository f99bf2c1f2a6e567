// Lets in whoever has a key. All of them are the owner of the server: there are no users, so that nothing is hidden from anybody.
import type { AgentUser } from '../../../agent-worker/protocol/calls.ts';
import { DomainError } from '../../../base/domain-error.ts';
import { type Access, credentialsOf, type Entry } from '../../api/access.ts';
import type { ReadHeaders } from './configurable-headers.ts';
import type { AgentGrant } from './gate.ts';
import { createHandlerTurns } from './handler-turns.ts';
import type { KeyOwner, KeyPort } from './keys.ts';

type KeyGrant = AgentGrant & { readonly keyId: string };

export function createKeyAccess({
  keys,
  readHeaders,
}: {
  readonly keys: KeyPort;
  readonly readHeaders: ReadHeaders;
}): Access<AgentGrant> {
  const takeTurn = createHandlerTurns();
  const access: Access<KeyGrant> = {
    to: 'owner',
    schemes: ['API Key', 'Bearer Auth'],
    parameters: [],
    isOffDatabase: true,
    async enter(entry) {
      const owner = await takeTurn(entry, () => findOwner(keys, entry));
      return { ...toOwnerGrant(owner), keyId: owner.keyId, headers: readHeaders(entry.head) };
    },
    async confirm(_, granted) {
      const revoked = await keys.findRevoked(new Set([granted.keyId]));
      if (revoked.size > 0) throw new DomainError('unauthenticated', WRONG_KEY);
      return granted;
    },
    callerOf: ({ keyId }) => keyId,
    async findRevoked(_, all) {
      const revoked = await keys.findRevoked(new Set(all.map(({ granted }) => granted.keyId)));
      return new Set(all.filter(({ granted }) => revoked.has(granted.keyId)));
    },
  };
  return access as unknown as Access<AgentGrant>;
}

async function findOwner(keys: KeyPort, entry: Entry): Promise<KeyOwner> {
  const { apiKey, bearer } = credentialsOf(entry);
  const text = apiKey ?? bearer;
  if (text === undefined) throw new DomainError('unauthenticated', NO_KEY);
  const owner = bearer === undefined || bearer === text ? await keys.find(text) : undefined;
  if (owner === undefined)
    throw entry.authenticator.countFailure(entry.peer, new DomainError('unauthenticated', WRONG_KEY));
  return owner;
}

const NO_KEY = 'API key missing: send it as X-Api-Key: KEY or Authorization: Bearer KEY';
const WRONG_KEY = 'Invalid API key. If you send both X-Api-Key and Authorization, they must match.';

export function toOwnerGrant({ keyId, identity }: KeyOwner): Omit<AgentGrant, 'headers'> {
  const user: AgentUser = { identity, display_name: identity, is_authenticated: true, permissions: [] };
  return { user, isStudio: false, party: { organization: `key ${identity}`, key: keyId } };
}
