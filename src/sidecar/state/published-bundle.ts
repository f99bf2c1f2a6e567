// The bundle of CA certificates in the public part of the state directory: `sallyport env` names it, so that it need not
// write a file. It is replaced as a whole, so that a client never reads half of it.
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { publicPart } from './state-directory.ts';

export function bundleFile(directory: string): string {
  return join(publicPart(directory), 'ca-bundle.pem');
}

/** The bundle, or undefined if it is missing or has another CA certificate than `caPem`. */
export async function readPublishedBundle(file: string, caPem: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text?.includes(caPem.trim()) ? text : undefined;
}

/** Writes the file if its content differs. Throws the error of the file system. */
export async function publishBundle(file: string, bundlePem: Buffer): Promise<void> {
  const before = await readFile(file).catch(() => undefined);
  if (before?.equals(bundlePem)) return;
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await using handle = await open(temporary, 'wx', 0o644);
    // Whatever the umask is: other users are to read it.
    await handle.chmod(0o644);
    await handle.writeFile(bundlePem);
    await handle.sync();
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}
