// The reserved host: a name that clients request through the proxy to read what it does for them and to get its CA
// certificate. It is never looked up or dialled. One for each sandbox, so that it can show nothing of another one.
import { BoundedCache } from '../../base/bounded-cache.ts';
import { RateLimit } from '../../base/rate-limit.ts';
import type { PublicCertificates } from '../../tls/public-certificates.ts';
import { RefusalHistory } from './refusal-history.ts';

export type ReservedHost = {
  /** Canonical, without a port. */
  readonly name: string;
  readonly certificates: PublicCertificates;
  readonly refusals: RefusalHistory;
  /** Counts one request of the client with this address; false if it has had its share of this second. */
  readonly take: TakeOne;
  /** The same for requests to the proxy port, which need no token: whoever makes them must not use up what clients have. */
  readonly takeOnPort: TakeOne;
};

type TakeOne = (clientAddress: string | undefined) => boolean;

const MAX_REQUESTS = 10;
const WINDOW_MS = 1_000;
// Client addresses that are remembered; an address that was evicted begins again.
const MAX_CLIENTS = 256;

export function createReservedHost(options: {
  readonly name: string;
  readonly certificates: PublicCertificates;
  readonly now?: (() => number) | undefined;
}): ReservedHost {
  const { name, certificates, now = () => performance.now() } = options;
  return {
    name,
    certificates,
    refusals: new RefusalHistory(),
    take: limitOfEachClient(now),
    takeOnPort: limitOfEachClient(now),
  };
}

function limitOfEachClient(now: () => number): TakeOne {
  // Created with the first request: there may be a thousand sandboxes.
  let limits: BoundedCache<RateLimit> | undefined;
  return (clientAddress = '') => {
    limits ??= new BoundedCache<RateLimit>({ max: MAX_CLIENTS });
    const known = limits.get(clientAddress);
    const limit = known ?? new RateLimit(MAX_REQUESTS, WINDOW_MS, now);
    if (known === undefined) limits.set(clientAddress, limit);
    return limit.take() === 0;
  };
}
