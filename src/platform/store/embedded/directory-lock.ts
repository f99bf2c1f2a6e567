// One process at a time on a data directory. A POSIX record lock ends with its process, however that ends, and holds
// across containers, where process ids say nothing. Node offers it through SQLite alone; the database stays empty.
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export type DirectoryLock = { release(): void };

/** Also the mark of a directory that is ours. */
export const LOCK_FILE = 'platform.lock';
const PID_FILE = 'platform.pid';

const SQLITE_BUSY = 5;
// SQLite locks in steps: of two that start at once, each could find the other on the way and both give up.
const PATIENCE_MS = 100;

/** Throws an Error that says so if another process has it. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const file = join(directory, LOCK_FILE);
  await createEmptyFile(file);
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { timeout: PATIENCE_MS });
  try {
    // Otherwise the journal would be a second file.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    if (!isBusy(cause)) throw new Error(`${file} cannot be locked: use a local disk`, { cause });
    throw new Error(await describeHolder(directory), { cause });
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
  const who = /^\d+$/.test(pid) ? `Process ${pid}` : 'Another process';
  return `${who} uses the data directory ${directory}. Stop it, or let several share a server by DATABASE_URL`;
}

// A file that is there is not opened: closing it would end a lock that this process has on it.
async function createEmptyFile(file: string): Promise<void> {
  try {
    await using _handle = await open(file, 'wx', 0o600);
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
