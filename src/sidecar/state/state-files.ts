// The sealed state files, FOLDER/ID.sealed: replaced atomically and durably, listed, and read up to a maximum size. A file
// is a header with the product and the format version, then the sealed state. Product, format version and sandbox id are
// the associated data, so a file that was copied to another name cannot be decrypted.
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fsync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { isSandboxId } from '../../base/sandbox-id.ts';
import { type Sealer, sealOverheadBytes } from '../../base/seal.ts';
import { codeOf, fileError, syncDirectory } from '../../tls/pem-files.ts';

const SUFFIX = '.sealed';
const MAGIC = Buffer.from('sallyport state');
const FORMAT = 1;
const HEADER = Buffer.from([...MAGIC, FORMAT]);

export const maxStateBytes = 64 * 1024 * 1024;
export const maxStateFileBytes = HEADER.length + sealOverheadBytes + maxStateBytes;

/** `in_doubt`: the change was made but fsync failed, so a power failure may undo it. */
export type Durability = 'durable' | 'in_doubt';

/** Creates the directory and its missing parents with mode 0700. They are durable when the promise resolves. */
export async function createDirectory(directory: string): Promise<void> {
  try {
    const first = await mkdir(resolve(directory), { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    for (let made = resolve(directory); made.length >= first.length; made = dirname(made))
      await syncDirectory(dirname(made));
  } catch (cause) {
    throw fileError(directory, `cannot be created (${codeOf(cause)})`, 'The state was not stored', cause);
  }
}

/** If it rejects, the file holds what it held before. */
export async function replaceFile(file: string, bytes: Buffer): Promise<Durability> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    // Opened before the rename: once the file is replaced, no error may report that it is unchanged.
    using folder = openFile(dirname(file), 'r');
    await createFile(temporary, bytes);
    renameSync(temporary, file);
    return await syncChange(folder);
  } catch (cause) {
    // This may fail too. Only the first error is reported; the next start removes the temporary file.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileError(file, `cannot be written (${codeOf(cause)})`, 'Its previous content is unchanged', cause);
  }
}

/** If it rejects, the file is still there. Removing a file that does not exist succeeds. */
export async function removeFile(file: string): Promise<Durability> {
  try {
    using folder = openFile(dirname(file), 'r');
    rmSync(file, { force: true });
    return await syncChange(folder);
  } catch (cause) {
    throw fileError(file, `cannot be removed (${codeOf(cause)})`, 'The state in it is still stored', cause);
  }
}

// Calls that only touch the page cache are synchronous: each call through the thread pool waits for a turn of the event
// loop, and with ten of them one change took 30 ms under load. Both fsync calls wait for the disk, so they use the pool.
type OpenFile = Disposable & { readonly fd: number };

function openFile(file: string, flags: string): OpenFile {
  const fd = openSync(file, flags, 0o600);
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

async function createFile(file: string, bytes: Buffer): Promise<void> {
  using created = openFile(file, 'wx');
  writeFileSync(created.fd, bytes);
  await syncFd(created.fd);
}

const syncFd = promisify(fsync);

function syncChange({ fd }: OpenFile): Promise<Durability> {
  return syncFd(fd).then(
    () => 'durable',
    () => 'in_doubt',
  );
}

export function stateFile(folder: string, id: string): string {
  return join(folder, id + SUFFIX);
}

export function isStateFileName(name: string): boolean {
  return name.endsWith(SUFFIX) && isSandboxId(name.slice(0, -SUFFIX.length));
}

/**
 * Removes the temporary files that a crash left of files whose names match `isTarget`. replaceFile() and createFiles() name
 * their temporary files in the same way.
 */
export async function removeTemporaryFiles(
  folder: string,
  isTarget: (name: string) => boolean,
): Promise<void> {
  for (const name of await listNames(folder)) {
    const target = /^(.+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
    if (target !== undefined && isTarget(target)) await removeFile(join(folder, name));
  }
}

export async function listNames(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).toSorted();
  } catch (cause) {
    throw fileError(
      folder,
      `cannot be listed (${codeOf(cause)})`,
      'It must be a directory of Sallyport',
      cause,
    );
  }
}

