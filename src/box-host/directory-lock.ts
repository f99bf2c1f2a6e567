// The directory of a box host, private to its user, and its lock: one process at a time runs its boxes.
import { lstat, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';

/** The kernel limits the path of a socket, also of the sidecars', which have names of 14 characters. */
const MAX_DIRECTORY_BYTES = 88;
const SQLITE_BUSY = 5;

/** Another process has the lock. */
export class DirectoryInUse extends InputError {}

/** Throws an InputError that says what to do if the directory cannot be used. */
export async function prepareDirectory(directory: string): Promise<void> {
  if (Buffer.byteLength(directory) > MAX_DIRECTORY_BYTES)
    throw new InputError(
      `${directory}: the path is over ${MAX_DIRECTORY_BYTES} bytes long, and sockets must be in it: use a shorter data_dir`,
    );
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const found = await lstat(directory);
  const isOurs = found.uid === (process.getuid?.() ?? found.uid);
  if (!found.isDirectory() || !isOurs || (found.mode & 0o077) !== 0)
    throw new InputError(
      `${directory} must be a directory of this user with mode 0700: correct it, or use another one`,
    );
}

/**
 * Throws a DirectoryInUse, which names the `holder`, if another process has the lock. It is a POSIX record lock, which Node offers through SQLite: the kernel
 * releases it when the process ends, however it ends.
 */
export async function lockDirectory(directory: string, holder = 'box host'): Promise<Disposable> {
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
    const found = isBusy ? `another ${holder} runs` : 'the file "lock" cannot be locked';
    const InUse = isBusy ? DirectoryInUse : InputError;
    throw new InUse(`${directory}: ${found}. Stop it, or use another directory.`, { cause });
  }
  return { [Symbol.dispose]: () => database.close() };
}
