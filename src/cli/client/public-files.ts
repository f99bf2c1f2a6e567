// Files for clients, which may run as another user: readable by everyone, whatever the umask. Their names are derived from
// their content, so a file never changes under a running client.
import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, lstat, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { codeOf, createDirectories, createFiles } from '../../tls/pem-files.ts';

/** What to write: `NAME-DIGEST.EXTENSION`. */
export type PublicFile = {
  readonly name: string;
  readonly extension: string;
  readonly content: string | Uint8Array;
};

/**
 * Returns the path of the file. Throws if a file of that name has other content, or if another user could replace it: its
 * name can be guessed, clients trust the certificates in it, and Node runs the one that NODE_OPTIONS names.
 */
export async function writePublicFile(
  directory: string,
  { name, extension, content }: PublicFile,
): Promise<string> {
  try {
    return await write(directory, { name, extension, content });
  } catch (cause) {
    // Errors without a code are ours and say what to do.
    if (cause instanceof InputError || codeOf(cause) === undefined) throw cause;
    const hint = 'use a writable directory with free space (--write, or TMPDIR for `sallyport run`)';
    throw new InputError(`${directory} cannot be written to (${String(codeOf(cause))}): ${hint}`, { cause });
  }
}

async function write(directory: string, { name, extension, content }: PublicFile): Promise<string> {
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
  const file = join(directory, `${name}-${digest}.${extension}`);
  // A directory that exists may be one that the user keeps closed.
  const isNew = createDirectories(directory, 0o755) !== undefined;
  if (isNew) await chmod(directory, 0o755);
  else await requireOurs(directory);
  if (await createFiles([{ file, text: content, mode: 0o644 }])) await chmod(file, 0o644);
  else if (!(await isOurs(file, Buffer.from(content))))
    throw new Error(
      `${file} has other content than Sallyport wrote, or other users can change it: remove it`,
    );
  return file;
}

/** In a directory with the sticky bit, such as /tmp, only its owner and that of a file can replace the file. */
async function requireOurs(directory: string): Promise<void> {
  const stats = await stat(directory);
  const isShared = (stats.mode & 0o002) !== 0 && (stats.mode & 0o1000) === 0;
  // The owner of a link can let it lead elsewhere afterwards.
  if (isShared || !isOwned(stats) || !isOwned(await lstat(directory)))
    throw new InputError(
      `other users can replace files in ${directory}, which programs are to trust: use a directory of your own`,
    );
}

/** Not through a link, whose owner can change where it leads. */
async function isOurs(file: string, content: Buffer): Promise<boolean> {
  const stats = await lstat(file);
  // A named pipe would block the reader.
  const isFixed = stats.isFile() && isOwned(stats) && (stats.mode & 0o022) === 0;
  return isFixed && content.equals(await readFile(file));
}

function isOwned({ uid }: Stats): boolean {
  return uid === 0 || uid === (process.getuid?.() ?? uid);
}
