// Lets everybody in who reaches the listener: `auth: none`, a listener on loopback, and the routes of an application. On loopback
// that includes the browser of its developer, and so every page they open: such requests are rejected by what browsers send.
import { DomainError } from '../../../base/domain-error.ts';
import type { RequestHead } from '../../../base/http/request-head.ts';
import type { Access } from '../../api/access.ts';
import type { CorsSettings } from '../configuration/cors-document.ts';
import type { ReadHeaders } from './configurable-headers.ts';
import type { AgentGrant } from './gate.ts';
import { isKnownOrigin, isLoopbackHost } from './loopback.ts';

type OpenRules = Pick<CorsSettings, 'origins' | 'originPattern'>;

/** `loopback`: the origins that are let in on a listener of loopback; undefined elsewhere. */
export function createOpenAccess(readHeaders: ReadHeaders, loopback?: OpenRules): Access<AgentGrant> {
  return {
    to: 'anyone',
    schemes: [],
    parameters: [],
    async enter({ head }) {
      if (loopback !== undefined) requireLocal(head, loopback);
      return { user: undefined, isStudio: false, headers: readHeaders(head) };
    },
    confirm: async (_, granted) => granted,
    callerOf: () => 'anyone',
    findRevoked: async () => new Set(),
  };
}

/** Without a key, the Host and the Origin are all that tells a program from a page: a page can send a POST without a preflight. */
function requireLocal(head: RequestHead, cors: OpenRules): void {
  if (!isLoopbackHost(head)) throw new DomainError('forbidden', OTHER_HOST);
  if (!cors.origins.includes('*') && !isKnownOrigin(head.field('origin'), cors))
    throw new DomainError('forbidden', OTHER_ORIGIN);
}

const OTHER_HOST =
  'Host must be localhost or a loopback address: this server has no authentication. Configure auth.path or a key file to serve other names';
const OTHER_ORIGIN =
  'Pages of this origin may not call this server: add the origin to http.cors.allow_origins or CORS_ALLOW_ORIGINS';
