// What every workload sees of the system besides /usr: links into it, and a small /etc without accounts or settings of this machine.
import { lstat, mkdir, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { etcFiles } from '../../box-host/bubblewrap/etc-files.ts';
import { writeFileLayer } from '../../box-host/bubblewrap/file-layer.ts';
import { createRoot } from '../../box-host/snapshots/base-snapshot.ts';

export type SystemFiles = {
  /** The directory of /etc. */
  readonly etc: string;
  /** By their names in the root. */
  readonly links: Readonly<Record<string, string>>;
};

/** Fills `directory`, which does not exist yet. Throws an Error if programs of this machine are elsewhere than in /usr. */
export async function createSystemFiles(directory: string): Promise<SystemFiles> {
  await mkdir(directory, { mode: 0o755 });
  await createRoot(directory);
  await writeFileLayer(directory, etcFiles({ hostname: 'workload', caBundle: '' }), undefined);
  const links: Record<string, string> = {};
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    if ((await lstat(path)).isSymbolicLink()) links[name] = await readlink(path);
  }
  return { etc: join(directory, 'etc'), links };
}
