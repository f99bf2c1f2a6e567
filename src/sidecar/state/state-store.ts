// The state of every sandbox across restarts: one sealed file each, DIRECTORY/sandboxes/ID.sealed. Content is text that
// it does not understand. What was not read is never written over, and what does not open stops the start: with half of
// the state, rules would go missing unseen.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readInput } from '../../base/input-error.ts';
import { isSandboxId } from '../../base/sandbox-id.ts';
import { createSealer, type Sealer } from '../../base/seal.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import { isPresent, fileError } from '../../tls/pem-files.ts';
import { createStateAccess } from './state-access.ts';
import { type Durability, makeDirectory, removeFile, replaceFile } from './state-file.ts';
import { createStateKey, readStateKey, type StateKeySource } from './state-key.ts';
import { listState, readStates, stateFileName, outsidersFound } from './state-listing.ts';
import { sealState } from './state-seal.ts';

export type StateStore = {
  /** Content by id. To be called before anything is written; an Error names each file that cannot be used. */
  readAll(): Promise<ReadonlyMap<string, string>>;
  /** Kept once the promise settles; if it rejects, what was there before is. In the order of the calls. */
  write(id: string, content: string): Promise<Durability>;
  /** If it rejects, it is still there. */
  remove(id: string): Promise<Durability>;
  /** Waits for what was begun, then lets another process in. */
  close(): Promise<void>;
};

type Settings = { readonly directory: string; readonly key: StateKeySource };
type ReadState = {
  readonly contents: ReadonlyMap<string, string>;
  readonly sealer: Sealer | undefined;
};

/** Touches nothing before it is asked. Libsodium and SQLite are loaded once there is state to read or write. */
export function createStateStore({ directory, key }: Settings): StateStore {
  const folder = join(directory, 'sandboxes');
  const access = createStateAccess({ directory, folder, keyFile: 'file' in key ? key.file : undefined });
  const queue = new WorkQueue();
  let isClosed = false;
  // What opened the state is what seals it, whatever becomes of the key file while we run.
  let sealer: Sealer | undefined;

  let hasFolder = false;

  const makeFolder = async (): Promise<void> => {
    if (hasFolder && existsSync(folder)) return;
    await makeDirectory(folder);
    hasFolder = true;
  };
  const assertOpen = (): void => {
    if (isClosed) throw new Error(`${folder}: the state is closed`);
  };
  const inOrder = async (id: string, work: (file: string) => Promise<Durability>): Promise<Durability> => {
    assertOpen();
    if (!isSandboxId(id)) throw new Error('an id of state has a-z, 0-9 and inner hyphens, 63 at most');
    return queue.run(id, () => work(join(folder, stateFileName(id))));
  };

  return {
    async readAll() {
      assertOpen();
      const hasFolder = await isPresent(folder);
      if (hasFolder) await access.toRead();
      try {
        const found = await readInput(() => readFolder(key, hasFolder ? folder : undefined));
        sealer = found.sealer;
        return found.contents;
      } catch (error) {
        // The next write must find it unread.
        await access.release();
        throw error;
      }
    },
    write: (id, content) =>
      inOrder(id, async (file) => {
        await makeFolder();
        await access.toWrite();
        sealer ??= createSealer(await keyToWrite(key));
        return replaceFile(file, await sealState(sealer, id, content));
      }),
    remove: (id) =>
      inOrder(id, async (file) => {
        if (!(await isPresent(folder))) return 'durable';
        await access.toWrite();
        return removeFile(file);
      }),
    async close() {
      isClosed = true;
      await queue.idle();
      await access.release();
    },
  };
}

/** The key is read even if nothing is sealed: one that is no good is told at the start, not at the first write. */
async function readFolder(source: StateKeySource, folder: string | undefined): Promise<ReadState> {
  const key = await readStateKey(source);
  const sealer = key && createSealer(key);
  if (folder === undefined) return { contents: new Map(), sealer };
  const { ids, outsiders } = await listState(folder);
  if (outsiders.length > 0) throw outsidersFound(folder, outsiders);
  if (ids.length === 0) return { contents: new Map(), sealer };
  if (sealer === undefined) throw keyIsLost(source, folder);
  return { contents: await readStates(folder, ids, { sealer, name: nameOf(source) }), sealer };
}

/** Only where nothing is sealed yet: access to write was given, and what was read has brought its key. */
async function keyToWrite(source: StateKeySource): Promise<Buffer> {
  return (await readStateKey(source)) ?? createStateKey(nameOf(source));
}

function keyIsLost(source: StateKeySource, folder: string): Error {
  const name = nameOf(source);
  return fileError(
    name,
    'is gone and state that it sealed is there',
    `Restore it, or remove ${folder} to begin anew`,
  );
}

function nameOf(source: StateKeySource): string {
  return 'file' in source ? source.file : source.from;
}
