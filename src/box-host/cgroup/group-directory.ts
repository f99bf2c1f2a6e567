// The directory of a group: created, written and removed as the kernel requires it of both versions.
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

/** A process that was killed leaves its group when the kernel has released its memory. */
const EMPTY_TIMEOUT_MS = 10_000;
const RETRY_MS = 5;

export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

export async function createGroup(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
}

export async function writeSetting(directory: string, name: string, value: number | string): Promise<void> {
  await writeFile(join(directory, name), String(value));
}

/** Undefined: there is no such file, or no number in it. */
export async function readCount(directory: string, name: string): Promise<number | undefined> {
  const text = await readFile(join(directory, name), 'utf8').catch(() => '');
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** `kill` ends the processes in it; it is called again until there is none, because they may fork meanwhile. */
export async function removeGroup(directory: string, kill: () => Promise<void>): Promise<void> {
  const deadlineMs = performance.now() + EMPTY_TIMEOUT_MS;
  for (;;) {
    await kill();
    try {
      await rmdir(directory);
      return;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return;
      if (codeOf(error) !== 'EBUSY' || performance.now() > deadlineMs)
        throw new Error(`the group ${directory} still has processes`, { cause: error });
    }
    await setTimeout(RETRY_MS);
  }
}

/** Sends SIGKILL to every process of the group. For version 1 and kernels without `cgroup.kill`. */
export async function killMembers(directory: string): Promise<void> {
  const text = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => '');
  for (const line of text.split('\n')) {
    const pid = Number(line);
    // 0 is a process of another pid namespace, and as a target it would be our own process group.
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (codeOf(error) !== 'ESRCH') throw error;
    }
  }
}

/** The groups directly below. */
export async function groupsBelow(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
