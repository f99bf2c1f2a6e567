// Watches the embedded database server of a platform (Linux): finds its processes by the data directory, and counts how
// many run at once.
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Monitor } from './storm-process.ts';

export type EmbeddedMonitor = Monitor & {
  /** The maximum number of servers that ran at once; more than one is an error. */
  readonly most: number;
};

const POLL_MS = 20;
/** After a crash of the platform, the shutdown of the server first writes its data. */
const MAX_CLEANUP_MS = 20_000;
const MAX_CONNECTED_MS = 5_000;

/** `directory` is the data directory of the platform. */
export function openEmbeddedMonitor(directory: string): EmbeddedMonitor {
  const cluster = join(directory, 'database', 'cluster');
  let most = 0;
  const servers = async (): Promise<readonly number[]> => {
    const found = await serversIn(cluster);
    // A process that is found twice ran in between too.
    const again = found.length > 1 ? await serversIn(cluster) : found;
    most = Math.max(most, found.filter((pid) => again.includes(pid)).length);
    return found;
  };
  return {
    get most() {
      return most;
    },
    backendsOf: servers,
    async connected(_, limit) {
      const before = new Set(await servers());
      const untilMs = performance.now() + MAX_CONNECTED_MS;
      const seen = async (): Promise<void> => {
        while (performance.now() < untilMs && (await servers()).every((pid) => before.has(pid)))
          await delay(POLL_MS);
      };
      await Promise.race([seen(), limit]);
      return servers();
    },
    async cleanedUp(_, backends, sinceMs) {
      for (;;) {
        const now = await servers();
        const elapsedMs = performance.now() - sinceMs;
        if (!now.some((pid) => backends.includes(pid))) return elapsedMs;
        if (elapsedMs > MAX_CLEANUP_MS) return undefined;
        await delay(POLL_MS);
      }
    },
  };
}

/** Children of a server rename themselves, but only a moment after they start: they are excluded by their parent. */
async function serversIn(cluster: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const named = await Promise.all(pids.map((pid) => isNamedServer(pid, cluster)));
  const own = pids.filter((_, i) => named[i]);
  const parents = await Promise.all(own.map(parentOf));
  return own.filter((_, i) => parents[i] !== undefined && !own.includes(parents[i]));
}

async function isNamedServer(pid: number, cluster: string): Promise<boolean> {
  const [program = '', ...args] = (await readProc(pid, 'cmdline')).split('\0');
  return basename(program) === 'postgres' && args.includes(cluster);
}

/** Undefined when the process has ended. */
async function parentOf(pid: number): Promise<number | undefined> {
  const [, parent] = /\) \S (\d+)/.exec(await readProc(pid, 'stat')) ?? [];
  return parent === undefined ? undefined : Number(parent);
}

function readProc(pid: number, file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
}
