// Ends and removes what a killed process left of its workloads, by their records: processes, host users and directories. Most has ended
// by itself by then.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSandboxId } from '../base/sandbox-id.ts';
import type { Log } from '../base/log.ts';
import { killContained } from '../box-host/bubblewrap/namespaces/contained-processes.ts';
import type { Cgroups } from '../box-host/cgroup/cgroups.ts';
import { findTree, readProcessTable } from './limits/process-table.ts';
import { removeTree } from './tree-removal.ts';
import {
  isOfThisBoot,
  type RecordedProcess,
  type WorkloadRecord,
  type WorkloadRecords,
} from './workload-records.ts';

const PATIENCE_MS = 5_000;

export type LeftoversOptions = {
  readonly records: WorkloadRecords;
  /** That of each workload is in it, by its id. */
  readonly directory: string;
  readonly cgroups: Cgroups;
  readonly log: Log;
  /** Of workloads of this process. */
  isCurrent(id: string): boolean;
  /** Ends what a host user runs, and frees it. */
  releaseUser(uid: number): Promise<void>;
};

/** Never rejects because of one workload: it is tried again the next time. */
export async function removeLeftovers({ records, isCurrent, log, ...rest }: LeftoversOptions): Promise<void> {
  const recorded = await records.list();
  // A power failure may have lost a record, and not the directory.
  const found = await readdir(rest.directory).catch(() => []);
  for (const id of new Set([...recorded.keys(), ...found.filter(isSandboxId)])) {
    if (isCurrent(id)) continue;
    try {
      await removeOne(id, recorded.get(id), rest);
      await records.remove(id);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.warn(
        { workload: id, reason },
        'something is left of a workload: it is removed with the next start',
      );
    }
  }
}

async function removeOne(
  id: string,
  record: WorkloadRecord | undefined,
  { cgroups, directory, releaseUser }: Pick<LeftoversOptions, 'cgroups' | 'directory' | 'releaseUser'>,
): Promise<void> {
  await cgroups.remove(id);
  if (record?.process !== undefined) await endRecorded(record.process, record.isolation);
  if (record?.uid !== undefined) await releaseUser(record.uid);
  // What has just been killed may write for a moment.
  if (!(await removeTree(join(directory, id), { patienceMs: PATIENCE_MS })))
    throw new Error('its directory cannot be removed');
}

async function endRecorded(recorded: RecordedProcess, isolation: WorkloadRecord['isolation']): Promise<void> {
  const { pid, startedTicks } = recorded;
  if (!(await isOfThisBoot(recorded))) return;
  const table = readProcessTable();
  const found = table.get(pid);
  // A later process has its id, so nothing has its session any more.
  if (found !== undefined && found.startedTicks !== startedTicks) return;
  if (isolation !== 'bubblewrap') killAll(findTree(table, pid));
  else if (found !== undefined) killContained(pid);
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }
}
