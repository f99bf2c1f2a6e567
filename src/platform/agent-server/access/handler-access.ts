// Lets in whom the authentication handler of the deployment accepts, or the studio. The handler is asked for every request:
// nothing that it returned is kept for another one.
import { createHash } from 'node:crypto';
import type { AgentUser, RequestToAuthenticate } from '../../../agent-worker/protocol/calls.ts';
import { DomainError, GivenRefusal } from '../../../base/domain-error.ts';
import type { RequestHead } from '../../../base/http/request-head.ts';
import type { Access, Entry } from '../../api/access.ts';
import type { ReadHeaders } from './configurable-headers.ts';
import type { AgentGrant } from './gate.ts';
import { isGatewayField } from './gateway-callers.ts';
import type { HandlerCalls } from './handler-calls.ts';
import { createHandlerTurns } from './handler-turns.ts';
import { isStudio, isStudioUser, STUDIO_USER, type StudioRules } from './studio.ts';

type HandlerAccessParts = {
  readonly calls: HandlerCalls;
  readonly studio: StudioRules;
  readonly readHeaders: ReadHeaders;
};

export function createHandlerAccess({ calls, studio, readHeaders }: HandlerAccessParts): Access<AgentGrant> {
  const takeTurn = createHandlerTurns();
  return {
    to: 'user',
    schemes: ['API Key', 'Bearer Auth'],
    parameters: [],
    isOffDatabase: true,
    enter: (entry) =>
      takeTurn(entry, async () => {
        const headers = readHeaders(entry.head);
        if (await isStudio(studio, entry)) return { ...toGrant(STUDIO_USER), isStudio: true, headers };
        return { ...toGrant(await authenticate(calls, entry)), isStudio: false, headers };
      }),
    // Only the handler could say more, and a transaction must not wait for it.
    confirm: async (_, granted) => granted,
    callerOf: ({ party }) => party?.key ?? 'anyone',
    findRevoked: async () => new Set(),
  };
}

/** Users share limits with nobody. The names of parties are remembered for a while, so that none is long. */
function toGrant(user: AgentUser): Pick<AgentGrant, 'user' | 'party'> {
  const { identity } = user;
  const name = identity.length <= MAX_NAME ? identity : createHash('sha256').update(identity).digest('hex');
  return { user, party: { organization: `user ${name}`, key: name } };
}

const MAX_NAME = 128;

async function authenticate(calls: HandlerCalls, entry: Entry): Promise<AgentUser> {
  try {
    const request = toRequest(entry.head);
    const user = await calls.ask('auth.authenticate', request, { subject: 'authenticate' });
    if (typeof user.identity !== 'string' || user.identity === '')
      throw new GivenRefusal(500, 'The handler authenticate returned no identity');
    // Also from a worker in another language, or with code that goes around its checks.
    if (isStudioUser(user))
      throw new DomainError(
        'forbidden',
        'The authentication returned the user that is reserved for the studio',
      );
    return user;
  } catch (error) {
    // Only counted: the response is the one that the handler has chosen.
    if (error instanceof GivenRefusal && error.status < 500)
      entry.authenticator.countFailure(entry.peer, new DomainError('unauthenticated', error.message));
    throw error;
  }
}

function toRequest({ method, target, host, names, values }: RequestHead): RequestToAuthenticate {
  // Cookies are joined as RFC 9113 §8.2.3 says, everything else as a list.
  const own = names.filter((name) => !isGatewayField(name));
  const joined = own.map((name) => [name, values(name).join(name === 'cookie' ? '; ' : ', ')] as const);
  return { method, url: `http://${host ?? 'localhost'}${target}`, headers: Object.fromEntries(joined) };
}
