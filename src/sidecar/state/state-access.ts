// Who may touch the state: one process at a time, and only one that has seen what is there. On the way in it removes
// what a crash left in the middle of a write. Knows nothing of what the files hold.
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { fileError } from '../../tls/pem-files.ts';
import { leftoverOf, removeFile } from './state-file.ts';
import { listState } from './state-listing.ts';
import { lockState, type StateLock } from './state-lock.ts';

export type StateAccess = {
  toRead(): Promise<void>;
  /** Throws an Error if there is state that this process did not read: it would be written over unseen. */
  toWrite(): Promise<void>;
  /** Another process may enter, and this one must read again before it writes. */
  release(): Promise<void>;
};

type Place = { readonly directory: string; readonly folder: string; readonly keyFile: string | undefined };

export function createStateAccess(place: Place): StateAccess {
  let lock: Promise<StateLock> | undefined;
  const enter = async (hasRead: boolean): Promise<void> => {
    lock ??= lockPlace(place, hasRead).catch((error: unknown) => {
      lock = undefined;
      throw error;
    });
    await lock;
  };
  return {
    toRead: () => enter(true),
    toWrite: () => enter(false),
    async release() {
      const held = await lock;
      lock = undefined;
      held?.release();
    },
  };
}

async function lockPlace(place: Place, hasRead: boolean): Promise<StateLock> {
  const lock = await lockState(place.directory);
  try {
    const { ids, leftovers } = await listState(place.folder);
    if (ids.length > 0 && !hasRead)
      throw fileError(place.folder, 'has state that was not read', 'Start again');
    for (const name of leftovers) await removeFile(join(place.folder, name));
    await removeKeyLeftovers(place);
    return lock;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A key that nobody would look for. Beside the state only: elsewhere another process may be making one. */
async function removeKeyLeftovers({ directory, keyFile }: Place): Promise<void> {
  if (keyFile === undefined || resolve(dirname(keyFile)) !== resolve(directory)) return;
  for (const name of await readdir(directory))
    if (leftoverOf(name) === basename(keyFile)) await removeFile(join(directory, name));
}
