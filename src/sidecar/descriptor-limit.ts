// How many connections the process may hold: what its descriptors allow, less what a change of the rules and the log
// need, in three equal parts: clients, the hosts that they use, and hosts that lie idle.
import { readFileSync } from 'node:fs';

// For everything that is no client and no host: files of the state, the admin API, callbacks, the runtime itself.
const RESERVED = 512;
const AT_LEAST = 64;

/** `openFiles`: the limit of the process; unknown or without bound: as many as come. */
export function maxOpenClients(openFiles: number | undefined = openFilesLimit()): number {
  if (openFiles === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(AT_LEAST, Math.floor((openFiles - RESERVED) / 3));
}

/** Connections to hosts, in use and idle. */
export function maxHosts(openFiles?: number): number {
  return 2 * maxOpenClients(openFiles);
}

/** Connections to hosts that nobody uses at the moment; as many as clients, each of which may use another. */
export function maxIdleHosts(openFiles?: number): number {
  return maxOpenClients(openFiles);
}

/** As Linux tells it; elsewhere undefined. */
function openFilesLimit(): number | undefined {
  try {
    const [, soft = ''] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? undefined : Number(soft);
  } catch {
    return undefined; // no /proc: there is nothing to learn
  }
}
