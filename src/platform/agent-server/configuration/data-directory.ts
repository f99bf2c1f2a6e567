// Whether the data directory can be used: found out before anything is started there, since what fails later says less.
import { randomUUID } from 'node:crypto';
import { access, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../../base/input-error.ts';
import { createDirectory, explainError } from '../../store/embedded/data-directory.ts';

const MEBIBYTE = 1024 * 1024;
/** Of an embedded database with its log, and of all else. */
const NEW_DATABASE_BYTES = 100 * MEBIBYTE;
const OTHER_BYTES = 16 * MEBIBYTE;

/** Creates it where it is not there. Throws an InputError. */
export async function requireDataDirectory(
  path: string,
  { hasDatabase }: { readonly hasDatabase: boolean },
): Promise<void> {
  try {
    // The embedded database runs as another user, who must be able to enter the data directory.
    await createDirectory(path, 0o711);
    await requireWritable(path);
    const isNew = hasDatabase && !(await exists(join(path, 'database', 'cluster', 'PG_VERSION')));
    await requireSpace(path, isNew ? NEW_DATABASE_BYTES : OTHER_BYTES);
  } catch (cause) {
    const explained = explainError(path, cause);
    if (!(explained instanceof Error) || (explained === cause && !(cause instanceof InputError))) throw cause;
    throw new InputError(`${explained.message}. ${CURE}`, { cause });
  }
}

const CURE = 'Free space there, or name another one by --data-dir or SALLYPORT_AGENT_DATA_DIR';

async function requireWritable(path: string): Promise<void> {
  const probe = join(path, `.probe-${randomUUID()}`);
  try {
    await writeFile(probe, Buffer.alloc(4096), { mode: 0o600, flush: true });
  } finally {
    await rm(probe, { force: true });
  }
}

async function requireSpace(path: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(path);
  const free = bavail * bsize;
  if (free < bytes)
    throw new InputError(
      `The data directory ${path}: its disk has ${Math.floor(free / MEBIBYTE)} MiB left, and ${bytes / MEBIBYTE} MiB are needed`,
    );
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
