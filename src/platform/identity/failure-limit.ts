// A limit on failed authentications: per address and in total, in tables of bounded size. It only counts failures. A
// valid key is accepted whatever the count, so that clients who share an address with an attacker are not locked out.
import { BoundedCache } from '../../base/bounded-cache.ts';

export type FailureLimit = {
  /** Counts one failure; returns 0, or the milliseconds that `peer` has to wait. */
  count(peer: string): number;
  /** Whether `peer` itself is above its limit. */
  isExceeded(peer: string): boolean;
};

type Window = { failures: number; readonly endsMs: number };

/** `now` returns milliseconds. */
export function createFailureLimit(options: {
  now(): number;
  readonly windowMs: number;
  readonly perPeer: number;
  readonly total: number;
  readonly maxPeers: number;
}): FailureLimit {
  const { now, windowMs, perPeer, total, maxPeers } = options;
  const peers = new BoundedCache<Window>({ max: maxPeers, ttlMs: windowMs, now });
  const open = (): Window => ({ failures: 0, endsMs: now() + windowMs });
  let overall = open();

  return {
    count(peer) {
      const group = groupOf(peer);
      let own = peers.get(group);
      if (own === undefined) peers.set(group, (own = open()));
      if (now() >= overall.endsMs) overall = open();
      own.failures += 1;
      overall.failures += 1;
      const waits = [
        own.failures > perPeer ? own.endsMs - now() : 0,
        overall.failures > total ? overall.endsMs - now() : 0,
      ];
      return Math.max(...waits);
    },
    isExceeded: (peer) => (peers.get(groupOf(peer))?.failures ?? 0) > perPeer,
  };
}

/** A customer usually has a whole IPv6 /64 network, and can send from any address in it. */
export function groupOf(peer: string): string {
  const address = peer.replace(/%.*$/, '').toLowerCase();
  const [, mapped] = /^(?:0*:){2,5}ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  if (!address.includes(':')) return address;
  const [before = '', after = ''] = address.split('::');
  const first = before === '' ? [] : before.split(':');
  const last = after === '' ? [] : after.split(':');
  const zeros = address.includes('::') ? Math.max(0, 8 - first.length - last.length) : 0;
  const groups = [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
