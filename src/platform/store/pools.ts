// The connections of a process, in pools by purpose: what fills one pool takes no connection from another. A full pool of
// reads, for example, neither locks out authentication nor delays a write.
import { type DatabaseOptions, openDatabase, type PoolLimits, type Store } from './database.ts';
import { divideConnections, type Purpose } from './pool-sizes.ts';

/** Every wait ends: for a connection, for a lock, for a statement. */
export const poolLimits: Readonly<Record<Purpose, PoolLimits>> = {
  authentication: { acquireMs: 3_000, lockMs: 1_000, statementMs: 3_000 },
  reads: { acquireMs: 5_000, lockMs: 5_000, statementMs: 10_000 },
  // A write waits for the audit chain of its organization.
  writes: { acquireMs: 5_000, lockMs: 10_000, statementMs: 30_000 },
  long: { acquireMs: 30_000, lockMs: 10_000, statementMs: 600_000 },
  jobs: { acquireMs: 10_000, lockMs: 10_000, statementMs: 30_000 },
};

/** The pools that requests use. */
export type RequestPools = {
  /** For finding out who calls and what they may do. */
  readonly authentication: Store;
  readonly reads: Store;
  readonly writes: Store;
};

export type Pools = RequestPools & {
  readonly long: Store;
  /** By purpose. */
  connections(): Readonly<Record<string, ReturnType<Store['connections']>>>;
  /** Waits for running queries. */
  close(): Promise<void>;
};

/** Opens no connection before the first query. */
export function openPools(options: Omit<DatabaseOptions, 'limits'>): Pools {
  const sizes = divideConnections(options.maxConnections);
  const open = (purpose: Purpose): Store =>
    openDatabase({ ...options, maxConnections: sizes[purpose], limits: poolLimits[purpose] });
  const writes = open('writes');
  const pools = {
    authentication: open('authentication'),
    reads: open('reads'),
    writes,
    ...(sizes.long === 0 ? {} : { long: open('long') }),
  };
  const entries = Object.entries(pools);
  return {
    long: writes,
    ...pools,
    connections: () => Object.fromEntries(entries.map(([purpose, pool]) => [purpose, pool.connections()])),
    async close() {
      await Promise.all(entries.map(([, pool]) => pool.close()));
    },
  };
}
