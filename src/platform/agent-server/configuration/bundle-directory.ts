// Where a process keeps its bundle: a directory of its own below the data directory, removed when the process ends. What a killed
// process of this machine has left is removed by the next start.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

export type BundleDirectory = { readonly path: string; close(): Promise<void> };

export async function openBundleDirectory(dataDirectory: string): Promise<BundleDirectory> {
  const all = join(dataDirectory, 'bundles');
  // The embedded database runs as another user, who must be able to enter the data directory.
  await mkdir(dataDirectory, { recursive: true, mode: 0o711 });
  await mkdir(all, { recursive: true, mode: 0o700 });
  await removeLeftovers(all);
  const name = `${ownPrefix()}${process.pid}-${randomUUID()}`;
  const path = join(all, name);
  open.add(name);
  await mkdir(path, { mode: 0o700 });
  return {
    path,
    async close() {
      await rm(path, { recursive: true, force: true });
      open.delete(name);
    },
  };
}

/** Of this process: in a container, the next process may have the number of the last one. */
const open = new Set<string>();

/** Several machines may share a data directory, and each knows its own processes alone. */
function ownPrefix(): string {
  return `${hostname().replaceAll(/[^A-Za-z0-9.]/g, '_')}-`;
}

async function removeLeftovers(all: string): Promise<void> {
  const prefix = ownPrefix();
  for (const name of await readdir(all)) {
    const [, pid] = name.startsWith(prefix) ? (/^(\d+)-/.exec(name.slice(prefix.length)) ?? []) : [];
    if (pid !== undefined && !open.has(name) && !isRunning(Number(pid)))
      await rm(join(all, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
