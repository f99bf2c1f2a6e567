// Files for clients, which may run as another user: readable by everyone, whatever the umask. Their names are derived from
// their content, so a file never changes under a running client.
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createFiles } from '../../tls/pem-files.ts';

/** What to write: `NAME-DIGEST.EXTENSION`. */
export type PublicFile = {
  readonly name: string;
  readonly extension: string;
  readonly content: string | Uint8Array;
};

/** Returns the path of the file. Throws if a file of that name has other content. */
export async function writePublicFile(
  directory: string,
  { name, extension, content }: PublicFile,
): Promise<string> {
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
  const file = join(directory, `${name}-${digest}.${extension}`);
  // A directory that exists may be one that the user keeps closed.
  const isNew = (await mkdir(directory, { recursive: true })) !== undefined;
  if (isNew) await chmod(directory, 0o755);
  if (await createFiles([{ file, text: content, mode: 0o644 }])) await chmod(file, 0o644);
  else if (!(await hasContent(file, Buffer.from(content))))
    throw new Error(`${file} has other content than Sallyport wrote: remove it`);
  return file;
}

async function hasContent(file: string, content: Buffer): Promise<boolean> {
  // A named pipe would block the reader.
  return (await stat(file)).isFile() && content.equals(await readFile(file));
}
