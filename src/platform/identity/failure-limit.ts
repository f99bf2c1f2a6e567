// How often authentication may fail: by address and in all, in tables that cannot grow. It only counts; a right key is
// never asked about here, so that whoever shares an address with an attacker is not locked out with him.
import { BoundedCache } from '../../base/bounded-cache.ts';

export type FailureLimit = {
  /** Counts one failure; 0, or how long `peer` should stay away. */
  count(peer: string): number;
};

type Window = { failures: number; readonly endsMs: number };

/** `now` in milliseconds. */
export function createFailureLimit(options: {
  now(): number;
  readonly windowMs: number;
  readonly perPeer: number;
  readonly inAll: number;
  readonly maxPeers: number;
}): FailureLimit {
  const { now, windowMs, perPeer, inAll, maxPeers } = options;
  const peers = new BoundedCache<Window>({ max: maxPeers, ttlMs: windowMs, now });
  const open = (): Window => ({ failures: 0, endsMs: now() + windowMs });
  let all = open();

  return {
    count(peer) {
      const group = groupOf(peer);
      let own = peers.get(group);
      if (own === undefined) peers.set(group, (own = open()));
      if (now() >= all.endsMs) all = open();
      own.failures += 1;
      all.failures += 1;
      const waits = [
        own.failures > perPeer ? own.endsMs - now() : 0,
        all.failures > inAll ? all.endsMs - now() : 0,
      ];
      return Math.max(...waits);
    },
  };
}

/** One customer's IPv6 network is mostly a /64, every address of which he may use. */
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
