// The files of ours that every box finds over its snapshot, and the directories that it may write to.
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { mountPoints } from './arguments.ts';
import { boxUser } from './etc-files.ts';

/** `uid`: who owns the home directory on the host; undefined: this process. */
export async function writeFileLayer(
  layer: string,
  files: ReadonlyMap<string, string>,
  uid: number | undefined,
): Promise<void> {
  const made = new Set<string>();
  const makeDirectory = async (path: string): Promise<void> => {
    if (made.has(path)) return;
    if (path !== '/') await makeDirectory(dirname(path));
    await mkdir(join(layer, path), { recursive: true });
    // Whatever the umask.
    await chmod(join(layer, path), 0o755);
    made.add(path);
  };
  for (const path of ['/', '/tmp', '/var/tmp', boxUser.home, ...mountPoints]) await makeDirectory(path);
  for (const path of ['/tmp', '/var/tmp']) await chmod(join(layer, path), 0o1777);
  if (uid !== undefined) await chown(join(layer, boxUser.home), uid, uid);
  for (const [path, text] of files) {
    await makeDirectory(dirname(path));
    await writeFile(join(layer, path), text);
    await chmod(join(layer, path), 0o644);
  }
}
