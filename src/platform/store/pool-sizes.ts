// How many connections each pool of a process has. Data alone: the config reads it without loading a database driver.

/** `long` is for work in the background, whose statements may take minutes; `jobs` for the queue of jobs itself. */
export type Purpose = 'authentication' | 'reads' | 'writes' | 'long' | 'jobs';

export type PoolSizes = Readonly<Record<Purpose, number>>;

/** A pool of one connection for each purpose. */
export const MIN_CONNECTIONS = 5;

/** Of notifications: one connection that is open as long as the process. */
const NOTIFICATIONS = 1;

/**
 * How `total` connections are divided: the sum of the pools, with the connection for notifications, is `total`. Below 6
 * `long` is 0: it has no pool of its own then, and uses that of the writes.
 */
export function divideConnections(total: number): PoolSizes {
  const authentication = total < 10 ? 1 : 2;
  const rest = total - authentication - NOTIFICATIONS;
  const jobs = Math.min(4, Math.max(1, Math.floor(rest / 8)));
  const long = rest < 4 ? 0 : Math.min(8, Math.max(1, Math.floor(rest / 8)));
  const writes = Math.max(1, Math.floor((rest - jobs - long) * 0.4));
  return { authentication, jobs, long, writes, reads: rest - jobs - long - writes };
}
