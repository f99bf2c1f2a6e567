// One TLS server context for each intercepted host, kept while its leaf is young. Minting is synchronous, so
// two connections never mint the same leaf. Knows nothing of policy: whoever asks has been let through.
import { constants } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { BoundedCache } from '../base/bounded-cache.ts';
import type { LeafSubject } from './certificate.ts';
import { type CertificateAuthority, leafBackdateMs } from './certificate-authority.ts';

export type LeafCache = {
  /**
   * The same object while its leaf is current: clients resume their sessions on it, and on no other host's. To be
   * given to a socket before this turn of the event loop ends: a context whose host left the cache is emptied then.
   */
  contextFor(subject: LeafSubject): SecureContext;
  readonly size: number;
};

type Entry = { readonly context: SecureContext; readonly mintedAt: number; readonly renewAt: number };

const DEFAULT_MAX = 256;

/** `max` hosts are kept, least recently used leave first; `now` is milliseconds since the epoch. */
export function createLeafCache(
  ca: CertificateAuthority,
  options: { max?: number; now?: () => number } = {},
): LeafCache {
  const { max = DEFAULT_MAX, now = Date.now } = options;
  const entries = new BoundedCache<Entry>({ max, onGone: ({ context }) => setImmediate(empty, context) });

  return {
    contextFor(subject) {
      const at = now();
      const key = `${subject.kind} ${subject.host}`;
      const held = entries.get(key);
      if (held !== undefined && isCurrent(held, at)) return held.context;
      const entry = mint(ca, subject, at);
      entries.set(key, entry);
      return entry.context;
    },
    get size() {
      return entries.size;
    },
  };
}

/**
 * Frees what OpenSSL holds for a context, some 20 KB that V8 does not count: left to its collector, a client that asks
 * for ever new names fills the memory before the next collection. Connections made of the context keep their share.
 */
function empty({ context }: SecureContext): void {
  context.close();
}

/** A clock set back past the leaf's first second makes it as useless as one set past its last. */
function isCurrent(entry: Entry, at: number): boolean {
  return at < entry.renewAt && at >= entry.mintedAt - leafBackdateMs;
}

function mint(ca: CertificateAuthority, subject: LeafSubject, at: number): Entry {
  const { chainPem, keyPem, notAfter } = ca.issueLeaf(subject, new Date(at));
  const context = createSecureContext({
    cert: chainPem,
    key: keyPem,
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
  return { context, mintedAt: at, renewAt: at + (notAfter.getTime() - at) / 2 };
}
