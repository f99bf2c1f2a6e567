// Which HTTP version a tunnel uses (RFC 7301): what the client offers and the upstream chose. The choice of an upstream is
// cached as a hint, so that the handshake of the next client need not wait for the upstream's. A changed choice is
// detected at the next dial.
import { BoundedCache } from '../../base/bounded-cache.ts';
import type { Authority } from '../../policy/authority/authority.ts';

export type Protocol = 'h2' | 'http/1.1';

export type AlpnHints = ReturnType<typeof createAlpnHints>;

const HTTP1: readonly Protocol[] = Object.freeze(['http/1.1']);
const MAX_HINTS = 1_000;
const HINT_MS = 600_000;

/** The supported protocols of the client's list, in its order; a client without a list speaks HTTP/1.1. */
export function offeredProtocols(alpn: readonly string[] | undefined): readonly Protocol[] {
  if (alpn === undefined || (alpn.length === 1 && alpn[0] === 'http/1.1')) return HTTP1;
  return [...new Set(alpn)].filter((name) => name === 'h2' || name === 'http/1.1');
}

/** `now` must be monotonic, in milliseconds. */
export function createAlpnHints(now?: () => number) {
  type Choices = ReadonlyMap<string, Protocol>;
  const hints = new BoundedCache<Choices>({ max: MAX_HINTS, ttlMs: HINT_MS, ...(now ? { now } : {}) });
  return {
    /** The upstream's last choice among these offers. */
    get: ({ text }: Authority, offered: readonly Protocol[]) => hints.get(text)?.get(offered.join()),
    set({ text }: Authority, offered: readonly Protocol[], chosen: Protocol): void {
      hints.set(text, new Map(hints.get(text)).set(offered.join(), chosen));
    },
    /** The upstream has changed its choice. */
    forget: ({ text }: Authority): void => hints.delete(text),
  };
}
