// Caches one TLS server context for each intercepted host, until half of the validity of its leaf is over. Issuing a leaf
// is synchronous, so two connections never issue the same one. Callers have checked the host against the policy.
import { constants } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { BoundedCache } from '../base/bounded-cache.ts';
import type { LeafSubject } from './certificate.ts';
import { type CertificateAuthority, leafBackdateMs } from './certificate-authority.ts';

export type LeafCache = {
  /**
   * The same object while its leaf is current: clients resume sessions of this host only. The caller must give it to a
   * socket in this turn of the event loop: a context that leaves the cache is closed after it.
   */
  contextFor(subject: LeafSubject): SecureContext;
  readonly size: number;
};

type Entry = { readonly context: SecureContext; readonly issuedAt: number; readonly renewAt: number };

const DEFAULT_MAX = 256;

/** Caches up to `max` hosts and evicts the least recently used; `now` is milliseconds since the epoch. `onIssued`: of each leaf. */
export function createLeafCache(
  ca: CertificateAuthority,
  options: { max?: number; now?: () => number; onIssued?: () => void } = {},
): LeafCache {
  const { max = DEFAULT_MAX, now = Date.now, onIssued } = options;
  const entries = new BoundedCache<Entry>({ max, onEvict: ({ context }) => setImmediate(close, context) });

  return {
    contextFor(subject) {
      const at = now();
      const key = `${subject.kind} ${subject.host}`;
      const cached = entries.get(key);
      if (cached !== undefined && isCurrent(cached, at)) return cached.context;
      const entry = issue(ca, subject, at);
      entries.set(key, entry);
      onIssued?.();
      return entry.context;
    },
    get size() {
      return entries.size;
    },
  };
}

/**
 * Frees what OpenSSL holds for a context, some 20 KB that V8 does not count: left to the garbage collector, a client that
 * requests ever new names fills the memory before the next collection. Open connections hold their own references.
 */
function close({ context }: SecureContext): void {
  context.close();
}

/** A leaf is as useless with a clock set back before its validity as with one after it. */
function isCurrent(entry: Entry, at: number): boolean {
  return at < entry.renewAt && at >= entry.issuedAt - leafBackdateMs;
}

function issue(ca: CertificateAuthority, subject: LeafSubject, at: number): Entry {
  const { chainPem, keyPem, notAfter } = ca.issueLeaf(subject, new Date(at));
  const context = createSecureContext({
    cert: chainPem,
    key: keyPem,
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
  return { context, issuedAt: at, renewAt: at + (notAfter.getTime() - at) / 2 };
}
