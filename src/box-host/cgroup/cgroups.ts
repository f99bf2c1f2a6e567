// Limits of memory, processor time and processes for each box, behind the same calls for both versions of cgroups and for
// machines without them.

export type CgroupLimits = {
  readonly memBytes?: number | undefined;
  readonly cpuMillicores?: number | undefined;
  readonly pids?: number | undefined;
};

export type CgroupUsage = {
  readonly memBytes: number | undefined;
  readonly cpuMs: number | undefined;
  readonly pids: number | undefined;
};

/** What the limits have done to a group since it was made; undefined where the kernel does not count it. */
export type CgroupEvents = {
  /** Processes that were killed because the group had no memory left. */
  readonly oomKills: number | undefined;
  /** Attempts to start a process that the limit of processes refused. */
  readonly refusedForks: number | undefined;
};

export type Cgroups = {
  readonly version: 'v1' | 'v2' | 'none';
  /** The limits that cannot be held, with the reason. */
  readonly missing: readonly MissingLimit[];
  /** Continues with the group if it exists, with these limits in place of those before. Memory includes what is swapped out. */
  create(id: string, limits: CgroupLimits): Promise<void>;
  /**
   * The files into which a process writes `0` before it runs the program of the box: then everything that it starts is
   * within the limits, and no process id passes through other hands.
   */
  entryFiles(id: string): readonly string[];
  usage(id: string): Promise<CgroupUsage>;
  events(id: string): Promise<CgroupEvents>;
  /** Kills what runs in it and resolves when nothing does; the group stays. */
  empty(id: string): Promise<void>;
  /** Kills what still runs in it and resolves when it is empty and gone. */
  remove(id: string): Promise<void>;
  /** Kills and removes what an earlier process with the same name left. */
  sweep(): Promise<void>;
  /** Removes the group that holds the others, which must be gone. */
  close(): Promise<void>;
};

export type MissingLimit = { readonly limit: 'memory' | 'cpu' | 'pids'; readonly reason: string };

/** A period of the processor in which a share of it is granted. */
export const CPU_PERIOD_US = 100_000;

/** The share of a period; the kernel refuses less than a millisecond. */
export function cpuQuotaUs(millicores: number): number {
  return Math.max(1_000, Math.round((millicores * CPU_PERIOD_US) / 1_000));
}

/** For a machine where no group can be made. */
export function noCgroups(reason: string): Cgroups {
  return {
    version: 'none',
    missing: (['memory', 'cpu', 'pids'] as const).map((limit) => ({ limit, reason })),
    create: () => Promise.resolve(),
    entryFiles: () => [],
    usage: () => Promise.resolve({ memBytes: undefined, cpuMs: undefined, pids: undefined }),
    events: () => Promise.resolve({ oomKills: undefined, refusedForks: undefined }),
    empty: () => Promise.resolve(),
    remove: () => Promise.resolve(),
    sweep: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
