// `auth.authenticate`: shows a request to the handler of the deployment, and brings what it returns into one form.
import { type Method, Refusal } from '../method.ts';
import type { AgentUser, RequestToAuthenticate } from '../protocol/calls.ts';
import type { JsonObject } from '../protocol/messages.ts';
import type { Handler } from './authorization.ts';
import { toJson } from './plain-json.ts';

export function authenticateBy(handler: Handler): Method<'auth.authenticate'> {
  return async (params, { signal }) => toUser(await handler(toRequest(params, signal)));
}

/** Without its body, which is not read before the caller is known. */
function toRequest({ method, url, headers }: RequestToAuthenticate, signal: AbortSignal): Request {
  return new Request(url, { method, headers, signal });
}

/** Throws a Refusal. Members of its own pass as they are. */
function toUser(returned: unknown): AgentUser {
  const given = typeof returned === 'string' ? { identity: returned } : toJson(returned, 'a user');
  if (!isPlainObject(given) || typeof given['identity'] !== 'string' || given['identity'] === '')
    throw new Refusal(
      'invalid',
      'The authenticate handler must return the identity of the user: a text, or an object with the text identity',
    );
  const { identity } = given;
  const { permissions, display_name, is_authenticated } = given;
  return {
    ...given,
    identity,
    display_name: typeof display_name === 'string' ? display_name : identity,
    is_authenticated: typeof is_authenticated === 'boolean' ? is_authenticated : true,
    permissions: Array.isArray(permissions) ? permissions.filter((one) => typeof one === 'string') : [],
  };
}

function isPlainObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
