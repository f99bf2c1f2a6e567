// The files of one workload that are gone with it: what it may write to besides its mounts, and the certificates that it trusts.
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkloadFiles } from './isolation/isolation.ts';
import { createOwnedDirectory } from './owned-directory.ts';
import type { WorkloadUser } from './workload.ts';

/** Rejects if there is anything at `directory` already. */
export async function createWorkloadFiles(
  directory: string,
  user: WorkloadUser | undefined,
): Promise<WorkloadFiles> {
  await mkdir(directory, { mode: 0o711 });
  // Whatever the umask: its user enters it, and cannot list or change it.
  await chmod(directory, 0o711);
  const files = {
    directory,
    temporary: join(directory, 'tmp'),
    longTemporary: join(directory, 'var-tmp'),
    bundle: join(directory, 'ca-certificates.pem'),
  };
  await createOwnedDirectory(files.temporary, user);
  await createOwnedDirectory(files.longTemporary, user);
  await writeBundle(files, '');
  return files;
}

/** Before its program begins. */
export async function writeBundle({ bundle }: WorkloadFiles, pem: string): Promise<void> {
  await writeFile(bundle, pem);
  await chmod(bundle, 0o644);
}
