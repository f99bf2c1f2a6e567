// The directory of a group: created, written and removed as the kernel requires it of both versions.
import { constants, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

/** A process that was killed leaves its group when the kernel has released its memory. */
const EMPTY_TIMEOUT_MS = 10_000;
const RETRY_MS = 5;

export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Whether it is new: without any limit. */
export async function createGroup(directory: string): Promise<boolean> {
  return (await mkdir(directory, { recursive: true })) !== undefined;
}

export async function writeSetting(directory: string, name: string, value: number | string): Promise<void> {
  await writeFile(join(directory, name), String(value));
}

/** False: the kernel has no such setting. */
export async function writeOptional(directory: string, name: string, value: string): Promise<boolean> {
  try {
    // Never created: that is what a missing setting is known by.
    await writeFile(join(directory, name), value, { flag: constants.O_WRONLY | constants.O_TRUNC });
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'EOPNOTSUPP') return false;
    throw error;
  }
}

/** Undefined: there is no such file, or no number in it. */
export async function readCount(directory: string, name: string): Promise<number | undefined> {
  const text = await readFile(join(directory, name), 'utf8').catch(() => '');
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** `name` of a file with lines `KEY NUMBER`. Undefined: there is no such file, or no such line in it. */
export async function readEntry(directory: string, name: string, key: string): Promise<number | undefined> {
  const text = await readFile(join(directory, name), 'utf8').catch(() => '');
  const line = text.split('\n').find((one) => one.startsWith(`${key} `));
  return line === undefined ? undefined : Number(line.slice(key.length));
}

/** `kill` is called until nothing is left in it, because processes may fork meanwhile. The group stays. */
export async function emptyGroup(directory: string, kill: () => Promise<void>): Promise<void> {
  const deadlineMs = performance.now() + EMPTY_TIMEOUT_MS;
  while ((await readMembers(directory)) !== '') {
    if (performance.now() > deadlineMs) throw new Error(`the group ${directory} still has processes`);
    await kill();
    await setTimeout(RETRY_MS);
  }
}

/** Empty for a group that does not exist. */
async function readMembers(directory: string): Promise<string> {
  try {
    return await readFile(join(directory, 'cgroup.procs'), 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENODEV') return '';
    throw error;
  }
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
