// The socket of an agent server under a name that code of its deployment cannot change. It can put anything into its own directory: a
// link to the admin socket of the machine, for example, which whoever connects by that path would speak to.
import { link, lstat, unlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 25;

/**
 * Waits until there is something at `from`, and gives it the name `to` besides, in a directory of this user alone on the same file
 * system. What is there later at `from` changes nothing. Rejects when it is no socket, or when the signal aborts.
 */
export async function pinSocket(from: string, to: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    // A hard link is made of the name itself: a symbolic link is not followed (linkat without AT_SYMLINK_FOLLOW).
    if (await tryLink(from, to)) break;
    await delay(PAUSE_MS, undefined, { signal });
  }
  if ((await lstat(to)).isSocket()) return;
  await unlink(to);
  throw new Error('the agent server put something else in the place of its socket');
}

async function tryLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
