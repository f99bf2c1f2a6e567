// The file with the master keys, which wrap the data keys of workspaces: one key a line, the first of them wraps, the others only
// unwrap what was wrapped before.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, mkdir, open, rename, rm, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { createSealer, sealKeyBytes, type Sealer } from '../../base/seal.ts';
import type { Secret } from '../../base/secret.ts';
import { codeOf } from '../store/database-error.ts';

export type MasterKey = {
  /** Identifies the key and does not disclose it. */
  readonly id: string;
  readonly sealer: Sealer;
};

export type MasterKeys = {
  /** In the order of the file. */
  readonly all: readonly MasterKey[];
  /** The first one, with which `rewrap` wraps. */
  readonly current: MasterKey;
  find(id: string): MasterKey | undefined;
};

/** Where the keys of an installation are. */
export type MasterKeySource = {
  readonly masterKeyFile: string;
  /** Named by the operator: a file that is missing is not created. */
  readonly isProvided?: boolean;
  /** In place of the file, and never written to one: a line of it. */
  readonly masterKey?: Secret | undefined;
};

const MAX_KEYS = 16;
const MAX_FILE_BYTES = 4096;

/** Throws an InputError when the file is missing, is no list of keys, or can be read by others. Messages never quote it. */
export async function readMasterKeys(file: string): Promise<MasterKeys> {
  const keys = await findMasterKeys(file);
  if (keys !== undefined) return keys;
  throw new InputError(
    `${file}: there is no master key; sallyport platform init creates one, or restore it from a backup`,
  );
}

/** Undefined: there is no such file. */
export async function findMasterKeys(file: string): Promise<MasterKeys | undefined> {
  const bytes = await readKeyFile(file);
  return bytes && toMasterKeys(file, bytes);
}

/** The same of wherever they are. */
export async function findKeysOf({
  masterKeyFile,
  masterKey,
}: MasterKeySource): Promise<MasterKeys | undefined> {
  if (masterKey === undefined) return findMasterKeys(masterKeyFile);
  return toMasterKeys('the master key', Buffer.from(masterKey.reveal()));
}

/** Creates the file with one key, unless it exists. Several processes may do so at once: one key wins. */
export async function createMasterKeyFile(file: string): Promise<'created' | 'exists'> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomUUID()}`;
  await writeDurably(temporary, `${newKeyText()}\n`);
  try {
    await link(temporary, file);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return 'exists';
  } finally {
    await unlink(temporary);
  }
  await syncDirectory(file);
  return 'created';
}

/**
 * Puts a new key before the others, and returns the keys. Of two calls at once, one key would be lost: the caller holds the lock
 * of `master-key-registry`.
 */
export async function addMasterKey(file: string): Promise<MasterKeys> {
  await readMasterKeys(file);
  const old = await readKeyFile(file);
  const added = Buffer.concat([Buffer.from(`${newKeyText()}\n`), old ?? Buffer.alloc(0)]);
  const keys = toMasterKeys(file, added);
  const temporary = `${file}.${randomUUID()}`;
  try {
    await writeDurably(temporary, added);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new InputError(
      `${file}: cannot be replaced (${String(codeOf(error))}); add a first line with a new key where the file comes from, then run rewrap without --new-master-key`,
      { cause: error },
    );
  }
  await syncDirectory(file);
  added.fill(0);
  old?.fill(0);
  return keys;
}

async function readKeyFile(file: string): Promise<Buffer | undefined> {
  // A link could be replaced by another user of the directory that it points to, and a pipe would block.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(file, flags).catch((error: unknown) => {
    const code = codeOf(error);
    if (code === 'ENOENT') return undefined;
    throw new InputError(
      code === 'ELOOP'
        ? `${file}: is a symbolic link; name the file itself`
        : `${file}: the master key cannot be read (${String(code)})`,
      { cause: error },
    );
  });
  if (handle === undefined) return undefined;
  try {
    await refuseUnsafe(file, handle);
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Asked of the open file: another one could have its name by now. */
async function refuseUnsafe(file: string, handle: FileHandle): Promise<void> {
  const stats = await handle.stat();
  if (!stats.isFile()) throw new InputError(`${file}: is not a regular file`);
  if (process.platform !== 'win32' && (stats.mode & 0o077) !== 0)
    throw new InputError(`${file}: other users can read or change this key; run chmod 600 on it`);
  // Otherwise a user who can write to the directory could choose the key.
  if (stats.uid !== 0 && stats.uid !== process.getuid?.())
    throw new InputError(`${file}: this key belongs to another user; run chown on it`);
  if (stats.size > MAX_FILE_BYTES) throw new InputError(`${file}: is larger than ${MAX_FILE_BYTES} bytes`);
}

function toMasterKeys(file: string, bytes: Buffer): MasterKeys {
  const lines = bytes
    .toString('latin1')
    .split('\n')
    .map((line) => line.trim());
  const keys = lines.filter((line) => line !== '').map(parseKey);
  const known = keys.filter((key) => key !== undefined);
  const [current] = known;
  if (current === undefined || known.length < keys.length)
    throw new InputError(
      `${file}: every line must be ${sealKeyBytes} random bytes in base64 (openssl rand -base64 32)`,
    );
  if (keys.length > MAX_KEYS)
    throw new InputError(`${file}: has more than ${MAX_KEYS} keys; remove those that wrap nothing any more`);
  const byId = new Map(known.map((key) => [key.id, key]));
  return { all: known, current, find: (id) => byId.get(id) };
}

function parseKey(line: string): MasterKey | undefined {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(line)) return undefined;
  const key = Buffer.from(line, 'base64');
  // The last letter has bits that belong to no byte; if they are set, the key was mistyped.
  if (key.toString('base64') !== line) return undefined;
  const id = createHash('sha256').update('sallyport vault master key').update(key).digest('hex').slice(0, 16);
  return { id, sealer: createSealer(key) };
}

function newKeyText(): string {
  return randomBytes(sealKeyBytes).toString('base64');
}

async function writeDurably(file: string, content: string | Buffer): Promise<void> {
  await using handle = await open(file, 'wx', 0o600);
  await handle.writeFile(content);
  await handle.sync();
}

async function syncDirectory(file: string): Promise<void> {
  await using handle = await open(dirname(file), 'r');
  await handle.sync();
}
