// What the agent servers of this machine may take together. One more than that would slow down, or end, those that run. Pure.

export type CapacityLimits = {
  readonly instances: number;
  readonly memoryBytes: number;
  /** Of all processors, several times over: most agent servers wait most of the time. */
  readonly cpuMillicores: number;
};

export type InstanceSize = { readonly memoryBytes: number; readonly cpuMillicores: number };

/** What is taken until it is given back, which may be done twice. */
export type Taken = { release(): void };

export type Capacity = {
  /** A string says which setting does not allow it, and how much is left. */
  take(size: InstanceSize): Taken | string;
  /** What replaces another one, which ends afterwards, may go beyond the limits by half. */
  takeForSwitch(size: InstanceSize): Taken | string;
  readonly used: InstanceSize & { readonly instances: number };
};

const MIB = 1024 ** 2;
const SWITCH_FACTOR = 1.5;

export function createCapacity(limits: CapacityLimits): Capacity {
  const used = { instances: 0, memoryBytes: 0, cpuMillicores: 0 };
  const add = ({ memoryBytes, cpuMillicores }: InstanceSize, factor: 1 | -1): void => {
    used.instances += factor;
    used.memoryBytes += factor * memoryBytes;
    used.cpuMillicores += factor * cpuMillicores;
  };
  const takeNow = (size: InstanceSize): Taken => {
    let isTaken = true;
    add(size, 1);
    return {
      release() {
        if (isTaken) add(size, -1);
        isTaken = false;
      },
    };
  };
  const findProblem = ({ memoryBytes, cpuMillicores }: InstanceSize, factor: number): string | undefined => {
    if (used.instances + 1 > factor * limits.instances)
      return `all ${limits.instances} agent servers that runner.limits.instances allows are in use`;
    const leftBytes = factor * limits.memoryBytes - used.memoryBytes;
    if (memoryBytes > leftBytes)
      return `it needs ${toMib(memoryBytes)} MiB of memory, and ${toMib(Math.max(leftBytes, 0))} MiB are left of runner.limits.memory_bytes`;
    const leftCpu = factor * limits.cpuMillicores - used.cpuMillicores;
    if (cpuMillicores > leftCpu)
      return `it needs ${cpuMillicores} millicores, and ${Math.max(leftCpu, 0)} are left of runner.limits.cpu_millicores`;
    return undefined;
  };
  return {
    used,
    take: (size) => findProblem(size, 1) ?? takeNow(size),
    takeForSwitch: (size) => findProblem(size, SWITCH_FACTOR) ?? takeNow(size),
  };
}

function toMib(bytes: number): number {
  return Math.floor(bytes / MIB);
}
