// Which process a worker is, so that others of the same machine know at once that it has died. Elsewhere, and where the kernel does not say,
// its leases expire.
import { readFileSync, readlinkSync } from 'node:fs';

export type WorkerIdentity = {
  /** Of this process. */
  readonly own: string;
  /** False where it may live. */
  isDead(worker: string): boolean;
};

/** Undefined where the kernel says nothing of processes. */
export function createWorkerIdentity(): WorkerIdentity | undefined {
  try {
    // A start of the machine, and what sees the same processes there.
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const place = `${boot}/${readlinkSync('/proc/self/ns/pid')}`;
    const own = startOf(process.pid);
    if (own === undefined) return undefined;
    return {
      own: `${place}/${process.pid}/${own}`,
      isDead: (worker) => worker.startsWith(`${place}/`) && isGone(worker.slice(place.length + 1)),
    };
  } catch {
    return undefined;
  }
}

/** `PID/START`. */
function isGone(text: string): boolean {
  const [pid = '', start] = text.split('/');
  if (!/^[1-9]\d*$/.test(pid)) return false;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    // EPERM: it lives, as another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
  const present = startOf(Number(pid));
  return present !== undefined && present !== start;
}

/** In ticks since the start of the machine: the field after the state and 18 others, behind the name, which may contain anything. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
