// Resolves names to addresses. getaddrinfo blocks a thread of the pool for as long as a DNS server is silent, so lookups
// are limited in number, have a deadline, and are cached for seconds. Addresses are checked elsewhere.
import { lookup as systemLookup } from 'node:dns/promises';
import { BoundedCache } from '../../base/bounded-cache.ts';
import { SingleFlight } from '../../base/single-flight.ts';
import { isLocalhostName } from '../../base/address-guard.ts';
import { MAX_ADDRESSES } from '../limits.ts';
import { type LookupSlots, createLookupSlots } from './lookup-slots.ts';

export type ResolvedAddress = { readonly address: string; readonly family: 4 | 6 };
export type ResolveError = 'dns_failed' | 'upstream_timeout';
export type Lookup = (host: string) => Promise<readonly ResolvedAddress[]>;

export type Resolver = {
  /** At most 16 addresses, never none. Literal addresses and localhost names need no lookup. */
  resolve(host: string): Promise<readonly ResolvedAddress[] | ResolveError>;
  /** No connection to this address was possible. The host is looked up again once none of its addresses is left. */
  forget(host: string, address: string): void;
};

/** What is left of a response, for the rest of its time. */
type CachedResponse = { addresses: readonly ResolvedAddress[] };

const CACHE_MS = 30_000;
const CACHE_ENTRIES = 1_000;
const LOOPBACK: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

export function createResolver(options: {
  timeoutMs: number;
  /** Read at each use: it may change. */
  readonly maxLookups: number;
  /** Slots of the process; unlimited by default. */
  slots?: LookupSlots;
  lookup?: Lookup;
}): Resolver {
  const { timeoutMs, lookup = lookupSystem, slots = createLookupSlots(Number.POSITIVE_INFINITY) } = options;
  const responses = new BoundedCache<CachedResponse>({ max: CACHE_ENTRIES, ttlMs: CACHE_MS });
  const flight = new SingleFlight<readonly ResolvedAddress[] | ResolveError>();
  const share = slots.share(() => options.maxLookups);

  async function lookUp(host: string): Promise<readonly ResolvedAddress[] | ResolveError> {
    const slot = share.acquire(timeoutMs);
    if (slot !== true && !(await slot)) return 'upstream_timeout';
    try {
      const found = (await lookup(host)).slice(0, MAX_ADDRESSES);
      if (found.length === 0) return 'dns_failed';
      responses.set(host, { addresses: found });
      return found;
    } catch {
      return 'dns_failed';
    } finally {
      share.release();
    }
  }

  async function withDeadline(host: string): Promise<readonly ResolvedAddress[] | ResolveError> {
    const { promise, resolve } = Promise.withResolvers<ResolveError>();
    const timer = setTimeout(resolve, timeoutMs, 'upstream_timeout');
    try {
      return await Promise.race([flight.run(host, () => lookUp(host)), promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async resolve(host) {
      if (isLocalhostName(host)) return LOOPBACK;
      return responses.get(host)?.addresses ?? withDeadline(host);
    },
    forget(host, address) {
      const response = responses.get(host);
      if (!response) return;
      response.addresses = response.addresses.filter((one) => one.address !== address);
      if (response.addresses.length === 0) responses.delete(host);
    },
  };
}

async function lookupSystem(host: string): Promise<readonly ResolvedAddress[]> {
  const found = await systemLookup(host, { all: true, order: 'ipv4first' });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}
