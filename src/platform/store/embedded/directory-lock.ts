// Allows one process at a time on a data directory. A POSIX record lock ends with its process, however that ends, and
// works across containers, where process ids mean nothing. Node offers such a lock only through SQLite; the SQLite
// database stays empty.
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../database-error.ts';

export type DirectoryLock = { release(): void };

/** Also marks a directory as a data directory of Sallyport. */
export const LOCK_FILE = 'platform.lock';
const PID_FILE = 'platform.pid';

const SQLITE_BUSY = 5;
// SQLite locks in steps: without a wait, two processes that start at once could both see the other and both fail.
const TIMEOUT_MS = 100;

/** Throws an Error that names the other process when the directory is locked. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const file = join(directory, LOCK_FILE);
  await createEmptyFile(file);
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { timeout: TIMEOUT_MS });
  try {
    // In memory: the journal would otherwise be a second file.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    const isBusy = cause instanceof Error && 'errcode' in cause && cause.errcode === SQLITE_BUSY;
    const message = isBusy ? await describeHolder(directory) : `${file} cannot be locked: use a local disk`;
    throw new Error(message, { cause });
  }
  await writeFile(join(directory, PID_FILE), `${process.pid}\n`, { mode: 0o600 });
  return {
    release() {
      if (database.isOpen) database.close();
    },
  };
}

async function describeHolder(directory: string): Promise<string> {
  const pid = (await readFile(join(directory, PID_FILE), 'utf8').catch(() => '')).trim();
  const holder = /^\d+$/.test(pid) ? `Process ${pid}` : 'Another process';
  return `${holder} uses the data directory ${directory}. Stop it, or set DATABASE_URL so that several processes share a server`;
}

// An existing file is not opened: closing it would release a lock that this process holds on it.
async function createEmptyFile(file: string): Promise<void> {
  try {
    await using _handle = await open(file, 'wx', 0o600);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}
