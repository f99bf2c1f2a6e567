// How many connections and lookups the process may run: what its file descriptors and its thread pool allow.
import { readFileSync } from 'node:fs';

// For everything that is neither a client nor an upstream: state files, the admin API, callbacks, the runtime itself.
const RESERVED = 512;
const AT_LEAST = 64;

/** A third of the descriptors each: clients, the upstreams that they use, idle upstreams. `openFiles` undefined: no limit. */
export function maxOpenClients(openFiles: number | undefined = openFilesLimit()): number {
  if (openFiles === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(AT_LEAST, Math.floor((openFiles - RESERVED) / 3));
}

/** Upstream connections, in use and idle. */
export function maxUpstreams(openFiles?: number): number {
  return 2 * maxOpenClients(openFiles);
}

/** Idle upstream connections: as many as clients, each of which may use another host. */
export function maxIdleUpstreams(openFiles?: number): number {
  return maxOpenClients(openFiles);
}

/** From /proc, so on Linux only. */
function openFilesLimit(): number | undefined {
  try {
    const [, soft = ''] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === '' ? undefined : Number(soft);
  } catch {
    return undefined; // no /proc
  }
}

// libuv runs getaddrinfo on at most half of its threads; two of those stay free for other slow work.
const DEFAULT_THREADS = 4;

/** Name lookups that may run at once. */
export function maxLookupThreads(): number {
  const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? DEFAULT_THREADS);
  return Math.max(1, Math.floor(threads / 2) - 2);
}
