// One workload from its begin to its end: what ends it, why, and that nothing of it is left then.
import type { Log } from '../base/log.ts';
import type { PolicyDocument } from '../box-host/box-document.ts';
import type { Cgroups } from '../box-host/cgroup/cgroups.ts';
import type { Containment, ProgramExit } from './isolation/isolation.ts';
import type { DiskWatch } from './limits/disk-watch.ts';
import { unheldLimits } from './limits/held-limits.ts';
import { privateBytes, readProcessTable } from './limits/process-table.ts';
import type { ProcessWatch } from './limits/process-watch.ts';
import type { WorkloadProxy } from './network/workload-proxy.ts';
import type { StartedProgram } from './program/started-program.ts';
import type { Workload, WorkloadEnd, WorkloadEndReason, WorkloadHold, WorkloadSpec } from './workload.ts';

export type RunningParts = {
  readonly spec: WorkloadSpec;
  readonly program: StartedProgram;
  readonly containment: Containment;
  readonly held: WorkloadHold;
  readonly proxy: WorkloadProxy | undefined;
  readonly cgroups: Cgroups;
  readonly watches: { readonly disk: DiskWatch; readonly processes: ProcessWatch };
  /** Those that it may write to. */
  readonly writable: readonly string[];
  readonly log: Log;
  /** Removes what was made for it; never rejects. */
  dispose(): Promise<void>;
};

/** A file that is larger than allowed: the kernel ends who writes it. */
const FILE_LIMIT_SIGNAL = 'SIGXFSZ';

export class RunningWorkload implements Workload {
  readonly id: string;
  readonly pid: number;
  readonly held: WorkloadHold;
  readonly ended: Promise<WorkloadEnd>;
  readonly #parts: RunningParts;
  readonly #ending = Promise.withResolvers<void>();
  #reason: WorkloadEndReason | undefined;

  constructor(parts: RunningParts) {
    const { spec, program, held } = parts;
    this.#parts = parts;
    this.id = spec.id;
    this.pid = program.pid;
    this.held = held;
    const stopWatches = this.#watch();
    const late =
      spec.timeoutMs === undefined ? undefined : setTimeout(() => this.#end('timeout'), spec.timeoutMs);
    this.ended = program.exited.then(async (exit) => {
      clearTimeout(late);
      stopWatches();
      this.#ending.resolve();
      return this.#finish(exit);
    });
  }

  async stop(graceMs: number): Promise<WorkloadEnd> {
    this.#reason ??= 'stopped';
    this.#parts.containment.signal('SIGTERM');
    const grace = setTimeout(() => this.#parts.containment.kill(), graceMs);
    await this.#ending.promise;
    clearTimeout(grace);
    return this.ended;
  }

  async applyPolicy(policy: PolicyDocument): Promise<void> {
    await this.#parts.proxy?.apply(policy);
  }

  async memoryBytes(): Promise<number | undefined> {
    const { cgroups, containment } = this.#parts;
    const { memBytes } = await cgroups.usage(this.id);
    return (
      memBytes ?? containment.processes(readProcessTable()).reduce((sum, pid) => sum + privateBytes(pid), 0)
    );
  }

  #end(reason: WorkloadEndReason): void {
    this.#reason ??= reason;
    this.#parts.containment.kill();
  }

  #watch(): () => void {
    const { spec, containment, cgroups, watches, writable } = this.#parts;
    const stopProcesses = watches.processes.add({
      unheld: unheldLimits(spec.limits, cgroups.missing),
      processes: (table) => containment.processes(table),
      events: () => cgroups.events(this.id),
      exceed: (reason) => this.#end(reason),
    });
    const { diskBytes } = spec.limits;
    const stopDisk =
      diskBytes === undefined
        ? undefined
        : watches.disk.add({ limitBytes: diskBytes, paths: writable, exceed: () => this.#end('disk') });
    return () => {
      stopProcesses();
      stopDisk?.();
    };
  }

  /** Whatever fails: whoever waits for the end must learn of it. */
  async #finish(found: ProgramExit): Promise<WorkloadEnd> {
    const { program, containment, log, dispose } = this.#parts;
    const exit = containment.exitOf(found);
    try {
      await containment.empty();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error({ workload: this.id, reason }, 'something of a workload that has ended still runs');
    }
    await program.endOutput();
    const reason = this.#reason ?? (await this.#findReason(exit));
    await dispose();
    return { ...exit, ...(reason !== undefined && { reason }) };
  }

  async #findReason({ code, signal }: ProgramExit): Promise<WorkloadEndReason | undefined> {
    if (code === 0) return undefined;
    const { oomKills = 0, refusedForks = 0 } = await this.#parts.cgroups.events(this.id);
    if (oomKills > 0) return 'memory';
    if (signal === FILE_LIMIT_SIGNAL) return 'disk';
    return refusedForks > 0 ? 'processes' : undefined;
  }
}
