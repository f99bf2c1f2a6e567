// A directory that a workload may write to. It is given to the user of the workload while it is empty: to change the owner of a tree
// that hostile code wrote would give it the files of others to which it has made hard links.
import { chmod, lchown, mkdir } from 'node:fs/promises';
import type { WorkloadUser } from './workload.ts';

/** Rejects if there is anything at `path` already. `user`: of `Workloads.userOf`; undefined: it stays that of this process. */
export async function createOwnedDirectory(path: string, user: WorkloadUser | undefined): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  // Whatever the umask.
  await chmod(path, 0o700);
  if (user !== undefined) await lchown(path, user.uid, user.gid);
}
