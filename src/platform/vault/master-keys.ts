// The file with the master keys, which wrap the data keys of workspaces: one key a line, the first of them wraps, the others only
// unwrap what was wrapped before.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { createSealer, sealKeyBytes, type Sealer } from '../../base/seal.ts';
import { codeOf } from '../store/database-error.ts';

export type MasterKey = {
  /** Identifies the key and does not disclose it. */
  readonly id: string;
  readonly sealer: Sealer;
};

export type MasterKeys = {
  /** Wraps. */
  readonly current: MasterKey;
  find(id: string): MasterKey | undefined;
};

const MAX_KEYS = 16;

/** Throws an InputError when the file is missing, is no list of keys, or can be read by others. Messages never quote it. */
export async function readMasterKeys(file: string): Promise<MasterKeys> {
  return toMasterKeys(file, await readKeyFile(file));
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

/** Puts a new key before the others, and returns the keys. A process that meets an unknown key reads the file again. */
export async function addMasterKey(file: string): Promise<MasterKeys> {
  const text = await readKeyFile(file);
  toMasterKeys(file, text);
  const added = `${newKeyText()}\n${text.trimEnd()}\n`;
  const keys = toMasterKeys(file, added);
  const temporary = `${file}.${randomUUID()}`;
  await writeDurably(temporary, added);
  await rename(temporary, file);
  await syncDirectory(file);
  return keys;
}

async function readKeyFile(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
    throw new InputError(
      `${file}: there is no master key; sallyport platform init creates one, or restore it from a backup`,
    );
  });
  const { mode, uid } = await stat(file);
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    throw new InputError(`${file}: other users can read this key; run chmod 600 on it`);
  // Otherwise a user who can write to the directory could choose the key.
  if (uid !== 0 && uid !== process.getuid?.())
    throw new InputError(`${file}: this key belongs to another user; run chown on it`);
  return text;
}

function toMasterKeys(file: string, text: string): MasterKeys {
  const lines = text.split('\n').map((line) => line.trim());
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
  return { current, find: (id) => byId.get(id) };
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

async function writeDurably(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600);
  await handle.writeFile(text);
  await handle.sync();
}

async function syncDirectory(file: string): Promise<void> {
  await using handle = await open(dirname(file), 'r');
  await handle.sync();
}
