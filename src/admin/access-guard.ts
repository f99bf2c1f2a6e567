// Who may ask: by token, and without one only under a Host that no foreign page can take (DNS rebinding). It judges the
// head alone and must not know routes. The sandbox may share this loopback: nothing that it sends may lock the operator
// out, so a right token passes whatever was tried before.
import type { Secret } from '../base/secret.ts';
import { type AdminResponse, refused, retryAfter } from './answer.ts';
import type { RateLimit } from './rate-limit.ts';
import type { RequestHead } from './request-head.ts';

export type Access = {
  readonly token: 'right' | 'wrong' | 'absent';
  readonly refusal: AdminResponse | undefined;
};

export type AccessGuard = { judge(head: RequestHead): Access };

export function createAccessGuard(options: {
  readonly token: Secret;
  /** Names, with or without a port, that the operator allows in Host. */
  readonly hosts: readonly string[];
  readonly wrongTokens: RateLimit;
}): AccessGuard {
  const { token, wrongTokens } = options;
  const hosts = new Set(options.hosts.map((host) => host.toLowerCase()));
  return {
    judge(head) {
      const found = judgeToken(head, token);
      const waitMs = found === 'wrong' ? wrongTokens.take() : 0;
      const refusal =
        judgeForm(head, found === 'right' ? undefined : hosts) ??
        (found === 'wrong' ? refuseToken(waitMs) : undefined);
      return { token: found, refusal };
    },
  };
}

/** For a route that needs a token, where none came. */
export const tokenRequired: AdminResponse = refused({
  status: 401,
  reason: 'no_token',
  detail: 'Send the admin token as Authorization: Bearer TOKEN or as X-Api-Key: TOKEN',
  fields: { 'WWW-Authenticate': 'Bearer' },
});

function refuseToken(waitMs: number): AdminResponse {
  if (waitMs > 0) {
    const detail = 'Too many wrong tokens: correct the token; the right one is taken at any time';
    return refused({ status: 429, reason: 'wrong_token', detail, fields: retryAfter(waitMs) });
  }
  const detail =
    'The token is wrong: send the admin token once, as Authorization: Bearer TOKEN or as X-Api-Key: TOKEN';
  const fields = { 'WWW-Authenticate': 'Bearer error="invalid_token"' };
  return refused({ status: 401, reason: 'wrong_token', detail, fields });
}

function judgeToken(head: RequestHead, token: Secret): Access['token'] {
  const bearers = head.values('authorization');
  const keys = head.values('x-api-key');
  if (bearers.length + keys.length === 0) return 'absent';
  // Each is compared whatever the others were, so that time tells nothing.
  const candidates = [...bearers.map((value) => /^bearer +(\S+)$/i.exec(value)?.[1] ?? ''), ...keys];
  const wrong = candidates.filter((candidate) => !token.equals(candidate)).length;
  return wrong === 0 && bearers.length <= 1 && keys.length <= 1 ? 'right' : 'wrong';
}

/** `hosts` is undefined for a caller with the token, who may use any name. */
function judgeForm(head: RequestHead, hosts: ReadonlySet<string> | undefined): AdminResponse | undefined {
  if (!head.isKnownVersion) return UNKNOWN_VERSION;
  if (!head.isFramedPlainly) return ODD_FRAMING;
  if (head.host === undefined) return BAD_HOST;
  if (hosts !== undefined && !isOwnHost(head.host, hosts)) return FOREIGN_HOST;
  return head.isProxied || !head.isOriginForm ? PROXIED : undefined;
}

const UNKNOWN_VERSION: AdminResponse = refused({
  status: 505,
  reason: 'version',
  detail: 'The only versions are HTTP/1.0 and HTTP/1.1',
});
const ODD_FRAMING: AdminResponse = refused({
  status: 400,
  reason: 'framing',
  detail: 'Of Transfer-Encoding only one chunked is known, over HTTP/1.1: send Content-Length instead',
});
const BAD_HOST: AdminResponse = refused({
  status: 400,
  reason: 'bad_host',
  detail: 'Send exactly one Host, a name or an address with or without a port',
});
const FOREIGN_HOST: AdminResponse = refused({
  status: 421,
  reason: 'foreign_host',
  detail: 'Without the token this API answers under localhost, a loopback address or a name in admin.hosts',
});
const PROXIED: AdminResponse = refused({
  status: 403,
  reason: 'proxied',
  detail: 'Connect to this API directly: requests that came through a proxy are refused (unset HTTP_PROXY)',
});

const LOOPBACK = /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\])$/;

function isOwnHost(host: string, hosts: ReadonlySet<string>): boolean {
  const name = host.replace(/:\d+$/, '');
  return LOOPBACK.test(name) || hosts.has(name) || hosts.has(host);
}
