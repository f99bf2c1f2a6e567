// Ends everything that a host user of workloads runs. The kernel sends the signal to all of its processes at once, so that none can
// fork away from it.
import { setTimeout as delay } from 'node:timers/promises';
import { requireCommand } from '../../box-host/command.ts';
import { processesOf } from '../limits/process-table.ts';
import type { WorkloadUser } from '../workload.ts';

/** Users below are of the system, or of people. */
export const FIRST_WORKLOAD_USER = 1_000;

const TIMEOUT_MS = 10_000;
const RETRY_MS = 10;

/** As that user, who may signal nobody else. */
export const END_OWN_PROCESSES = '[ "$(id -u)" = "$1" ] && kill -s KILL -- -1';

/** Options of setpriv. Throws a RangeError for a user that may be somebody else's. */
export function userOptions({ uid, gid }: WorkloadUser): readonly string[] {
  if (!(uid >= FIRST_WORKLOAD_USER && gid >= FIRST_WORKLOAD_USER))
    throw new RangeError('a workload has no user of the system');
  return ['--reuid', String(uid), '--regid', String(gid), '--clear-groups', '--inh-caps=-all'];
}

export function asUser(user: WorkloadUser, command: readonly string[]): readonly string[] {
  return ['setpriv', ...userOptions(user), '--no-new-privs', '--', ...command];
}

/** Resolves when no process has this user; rejects if one does not end. */
export async function endProcesses(user: WorkloadUser): Promise<void> {
  const deadlineMs = performance.now() + TIMEOUT_MS;
  const command = asUser(user, ['/bin/sh', '-c', END_OWN_PROCESSES, 'sh', String(user.uid)]);
  for (const users = new Set([user.uid]); processesOf(users).length > 0; await delay(RETRY_MS)) {
    if (performance.now() > deadlineMs)
      throw new Error(`a process of the host user ${user.uid} does not end`);
    await requireCommand(`the processes of the host user ${user.uid} cannot be ended`, command);
  }
}
