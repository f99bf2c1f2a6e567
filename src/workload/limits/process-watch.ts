// Ends workloads that use more memory or start more processes than they may, on machines where no group of the kernel holds that, and
// those that try to start processes for ever where one does: it refuses, and a fork bomb would go on trying.
import type { CgroupEvents } from '../../box-host/cgroup/cgroups.ts';
import type { WorkloadLimits } from '../workload.ts';
import { privateBytes, type ProcessTable, readProcessTable } from './process-table.ts';

export type ProcessWatched = {
  /** Those that no group holds. */
  readonly unheld: Pick<WorkloadLimits, 'memBytes' | 'pids'>;
  processes(table: ProcessTable): readonly number[];
  events(): Promise<CgroupEvents>;
  exceed(reason: 'memory' | 'processes'): void;
};

const PERIOD_MS = 250;
/** A program that is denied a process usually ends, or goes on with fewer: so many in so short a time are of one that tries for ever. */
const MAX_REFUSED_FORKS = 200;
const REFUSED_PERIOD_MS = 10_000;

export class ProcessWatch {
  /** With the number of refused forks at the begin of a period. */
  readonly #watched = new Map<ProcessWatched, { readonly atMs: number; readonly refusedForks: number }>();
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;

  /** Returns what ends the watch. */
  add(one: ProcessWatched): () => void {
    this.#watched.set(one, { atMs: performance.now(), refusedForks: 0 });
    this.#timer ??= setInterval(() => void this.#checkInTurn(), PERIOD_MS).unref();
    return () => {
      this.#watched.delete(one);
      if (this.#watched.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  async check(nowMs: number = performance.now()): Promise<void> {
    const all = [...this.#watched.keys()];
    const watched = all.filter(({ unheld }) => unheld.memBytes !== undefined || unheld.pids !== undefined);
    if (watched.length > 0) {
      const table = readProcessTable();
      for (const one of watched) {
        const reason = findExceeded(one.unheld, one.processes(table));
        if (reason !== undefined) one.exceed(reason);
      }
    }
    for (const one of all) {
      const { refusedForks = 0 } = await one.events();
      const before = this.#watched.get(one);
      if (before === undefined) continue;
      if (refusedForks - before.refusedForks > MAX_REFUSED_FORKS) one.exceed('processes');
      if (nowMs - before.atMs > REFUSED_PERIOD_MS) this.#watched.set(one, { atMs: nowMs, refusedForks });
    }
  }

  async #checkInTurn(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    await this.check().catch(() => undefined);
    this.#isChecking = false;
  }
}

function findExceeded(
  { memBytes, pids }: ProcessWatched['unheld'],
  processes: readonly number[],
): 'memory' | 'processes' | undefined {
  // Before memory: to add up that of a hundred thousand processes would take longer than they live.
  if (pids !== undefined && processes.length > pids) return 'processes';
  if (memBytes === undefined) return undefined;
  let bytes = 0;
  for (const pid of processes) {
    bytes += privateBytes(pid);
    if (bytes > memBytes) return 'memory';
  }
  return undefined;
}
