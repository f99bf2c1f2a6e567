// The lock of the directory of a box host: one process at a time runs its boxes.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';

const SQLITE_BUSY = 5;

/**
 * Throws an InputError if another process has the lock. It is a POSIX record lock, which Node offers through SQLite: the kernel
 * releases it when the process ends, however it ends.
 */
export async function lockDirectory(directory: string): Promise<Disposable> {
  const file = join(directory, 'lock');
  await writeFile(file, '', { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw new InputError(`${file} cannot be created (${error.code})`);
  });
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(file, { timeout: 100 });
  try {
    // A journal on disk would be a second file.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    const isBusy = cause instanceof Error && 'errcode' in cause && cause.errcode === SQLITE_BUSY;
    const found = isBusy ? 'another box host runs' : 'the file "lock" cannot be locked';
    throw new InputError(`${directory}: ${found}. Stop it, or use another directory.`, { cause });
  }
  return { [Symbol.dispose]: () => database.close() };
}
