// Which limits of a workload the kernel holds on this machine, which are watched instead, and the sentences that say so. Pure.
import type { MissingLimit } from '../../box-host/cgroup/cgroups.ts';
import type { ProcessLimits } from '../../box-host/cgroup/resource-limits.ts';
import type { WorkloadIsolation, WorkloadLimits, WorkloadNetwork } from '../workload.ts';

/** Of one process: the whole workload is watched, and this stops one that is faster than whoever watches. */
const DATA_SHARE = 1.25;
/** As with memory: what is watched has the limit itself. */
const PROCESSES_SHARE = 1.25;

/** What no group of the kernel holds. */
export function unheldLimits(
  { memBytes, pids }: WorkloadLimits,
  missing: readonly MissingLimit[],
): Pick<WorkloadLimits, 'memBytes' | 'pids'> {
  const isMissing = (limit: MissingLimit['limit']): boolean => missing.some((one) => one.limit === limit);
  return {
    ...(isMissing('memory') && memBytes !== undefined && { memBytes }),
    ...(isMissing('pids') && pids !== undefined && { pids }),
  };
}

/** What each of its processes begins with. */
export function processLimits(limits: WorkloadLimits, missing: readonly MissingLimit[]): ProcessLimits {
  const { memBytes, pids } = unheldLimits(limits, missing);
  return {
    openFiles: limits.openFiles,
    // One file alone may not be larger than all of them.
    fileBytes: limits.diskBytes,
    processes: pids === undefined ? undefined : Math.ceil(pids * PROCESSES_SHARE) + 1,
    dataBytes: memBytes === undefined ? undefined : Math.round(memBytes * DATA_SHARE),
  };
}

/** What each limit that the kernel does not hold here is instead, with the reason, which is for the operator: it names paths. */
export function describeLimits(
  limits: WorkloadLimits,
  missing: readonly MissingLimit[],
): readonly { readonly note: string; readonly reason: string | undefined }[] {
  const weaker = (limit: number | undefined, name: MissingLimit['limit'], note: string) =>
    missing.flatMap(({ limit: one, reason }) =>
      one === name && limit !== undefined ? [{ note, reason }] : [],
    );
  return [
    ...weaker(limits.memBytes, 'memory', 'The limit of memory is watched, not enforced by the kernel'),
    ...weaker(limits.cpuMillicores, 'cpu', 'The limit of processor time is not held'),
    ...weaker(limits.pids, 'pids', 'The limit of processes is watched, not that of a group of the kernel'),
    ...(limits.diskBytes === undefined ? [] : [{ note: DISK, reason: undefined }]),
  ];
}

const DISK = 'The limit of disk space is watched: a program that exceeds it is ended within seconds';

/** For the same log. Without `network`: what holds for every network. */
export function describeIsolation(
  isolation: WorkloadIsolation,
  network?: WorkloadNetwork,
): readonly string[] {
  const [alone, withProxy] = [WITHOUT_NETWORK[isolation], NETWORK[isolation]];
  const ofNetwork = network === undefined ? [] : [network === 'none' ? alone : withProxy];
  return [...ISOLATION[isolation], ...ofNetwork];
}

const ISOLATION: Readonly<Record<WorkloadIsolation, readonly string[]>> = {
  bubblewrap: [],
  user: [
    'The program runs as a host user of its own, without namespaces: it sees the files that every user of this machine may read',
  ],
  none: ['The program is not isolated: it may do whatever the user of the runner may do'],
};

const HOST_NETWORK =
  'The network is that of this machine: programs that heed the proxy variables use the proxy, others pass it by';
const HOST_NETWORK_ALONE = 'The network is that of this machine, without a proxy';

const NETWORK: Readonly<Record<WorkloadIsolation, string>> = {
  bubblewrap: 'The only way out is its proxy',
  user: HOST_NETWORK,
  none: HOST_NETWORK,
};

const WITHOUT_NETWORK: Readonly<Record<WorkloadIsolation, string>> = {
  bubblewrap: 'There is no network',
  user: HOST_NETWORK_ALONE,
  none: HOST_NETWORK_ALONE,
};
