// One process at a time on a state directory. A POSIX record lock ends with its process, however that ends, and holds
// across containers, where process ids say nothing. Node offers it through SQLite alone; the database stays empty.
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, fileError } from '../../tls/pem-files.ts';

export type StateLock = { release(): void };

const SQLITE_BUSY = 5;
// SQLite locks in steps: of two that start at once, each could find the other on the way and both give up.
const PATIENCE_MS = 100;

/** Throws an Error that says so if another process has it. */
export async function lockState(directory: string): Promise<StateLock> {
  const file = join(directory, 'state.lock');
  await createEmptyFile(file);
  // Loaded only where there is state.
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { timeout: PATIENCE_MS });
  try {
    // Otherwise the journal would be a second file, open to others.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    throw isBusy(cause)
      ? fileError(directory, 'another process uses this state', 'Stop it, or name another state_dir', cause)
      : fileError(
          file,
          'cannot be locked',
          'Remove it if it is not empty; otherwise use a local disk',
          cause,
        );
  }
  return {
    release() {
      if (database.isOpen) database.close();
    },
  };
}

// By us, because SQLite's would be open to others. A file that is there is not opened: closing it would end a lock
// that this process has on it.
async function createEmptyFile(file: string): Promise<void> {
  try {
    await using _handle = await open(file, 'wx', 0o600);
  } catch (cause) {
    if (codeOf(cause) === 'EEXIST') return;
    throw fileError(
      file,
      `cannot be created (${codeOf(cause)})`,
      'The state directory must be writable',
      cause,
    );
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
