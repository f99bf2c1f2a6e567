// Lets everybody in who reaches the listener: `auth: none`, a listener on loopback, and the routes of an application.
import type { Access } from '../../api/access.ts';
import type { ReadHeaders } from './configurable-headers.ts';
import type { AgentGrant } from './gate.ts';

export function createOpenAccess(readHeaders: ReadHeaders): Access<AgentGrant> {
  return {
    to: 'anyone',
    schemes: [],
    parameters: [],
    enter: async ({ head }) => ({ user: undefined, isStudio: false, headers: readHeaders(head) }),
    confirm: async (_, granted) => granted,
    callerOf: () => 'anyone',
    findRevoked: async () => new Set(),
  };
}
