// Removes a directory that hostile code wrote. A walk by paths can be led elsewhere by a link that is swapped in, a deep tree has paths
// that no call accepts, and a huge one would keep this process busy: rm walks by descriptors, in a process with a time limit.
import { lstat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runTreeCommand } from './tree-command.ts';

export type RemovalOptions = {
  /** How long each of its programs may take. The next removal of the same tree continues. */
  readonly timeoutMs?: number;
  /** For how long it is tried again: what a killed process has started may write for a moment after its end. */
  readonly patienceMs?: number;
};

const TIMEOUT_MS = 60_000;
const RETRY_MS = 100;

/** Silent, because hostile code decides how many files fail; no other file system, because a mount there belongs to somebody else. */
const REMOVE = 'exec nice rm -rf --one-file-system -- "$1" 2>/dev/null';

// Without root, nobody can enter a directory that lost its permissions, not even to empty it. Never files: one may be a hard link.
const OPEN_DIRECTORIES = String.raw`exec find "$1" -xdev -type d -not -perm -u=rwx -execdir chmod u+rwx -- {} \; >/dev/null 2>&1`;

/**
 * Never rejects: whoever removes one tree has others to look after. False: something is left, such as a file that is protected, or what
 * took too long. `path` is absolute, and nothing above it is writable for hostile code. No process of that code runs.
 */
export async function removeTree(
  path: string,
  { timeoutMs = TIMEOUT_MS, patienceMs = 0 }: RemovalOptions = {},
): Promise<boolean> {
  if (!isAbsolute(path) || path === '/') return false;
  const untilMs = performance.now() + patienceMs;
  while (!(await removeOnce(path, timeoutMs))) {
    if (performance.now() >= untilMs) return false;
    await delay(RETRY_MS);
  }
  return true;
}

async function removeOnce(path: string, timeoutMs: number): Promise<boolean> {
  const run = (script: string) => runTreeCommand(['/bin/sh', '-c', script, 'sh', path], { timeoutMs });
  try {
    if (await isGone(path)) return true;
    await run(REMOVE);
    if ((await isGone(path)) || process.getuid?.() === 0) return await isGone(path);
    await run(OPEN_DIRECTORIES);
    await run(REMOVE);
    return await isGone(path);
  } catch {
    return false;
  }
}

async function isGone(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
}