export async function sealState(sealer: Sealer, id: string, content: string): Promise<Buffer> {
  const plaintext = Buffer.from(content);
  if (plaintext.length > maxStateBytes)
    throw new Error(
      `the state of ${id} has ${plaintext.length} bytes; at most ${maxStateBytes} can be stored`,
    );
  return Buffer.concat([HEADER, await sealer.seal(plaintext, associatedData(id))]);
}

/** The sealer, undefined if there is no key, and the name of the key in messages. */
export type NamedSealer = { readonly sealer: Sealer | undefined; readonly name: string };

/** Decrypted content by sandbox id. Throws one InputError that lists all unusable files and says what to do. */
export async function openStates(
  folder: string,
  { sealer, name: keyName }: NamedSealer,
): Promise<ReadonlyMap<string, string>> {
  const names = await listNames(folder);
  // Reported before any file is read: what a file with another name contains is unknown.
  const unknown = names.filter((name) => !isStateFileName(name));
  if (unknown.length > 0)
    throw fileError(
      folder,
      `unknown files: ${enumerate(unknown)}`,
      'Move every file that is not named ID.sealed to another directory',
    );
  const contents = new Map<string, string>();
  if (names.length === 0) return contents;
  if (!sealer)
    throw fileError(
      keyName,
      'is missing, and files that it encrypted exist',
      `Restore it, or remove ${folder} to start over`,
    );
  const errors: { readonly name: string; readonly error: string }[] = [];
  for (const name of names) {
    const id = name.slice(0, -SUFFIX.length);
    const read = await readState(join(folder, name), id, sealer);
    if (typeof read === 'string') errors.push({ name, error: read });
    else contents.set(id, read.toString());
  }
  if (errors.length === 0) return contents;
  const list = enumerate(errors.map(({ name, error }) => `${name} ${error}`));
  const found = `${errors.length} of ${names.length} files cannot be used: ${list}`;
  if (!errors.some(({ error }) => error === UNDECRYPTABLE)) throw fileError(folder, found, RESTORE);
  if (contents.size > 0) throw fileError(folder, `${found}; ${DAMAGED}`, RESTORE);
  throw fileError(
    folder,
    `${found}; ${keyName} is not the key that encrypted them, or they are damaged`,
    OTHER_KEY,
  );
}

const UNDECRYPTABLE = 'cannot be decrypted';
const DAMAGED = 'the key decrypts other files, so these are damaged, truncated or copies of another file';
const RESTORE = 'Restore each file from a backup, or remove it to start over with that sandbox';
const OTHER_KEY = 'Set the key that encrypted them, or remove this directory to start over';

/** The content of the file, or why it cannot be used, worded to follow the file name. */
async function readState(file: string, id: string, sealer: Sealer): Promise<Buffer | string> {
  const bytes = await readBoundedFile(file);
  if (typeof bytes === 'string') return bytes;
  const header = bytes.subarray(0, HEADER.length);
  if (header.length < HEADER.length && HEADER.indexOf(header) === 0) return 'is truncated';
  if (!header.subarray(0, MAGIC.length).equals(MAGIC)) return 'is not sealed state';
  if (!header.equals(HEADER)) return 'has the format of another version of Sallyport';
  return (await sealer.open(bytes.subarray(HEADER.length), associatedData(id))) ?? UNDECRYPTABLE;
}

async function readBoundedFile(file: string): Promise<Buffer | string> {
  try {
    // Sallyport creates no symbolic link or named pipe here: a link must not be followed, and a pipe must not block open().
    await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile()) return 'is not a regular file';
    if (stats.size > maxStateFileBytes) return `is larger than ${maxStateFileBytes} bytes`;
    return await handle.readFile();
  } catch (error) {
    return `cannot be read (${codeOf(error)})`;
  }
}

function associatedData(id: string): string {
  return `sallyport/state/${FORMAT}/sandbox/${id}`;
}

const MAX_LISTED = 5;

function enumerate(items: readonly string[]): string {
  // Escaped: a file name may contain control characters, and the message is printed to a terminal.
  const named = items.slice(0, MAX_LISTED).map((item) => JSON.stringify(item).slice(1, -1));
  return named.join(', ') + (items.length > MAX_LISTED ? ` and ${items.length - MAX_LISTED} more` : '');
}
