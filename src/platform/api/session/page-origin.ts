// The origin that a browser sent a request to, where sessions are allowed: over TLS, or on loopback.
import type { RequestHead } from '../../../base/http/request-head.ts';
import type { Socket } from 'node:net';
import { rememberLast } from '../../../base/remember-last.ts';
import { isTrustedPeer, type TrustedProxies } from '../client-address.ts';

export type OriginOptions = {
  readonly trustedProxies: TrustedProxies;
  /** The setting: `https://platform.example.com`. */
  readonly publicUrl?: string | undefined;
};

/** Undefined where a cookie could be read on its way. Only a trusted proxy is believed that it was asked over TLS. */
export function pageOrigin(
  { remoteAddress = '' }: Pick<Socket, 'remoteAddress'>,
  head: Pick<RequestHead, 'host' | 'field'>,
  { trustedProxies, publicUrl }: OriginOptions,
): string | undefined {
  if (publicUrl !== undefined) return new URL(publicUrl).origin;
  const { host } = head;
  if (host === undefined) return undefined;
  const hops = head.field('x-forwarded-proto')?.split(',') ?? [];
  const isTls = hops.length > 0 && hops.every((hop) => hop.trim().toLowerCase() === 'https');
  if (isTls && isTrustedPeer(remoteAddress, trustedProxies)) return toOrigin(`https://${host}`);
  return LOOPBACK_HOST.test(host) && LOOPBACK.test(remoteAddress) ? toOrigin(`http://${host}`) : undefined;
}

/** Without a default port, as browsers write it. */
const toOrigin = rememberLast((text) => (URL.canParse(text) ? new URL(text).origin : undefined));

const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;
