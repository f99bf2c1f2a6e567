// The bundle of CA certificates in the public part of the state directory: `sallyport env` names it, so that it need not
// write a file. It is replaced as a whole, so that a client never reads half of it.
import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf } from '../../tls/pem-files.ts';
import { publicPart } from './state-directory.ts';
import { removeTemporaryFiles } from './state-files.ts';

export function bundleFile(directory: string): string {
  return join(publicPart(directory), 'ca-bundle.pem');
}

/**
 * The bundle, or undefined if it is missing or has another CA certificate than `caPem`. Waits a moment for it: a proxy
 * that has just started writes it once it is ready.
 */
export async function readPublishedBundle(
  file: string,
  caPem: string,
  { attempts }: { readonly attempts: number } = { attempts: 20 },
): Promise<string | undefined> {
  for (let left = attempts; left > 0; left -= 1) {
    const text = await readFile(file, 'utf8').catch(() => undefined);
    if (text?.includes(caPem.trim())) return text;
    if (left > 1) await delay(RETRY_MS);
  }
  return undefined;
}

const RETRY_MS = 50;

/**
 * Writes the bundle, or another file that clients read, if its content differs, and removes what a kill left of it. Throws an
 * Error with the code of the system.
 */
export async function publishFile(file: string, content: Buffer): Promise<void> {
  await removeTemporaryFiles(dirname(file), (name) => name === basename(file)).catch(() => undefined);
  const before = await readFile(file).catch(() => undefined);
  if (before?.equals(content)) return;
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await using handle = await open(temporary, 'wx', 0o644);
    // Whatever the umask is: other users are to read it.
    await handle.chmod(0o644);
    await handle.writeFile(content);
    await handle.sync();
    await rename(temporary, file).catch((error: unknown) => {
      // Another process that starts with this state removed it, and writes its own.
      if (codeOf(error) !== 'ENOENT') throw error;
    });
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}
