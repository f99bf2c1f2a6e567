// Stores the state of every sandbox across restarts, one sealed file each: DIRECTORY/sandboxes/ID.sealed. The content is
// opaque text. State that was not read is never overwritten, and one file that cannot be decrypted stops the start: with
// half of the state, rules would be missing unnoticed.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { readInput } from '../../base/input-error.ts';
import { isSandboxId } from '../../base/sandbox-id.ts';
import { type Sealer, createSealer, sealKeyBytes } from '../../base/seal.ts';
import { WorkQueue } from '../../base/work-queue.ts';
import { createFiles, isPresent, readKeyFile, fileError } from '../../tls/pem-files.ts';
import * as files from './state-files.ts';
import { type StateLock, lockState } from './state-lock.ts';

export type StateStore = Pick<SealedStateStore, keyof SealedStateStore>;

/** Touches no file before the first call. Libsodium and SQLite are loaded once there is state to read or write. */
export class SealedStateStore {
  readonly #directory: string;
  readonly #folder: string;
  readonly #key: StateKeySource;
  readonly #queue = new WorkQueue();
  #isClosed = false;
  #lock: StateLock | undefined;
  /** The key that opened the state seals it, whatever happens to the key file while the process runs. */
  #sealer: Sealer | undefined;

  constructor({ directory, key }: { readonly directory: string; readonly key: StateKeySource }) {
    this.#directory = directory;
    this.#folder = join(directory, 'sandboxes');
    this.#key = key;
  }

  /** Content by sandbox id. Must be called before the first write. An Error names each file that cannot be used. */
  readAll(): Promise<ReadonlyMap<string, string>> {
    return this.#inOrder(async () => {
      if (await isPresent(this.#folder))
        return this.#locked(() =>
          readInput(async () => files.openStates(this.#folder, await this.#readKey())),
        );
      // Read although nothing is sealed: an unusable key is reported at the start, not at the first write.
      await readInput(() => this.#readKey());
      return new Map();
    });
  }

  /** If it rejects, the previous content is still stored. Writes happen in the order of the calls. */
  write(id: string, content: string): Promise<files.Durability> {
    return this.#change(id, async (file) => {
      if (!existsSync(this.#folder)) await files.createDirectory(this.#folder);
      await this.#lockUnread();
      // Without a sealer nothing is sealed yet.
      this.#sealer ??= createSealer(
        (await readStateKey(this.#key)) ?? (await createStateKey(nameOf(this.#key))),
      );
      return files.replaceFile(file, await files.sealState(this.#sealer, id, content));
    });
  }

  /** If it rejects, the content is still stored. */
  remove(id: string): Promise<files.Durability> {
    return this.#change(id, async (file) => {
      if (!(await isPresent(this.#folder))) return 'durable';
      await this.#lockUnread();
      return files.removeFile(file);
    });
  }

  /** Waits for the operations that were begun, then lets another process use the state. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#queue.idle();
    this.#unlock();
  }

  async #inOrder<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new Error(`${this.#folder}: the state is closed`);
    return this.#queue.run(work);
  }

  async #change(id: string, work: (file: string) => Promise<files.Durability>): Promise<files.Durability> {
    if (!isSandboxId(id))
      throw new Error('a sandbox id has 1 to 63 characters of a-z, 0-9 and inner hyphens');
    return this.#inOrder(() => work(files.stateFile(this.#folder, id)));
  }

  /** Before `work`, locks the state and removes what a crash left in the middle of a write. */
  async #locked<T>(work: () => Promise<T>): Promise<T> {
    try {
      this.#lock ??= await lockState(this.#directory);
      await files.removeTemporaryFiles(this.#folder, files.isStateFileName);
      const keyFile = 'file' in this.#key ? this.#key.file : undefined;
      // Only in the state directory: elsewhere another process may be creating a key.
      if (keyFile !== undefined && resolve(dirname(keyFile)) === resolve(this.#directory))
        await files.removeTemporaryFiles(this.#directory, (name) => name === basename(keyFile));
      return await work();
    } catch (error) {
      // The next write must find the state unread.
      this.#unlock();
      throw error;
    }
  }

  /** Before the first write. State of another process, written since the start, must be read first. */
  async #lockUnread(): Promise<void> {
    if (this.#lock) return;
    await this.#locked(async () => {
      if ((await files.listNames(this.#folder)).some(files.isStateFileName))
        throw fileError(this.#folder, 'has state that was not read', 'Start again');
    });
  }

  #unlock(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  async #readKey(): Promise<files.NamedSealer> {
    const found = await readStateKey(this.#key);
    this.#sealer = found && createSealer(found);
    return { sealer: this.#sealer, name: nameOf(this.#key) };
  }
}

/** A file, or the text of the key; `from` names the text in messages, for example its variable. */
export type StateKeySource = { readonly file: string } | { readonly text: string; readonly from: string };

function nameOf(source: StateKeySource): string {
  return 'file' in source ? source.file : source.from;
}

const WANTED = `${sealKeyBytes} random bytes as base64, base64url or hex`;
const RESTORE = 'Restore the key from a backup, or remove it and the state that it encrypted to start over';
const ADVICE = {
  unreadable: RESTORE,
  exposed: 'if they may have read it, replace the secrets in the state and start over',
};

/** Undefined: the file does not exist. Throws an Error, without the text, if it is no key or others can read it. */
export async function readStateKey(source: StateKeySource): Promise<Buffer | undefined> {
  if ('text' in source) {
    const key = parseStateKey(source.text);
    if (key === undefined) throw new Error(`${source.from}: must be ${WANTED} (openssl rand -base64 32)`);
    return key;
  }
  if (!(await isPresent(source.file))) return undefined;
  const key = parseStateKey(await readKeyFile(source.file, ADVICE));
  if (key === undefined) throw fileError(source.file, `does not hold ${WANTED}`, RESTORE);
  return key;
}

/** Creates the file, or reads the key that another process created a moment earlier: there must not be two keys. */
export async function createStateKey(file: string): Promise<Buffer> {
  const key = randomBytes(sealKeyBytes);
  if (await createFiles([{ file, text: `${key.toString('base64')}\n`, mode: 0o600 }])) return key;
  const theirs = await readStateKey({ file });
  if (theirs === undefined) throw fileError(file, 'disappeared while it was read', 'Start again');
  return theirs;
}

/** White space around the key is allowed: editors and `echo` write a line end. */
function parseStateKey(text: string): Buffer | undefined {
  const trimmed = text.trim();
  if (/^[0-9a-f]{64}$/i.test(trimmed)) return Buffer.from(trimmed, 'hex');
  if (!/^([A-Za-z0-9+/]{43}|[A-Za-z0-9_-]{43})=?$/.test(trimmed)) return undefined;
  const key = Buffer.from(trimmed, 'base64');
  // The last letter has bits that belong to no byte; if they are set, the key was mistyped or truncated.
  return key.toString('base64url').at(-1) === trimmed.at(42) ? key : undefined;
}
