// How long idle connections of each host may be used again, learnt from what its connections did: a host that keeps them
// longer than we do is tried with a longer limit, one that closes them first sets the limit.
import { BoundedCache } from '../../base/bounded-cache.ts';

export type IdleLimit = {
  /** A request that can be sent again may use a connection that was idle for less. */
  readonly limitMs: number;
  /** Any request of the same client may: for so long, connections of the host were seen to stay open. */
  readonly provenMs: number;
};

// node:http servers close idle connections after 5 s. A request that crosses the close is lost if it cannot be sent again.
const FIRST: IdleLimit = Object.freeze({ limitMs: 4_000, provenMs: 4_000 });
export const MAX_IDLE_MS = 60_000;
// A restart of the host closes connections of any age; they must not end all reuse.
const MIN_MS = 1_000;
const MARGIN_MS = 1_000;
/** After that a host is learnt anew: its configuration may have changed, or it was only restarted. */
const KEPT_MS = 600_000;
const MAX_HOSTS = 1_000;

/** `isClosing`: the host was seen to close a connection. */
type LearntLimit = IdleLimit & { readonly isClosing: boolean };

/** Each key is one of the pool. */
export class IdleLimits {
  /** Created with its first entry: the table of a sandbox that calls nothing costs nothing. */
  #learnt: BoundedCache<LearntLimit> | undefined;

  of(key: string): IdleLimit {
    return this.#learnt?.get(hostOf(key)) ?? FIRST;
  }

  /** The host closed a connection that was idle for so long. */
  onClosed(key: string, idleMs: number): void {
    const host = hostOf(key);
    const known = this.#learnt?.get(host);
    const seenMs = Math.min(MAX_IDLE_MS, Math.max(MIN_MS, idleMs - MARGIN_MS));
    const limitMs = known?.isClosing ? Math.min(known.limitMs, seenMs) : seenMs;
    this.#learn(host, { limitMs, provenMs: limitMs, isClosing: true });
  }

  /** A connection was open when it had been idle for so long, and we closed it. */
  onOutlived(key: string, idleMs: number): void {
    const host = hostOf(key);
    const known = this.#learnt?.get(host);
    // What the host was seen to close stands until it is forgotten. A lower limit may be of a connection pooled before.
    if (known?.isClosing || idleMs < (known?.limitMs ?? 0)) return;
    this.#learn(host, { limitMs: Math.min(MAX_IDLE_MS, 2 * idleMs), provenMs: idleMs, isClosing: false });
  }

  #learn(host: string, limit: LearntLimit): void {
    this.#learnt ??= new BoundedCache({ max: MAX_HOSTS, ttlMs: KEPT_MS });
    this.#learnt.set(host, limit);
  }
}

/** Without the revision: what is learnt about a host does not depend on the rules. */
function hostOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}
