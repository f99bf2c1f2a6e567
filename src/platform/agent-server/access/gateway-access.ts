// Lets in whom the gateway of the deployment has let in by a key of the platform. All of them are the owner of the deployment: there
// are no users, so that nothing is hidden from anybody. A key that is revoked has its requests cut off by the gateway.
import { DomainError } from '../../../base/domain-error.ts';
import type { Access } from '../../api/access.ts';
import type { ReadHeaders } from './configurable-headers.ts';
import type { AgentGrant } from './gate.ts';
import type { GatewayCallers } from './gateway-callers.ts';
import { toOwnerGrant } from './key-access.ts';

export function createGatewayAccess({
  callers,
  readHeaders,
}: {
  readonly callers: GatewayCallers;
  readonly readHeaders: ReadHeaders;
}): Access<AgentGrant> {
  return {
    to: 'owner',
    schemes: ['API Key', 'Bearer Auth'],
    parameters: [],
    isOffDatabase: true,
    async enter({ head }) {
      const owner = callers.find(head);
      if (owner === undefined) throw new DomainError('unauthenticated', NO_CALLER);
      return { ...toOwnerGrant(owner), headers: readHeaders(head) };
    },
    confirm: async (_, granted) => granted,
    callerOf: ({ party }) => party?.key ?? 'anyone',
    findRevoked: async () => new Set(),
  };
}

const NO_CALLER = 'Requests to this deployment must come by its gateway, with a key of the platform';
