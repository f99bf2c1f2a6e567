// The directories of a runner below the data directory of its platform. Without symbolic links, because they are mounted; and where
// deployments have users of their own, each of these may pass through to what is its own.
import { chmod, mkdir, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../../base/input-error.ts';
import { removeTree } from '../../../workload/tree-removal.ts';

export type RunnerDirectories = {
  readonly workloads: string;
  /** One of each agent server. */
  readonly instances: string;
  /** One of each deployment, with the socket of its database. */
  readonly databases: string;
  readonly builds: string;
};

/** Of a path in it: `/run/<16 digits>/pinned/api.sock`, which the kernel limits to 107 bytes. */
const MAX_BYTES = 107 - '/run/0123456789abcdef/pinned/api.sock'.length;

/** For what a killed process had started. */
const PATIENCE_MS = 2_000;

/** Throws an InputError for a path that is too long. */
export async function prepareRunnerDirectories(
  dataDirectory: string,
  hasUsers: boolean,
): Promise<RunnerDirectories> {
  const mode = hasUsers ? 0o711 : 0o700;
  await mkdir(dataDirectory, { recursive: true, mode: 0o711 });
  const root = join(await realpath(dataDirectory), 'runner');
  if (Buffer.byteLength(root) > MAX_BYTES)
    throw new InputError(
      `${root}: the path is over ${MAX_BYTES} bytes long, and sockets must be in it: use a shorter data_dir`,
    );
  const directories = {
    workloads: join(root, 'workloads'),
    instances: join(root, 'run'),
    databases: join(root, 'db'),
    builds: join(root, 'builds'),
  };
  for (const path of [root, directories.instances, directories.databases, directories.builds]) {
    await mkdir(path, { recursive: true, mode });
    await chmod(path, mode);
  }
  return directories;
}

/** What a killed process left: nobody uses it, because this process has the lock of the workloads. */
export async function removeLeftoverDirectories({ instances, databases }: RunnerDirectories): Promise<void> {
  for (const parent of [instances, databases])
    for (const name of await readdir(parent))
      await removeTree(join(parent, name), { patienceMs: PATIENCE_MS });
}
