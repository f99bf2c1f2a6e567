// `auth.authorize`: asks the handler of an event what the user may do, or see. Of the handlers that fit, the one with the most
// specific name decides alone.
import { type Method, Refusal } from '../method.ts';
import type { Authorized } from '../protocol/calls.ts';
import type { JsonObject } from '../protocol/messages.ts';
import { toExactJson, toJson } from './plain-json.ts';

/** Of the deployment: it may return anything, or a promise of it. */
export type Handler = (given: unknown) => unknown;

export function authorizeBy(handlers: ReadonlyMap<string, Handler>): Method<'auth.authorize'> {
  return async ({ resource, action, value, user }) => {
    const names = [`${resource}:${action}`, resource, `*:${action}`, '*'];
    const handler = names.map((name) => handlers.get(name)).find((one) => one !== undefined);
    if (handler === undefined) return { isAllowed: true, value };
    const event = `${resource}:${action}`;
    const returned = await handler({ event, resource, action, value, permissions: user.permissions, user });
    return toAuthorized(returned, value, event);
  };
}

/** `value` is what the handler may have changed. */
function toAuthorized(returned: unknown, value: JsonObject, event: string): Authorized {
  if (returned === false) return { isAllowed: false };
  const changed = toJson(value, `a value for ${event}`) as JsonObject;
  if (returned === undefined || returned === null || returned === true)
    return { isAllowed: true, value: changed };
  if (typeof returned !== 'object' || Array.isArray(returned))
    throw new Refusal(
      'invalid',
      `The handler of ${event} returned neither a filter nor a boolean: return an object, true, false or nothing`,
    );
  const filter = toExactJson(returned, `a filter for ${event}`) as JsonObject;
  return { isAllowed: true, filter, value: changed };
}
