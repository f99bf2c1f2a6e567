// Ends every process within a network namespace. A process of a box cannot leave that of its box, so that nothing is missed on a
// machine without cgroups, where no group lists the processes.
import { fstatSync, readdirSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const TIMEOUT_MS = 10_000;
const RETRY_MS = 5;

/** `descriptor`: of the namespace. Resolves when no process is left in it. */
export async function endSurvivors(descriptor: number): Promise<void> {
  const { ino, dev } = fstatSync(descriptor, { bigint: true });
  const own = statSync('/proc/self/ns/net', { bigint: true });
  if (own.ino === ino && own.dev === dev) throw new Error('the network namespace is that of the host');
  const deadlineMs = performance.now() + TIMEOUT_MS;
  for (;;) {
    const found = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isIn(name, ino, dev));
    if (found.length === 0) return;
    if (performance.now() > deadlineMs) throw new Error('a process of the box does not end');
    for (const pid of found) killProcess(Number(pid));
    await delay(RETRY_MS);
  }
}

/** One that ended, or that is no business of this user, is in none. */
function isIn(pid: string, ino: bigint, dev: bigint): boolean {
  try {
    const found = statSync(`/proc/${pid}/ns/net`, { bigint: true });
    return found.ino === ino && found.dev === dev;
  } catch {
    return false;
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}
