// Who may call: a caller with the token, and without it only under a Host that no foreign page can use (DNS rebinding).
// Checks the head alone. The sandbox may share this loopback: nothing that it sends may lock the operator out, so a right
// token is accepted whatever was tried before.
import type { RateLimit } from '../base/rate-limit.ts';
import type { RequestHead } from '../base/http/request-head.ts';
import type { Secret } from '../base/secret.ts';
import { adminError, type AdminErrorCode, type AdminResponse } from './admin-errors.ts';

export type Access = {
  readonly token: 'right' | 'wrong' | 'absent';
  readonly rejection: AdminResponse | undefined;
};

export type AccessGuard = {
  check(head: RequestHead): Access;
  /** As `check` of a head without the token, whatever token it has. */
  rejectForm(head: RequestHead): AdminResponse | undefined;
  /** Undefined: the candidate is the token. */
  rejectToken(candidate: string): AdminResponse | undefined;
};

export function createAccessGuard(options: {
  /** Undefined: no caller can have it. */
  readonly token: Secret | undefined;
  /** Without the token, Host may also be any address: no foreign page is found under one. */
  readonly allowsAddresses?: boolean;
  /** Names, with or without a port, that the operator allows in Host. */
  readonly hosts: readonly string[];
  readonly wrongTokens: RateLimit;
}): AccessGuard {
  const { token, wrongTokens, allowsAddresses = false } = options;
  const own = { hosts: new Set(options.hosts.map((host) => host.toLowerCase())), allowsAddresses };
  return {
    check(head) {
      const found = token === undefined ? 'absent' : checkToken(head, token);
      const waitMs = found === 'wrong' ? wrongTokens.take() : 0;
      const code = checkForm(head, found === 'right' ? undefined : own);
      if (code !== undefined) return { token: found, rejection: adminError(code) };
      return { token: found, rejection: found === 'wrong' ? rejectToken(waitMs) : undefined };
    },
    rejectForm(head) {
      const code = checkForm(head, own);
      return code === undefined ? undefined : adminError(code);
    },
    rejectToken: (candidate) => (token?.equals(candidate) ? undefined : rejectToken(wrongTokens.take())),
  };
}

/** For a route that needs a token, where none was sent. */
export const tokenRequired: AdminResponse = adminError('no_token', {
  fields: { 'WWW-Authenticate': 'Bearer' },
});

function rejectToken(waitMs: number): AdminResponse {
  if (waitMs > 0) return { ...adminError('too_many_wrong_tokens', { waitMs }), reason: 'wrong_token' };
  return adminError('wrong_token', { fields: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } });
}

function checkToken(head: RequestHead, token: Secret): Access['token'] {
  const bearers = head.values('authorization');
  const keys = head.values('x-api-key');
  if (bearers.length + keys.length === 0) return 'absent';
  // Each is compared whatever the others were, so that the time reveals nothing.
  const candidates = [...bearers.map((value) => /^bearer +(\S+)$/i.exec(value)?.[1] ?? ''), ...keys];
  const wrong = candidates.filter((candidate) => !token.equals(candidate)).length;
  return wrong === 0 && bearers.length <= 1 && keys.length <= 1 ? 'right' : 'wrong';
}

type OwnHosts = { readonly hosts: ReadonlySet<string>; readonly allowsAddresses: boolean };

/** `own` is undefined for a caller with the token, who may use any name. */
function checkForm(head: RequestHead, own: OwnHosts | undefined): AdminErrorCode | undefined {
  if (head.version !== '1.1' && head.version !== '1.0') return 'version';
  if (!head.isFramedPlainly) return 'framing';
  if (head.host === undefined) return 'bad_host';
  if (own !== undefined && !isOwnHost(head.host, own)) return 'foreign_host';
  return !head.isOriginForm || head.names.some((name) => PROXY_FIELD.test(name)) ? 'proxied' : undefined;
}

/** A proxy or a protocol upgrade left its mark. */
const PROXY_FIELD = /^(?:via|forwarded|upgrade|x-forwarded-.*|proxy-.*)$/;
const LOOPBACK = /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}|\[::1\])$/;

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])$/;

function isOwnHost(host: string, { hosts, allowsAddresses }: OwnHosts): boolean {
  const name = host.replace(/:\d+$/, '');
  if (allowsAddresses && ADDRESS.test(name)) return true;
  return LOOPBACK.test(name) || hosts.has(name) || hosts.has(host);
}
