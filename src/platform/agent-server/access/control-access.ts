// Lets in the runner of the deployment, and nobody else: to all others the routes do not exist.
import { DomainError } from '../../../base/domain-error.ts';
import type { Access } from '../../api/access.ts';
import type { GatewayCallers } from './gateway-callers.ts';

export function createControlAccess(callers: GatewayCallers): Access<Record<never, never>> {
  return {
    to: 'the runner of the deployment',
    schemes: [],
    parameters: [],
    isOffDatabase: true,
    async enter({ head }) {
      if (!callers.isRunner(head)) throw new DomainError('not_found', 'There is no such path');
      return {};
    },
    confirm: async () => ({}),
    callerOf: () => 'runner',
    findRevoked: async () => new Set(),
  };
}
