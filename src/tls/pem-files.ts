// The CA's two files on disk: created whole and never over another file, read only when nobody else can.
// Knows nothing of what they hold.
import { randomBytes } from 'node:crypto';
import { linkSync, rmSync } from 'node:fs';
import { lstat, mkdir, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A file to be; the mode is given to open(), so that a key is never readable by others, not for a moment. */
export type FileDraft = { readonly file: string; readonly text: string; readonly mode: number };

/** Reads a private key file. Throws if group or others may read or write it, or if it is another user's. */
export async function readKeyFile(file: string): Promise<string> {
  await using handle = await open(file, 'r');
  // Asked of the open file: a path could be exchanged between the question and the reading.
  const { mode, uid } = await handle.stat();
  const ours = process.getuid?.();
  if (uid !== ours && uid !== 0) {
    throw new Error(`${file}: the key belongs to uid ${uid}, who can read it; chown it to uid ${ours}`);
  }
  if ((mode & 0o077) !== 0) {
    const found = (mode & 0o777).toString(8).padStart(4, '0');
    throw new Error(
      `${file}: mode ${found} lets others at the key; chmod 0600 it, and replace it if it was read`,
    );
  }
  return handle.readFile('utf8');
}

/** Whether a directory entry of that name exists, a dangling link and an unreadable file included. */
export async function isPresent(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}

/**
 * Creates all files or none, durable when the promise settles; missing directories get mode 0700. Answers false
 * if one of them exists: another process was faster.
 */
export async function createFiles(drafts: readonly FileDraft[]): Promise<boolean> {
  const staged: { readonly temporary: string; readonly file: string }[] = [];
  try {
    for (const { file, text, mode } of drafts) {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
      await using handle = await open(temporary, 'wx', mode);
      staged.push({ temporary, file });
      await handle.writeFile(text);
      await handle.sync();
    }
    if (!publish(staged)) return false;
    for (const { file } of drafts) await syncDirectory(dirname(file));
    return true;
  } finally {
    for (const { temporary } of staged) await rm(temporary, { force: true });
  }
}

/** link() never replaces a file, as rename() would. No await between: nobody may see half of a set for long. */
function publish(staged: readonly { readonly temporary: string; readonly file: string }[]): boolean {
  const linked: string[] = [];
  try {
    for (const { temporary, file } of staged) {
      linkSync(temporary, file);
      linked.push(file);
    }
    return true;
  } catch (error) {
    for (const file of linked) rmSync(file);
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** The new names are durable only with their directory. */
async function syncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, 'r');
  await handle.sync();
}
