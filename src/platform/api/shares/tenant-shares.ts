// What one organization, and one key of it, may use of a process: requests a second, connections to the database for reads
// and for writes, requests that wait for other systems, streams, and bytes of requests. Nobody else waits behind them.
import { DomainError } from '../../../base/domain-error.ts';
import type { Store } from '../../store/database.ts';
import type { RequestPools } from '../../store/pools.ts';
import type { TenantLimits } from '../limits.ts';
import { type Clock, systemClock } from './clock.ts';
import { FairQueue, type Leave, type Party, type QueueLimits } from './fair-queue.ts';
import { createRateLimit } from './rate-limit.ts';
import { RecentOrganizations } from './recent-organizations.ts';
import { ResponseTurns } from './response-turns.ts';

export type TenantShares = {
  /** Throws DomainError `too_many` above the rate of the key or of the organization. */
  admit(party: Party): void;
  /** The pools for one request: each connection is taken within the shares. */
  reads(party: Party): Store;
  writes(party: Party): Store;
  /** Runs what waits for other systems. */
  prepare<T>(party: Party, work: () => Promise<T>): Promise<T>;
  /** Runs what waits after the commit, for as long as the caller wants to. */
  respond<T>(party: Party, work: () => Promise<T>): Promise<T>;
  /** Counts a stream, and what is held for it, until `closed` resolves. */
  stream(
    party: Party,
    stream: { readonly heldBytes: number; readonly closed: Promise<unknown> },
  ): Promise<void>;
  /** Counts bytes of a request that the process holds. */
  ingest(party: Party, bytes: number): Promise<Leave>;
  /** Counts bytes of a response until `closed` resolves: a client may read slowly, or not at all. */
  unread(party: Party, bytes: number, closed: Promise<unknown>): Promise<void>;
  /** Who builds a large response lets the requests of others go on. */
  readonly responses: ResponseTurns;
  /** The writes of the process itself, such as events of failures: they have a share like that of an organization. */
  readonly own: Store;
};

/** A client that waits longer has better things to do. */
const WAIT_MS = 2_000;
const MAX_WAITING = 256;
/** What waits is held meanwhile. */
const MAX_UNREAD_WAITING = 16;
/** What a client has not used for a while it may send at once. */
const BURST_S = 2;
/** Who asks less often than this leaves the processors to others. */
const ACTIVE_MS = 1_000;
/** More than are active at a time; the tables of buckets stay small. */
const MAX_NAMES = 20_000;

export function createTenantShares(
  pools: Pick<RequestPools, 'reads' | 'writes'>,
  limits: TenantLimits,
  clock: Clock = systemClock,
): TenantShares {
  const rate = (perSecond: number) =>
    createRateLimit({ perSecond, burst: perSecond * BURST_S, maxNames: MAX_NAMES, now: clock.now });
  const rates = { key: rate(limits.keyRequestsPerS), organization: rate(limits.organizationRequestsPerS) };
  const waits = { waitMs: WAIT_MS, maxWaiting: MAX_WAITING };
  const recent = new RecentOrganizations({ windowMs: ACTIVE_MS, now: clock.now });
  const queue = (sizes: Sizes & Pick<QueueLimits, 'contention'>, what: string, waiting = waits): FairQueue =>
    new FairQueue(
      { ...sizes, ...waiting },
      clock,
      `Too many ${what} of this organization or key at the same time`,
    );
  const contention = { perOrganization: limits.organizationContendedReads, recent };
  const reads = queue({ ...sharesOf(pools.reads.size), contention }, 'reads');
  // Their share is the same beside others: those of one organization take turns at its audit chain, one commit after the other.
  const writes = queue(sharesOf(pools.writes.size), 'writes');
  const parts = partsOf(limits.preparing, limits.organizationPreparing);
  const preparing = queue(parts, 'requests that wait');
  // Without a limit for all: some callers wait for an hour, and few organizations would keep all others from waiting. Whoever
  // waits holds a connection of the server and nothing else.
  const responding = queue({ ...parts, places: Infinity }, 'requests that wait');
  const streams = queue(partsOf(limits.streams, limits.organizationStreams), 'streams', {
    ...waits,
    waitMs: 0,
  });
  const ingest = queue(partsOf(limits.ingestBytes, limits.organizationIngestBytes), 'bytes');
  const unread = queue(
    partsOf(limits.responseBytes, limits.organizationResponseBytes),
    'bytes of responses that are not read',
    { ...waits, maxWaiting: MAX_UNREAD_WAITING },
  );
  const within = (store: Store, line: FairQueue, party: Party): Store =>
    store.within((work) => line.run(party, work));
  return {
    admit({ organization, key }) {
      const waitMs = rates.key.take(key) || rates.organization.take(organization);
      if (waitMs > 0) throw new DomainError('too_many', TOO_FAST, waitMs);
      recent.note(organization);
    },
    reads: (party) => within(pools.reads, reads, party),
    writes: (party) => within(pools.writes, writes, party),
    prepare: (party, work) => preparing.run(party, work),
    respond: (party, work) => responding.run(party, work),
    async stream(party, { heldBytes, closed }) {
      void closed.then(await streams.enter(party));
      if (heldBytes > 0) void closed.then(await unread.enter(party, heldBytes));
    },
    ingest: (party, bytes) => ingest.enter(party, bytes),
    async unread(party, bytes, closed) {
      void closed.then(await unread.enter(party, bytes));
    },
    responses: new ResponseTurns(clock, recent),
    own: within(pools.writes, writes, OWN),
  };
}

/** No organization has such an id. */
const OWN: Party = { organization: 'own', key: 'own' };
const TOO_FAST = 'Too many requests of this organization or key: send fewer in a second';

type Sizes = Pick<QueueLimits, 'places' | 'perOrganization' | 'perKey'>;

/**
 * Of the connections of a pool: three quarters for an organization, so that another one finds a free connection although
 * this one keeps its own busy for long.
 */
export function sharesOf(places: number): Sizes {
  const perOrganization = Math.max(1, Math.min(places - 1, Math.ceil(places * 0.75)));
  return { places, perOrganization, perKey: perOrganization < 3 ? perOrganization : perOrganization - 1 };
}

/** A key may have half of what its organization may have. */
function partsOf(places: number, perOrganization: number): Sizes {
  return { places, perOrganization, perKey: Math.max(1, Math.floor(perOrganization / 2)) };
}
