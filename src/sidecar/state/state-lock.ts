// The lock of the state: one process at a time reads and writes it.
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, fileError } from '../../tls/pem-files.ts';

export type StateLock = { release(): void };

const SQLITE_BUSY = 5;
// SQLite locks in steps: without a wait, two processes that start at once could both give up.
const LOCK_TIMEOUT_MS = 100;

/**
 * Throws an Error if another process has the lock. It is a POSIX record lock: the kernel releases it when the process
 * ends, however it ends, and it holds across containers, where a process id means nothing. Node offers such a lock only
 * through SQLite; the database stays empty.
 */
export async function lockState(directory: string): Promise<StateLock> {
  const file = join(directory, 'state.lock');
  // SQLite would create it with a mode that lets others read it. An existing file is not opened here: closing it would
  // release a lock that this process has on it.
  await writeFile(file, '', { flag: 'wx', mode: 0o600 }).catch((cause: unknown) => {
    if (codeOf(cause) === 'EEXIST') return;
    throw fileError(
      file,
      `cannot be created (${codeOf(cause)})`,
      'The state directory must be writable',
      cause,
    );
  });
  // Loaded only if there is state.
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { timeout: LOCK_TIMEOUT_MS });
  try {
    // A journal on disk would be a second file, which other users could read.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return { release: () => database.close() };
  } catch (cause) {
    database.close();
    if (cause instanceof Error && 'errcode' in cause && cause.errcode === SQLITE_BUSY)
      throw fileError(
        directory,
        `another process${await holderOf(file)} uses this state`,
        'Stop it, or set another state_dir',
        cause,
      );
    throw fileError(
      file,
      'cannot be locked',
      'Remove it if it is not empty; otherwise use a local disk',
      cause,
    );
  }
}

/** The process that has a lock on the file, for the message; empty where the system does not show it to this container. */
async function holderOf(file: string): Promise<string> {
  try {
    const [{ ino }, locks] = await Promise.all([stat(file), readFile('/proc/locks', 'utf8')]);
    const [, pid] = new RegExp(` (?:READ|WRITE) +([1-9][0-9]*) [0-9a-f:]+:${ino} `).exec(locks) ?? [];
    return pid === undefined ? '' : ` (pid ${pid})`;
  } catch {
    return ''; // a system without /proc/locks
  }
}
