// Names of `configurable` that no client sets: those by which a graph learns whose run it is, and those that the library of graphs
// keeps for itself. A config that a client has sent reaches code of the deployment without them. Pure.
import type { AgentUser } from '../../../agent-worker/protocol/calls.ts';
import type { JsonObject } from '../../../agent-worker/protocol/messages.ts';

/** By which a graph learns whose run it is: the server alone sets them, when the run starts. */
export const USER_KEYS = [
  'graph_auth_user',
  'graph_auth_user_id',
  'graph_auth_permissions',
  'langgraph_auth_user',
  'langgraph_auth_user_id',
  'langgraph_auth_permissions',
] as const;

/** Of whoever calls, for code of the deployment: nothing of it is stored. Empty without a user. */
export function userKeysOf(user: AgentUser | undefined): JsonObject {
  if (user === undefined) return {};
  const values = [user, user.identity, user.permissions];
  return Object.fromEntries(USER_KEYS.map((key, index) => [key, values[index % values.length]]));
}

/** The library finds its own objects under such names, and takes whatever is there for one. */
const OF_LIBRARY = '__pregel_';

export function withoutReserved(configurable: JsonObject): JsonObject {
  const reserved: readonly string[] = USER_KEYS;
  // A copy member by member would have what is under `__proto__` as its own.
  const isFree = (name: string): boolean =>
    !reserved.includes(name) && !name.startsWith(OF_LIBRARY) && name !== '__proto__';
  return Object.fromEntries(Object.entries(configurable).filter(([name]) => isFree(name)));
}

/** Of a config as a client has sent it, or as an assistant or a thread has it from one. */
export function withoutReservedNames(config: JsonObject): JsonObject {
  const { configurable } = config;
  if (typeof configurable !== 'object' || configurable === null || Array.isArray(configurable)) return config;
  return { ...config, configurable: withoutReserved(configurable as JsonObject) };
}
