// The sealed files of the state, FOLDER/ID.sealed: replaced whole and durably, listed, and read within a bound. A file
// is a header that names product and format, then the sealed text. The seal covers product, format and sandbox, so a
// file that was copied to another name does not open.
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

/** `in_doubt`: done, but the disk did not confirm it, so a power failure may undo it. */
export type Durability = 'durable' | 'in_doubt';

/** Creates the directory and its missing parents with mode 0700, durable once the promise settles. */
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
    // Opened before the change: after it, nothing may be needed that can fail.
    using folder = openFile(dirname(file), 'r');
    await createFile(temporary, bytes);
    renameSync(temporary, file);
    return await confirm(folder);
  } catch (cause) {
    // A failing disk may refuse this too. The first error is the one to report; the next start removes the file.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileError(file, `cannot be written (${codeOf(cause)})`, 'Its previous content is unchanged', cause);
  }
}

/** If it rejects, the file is still there. Removing a file that does not exist succeeds. */
export async function removeFile(file: string): Promise<Durability> {
  try {
    using folder = openFile(dirname(file), 'r');
    rmSync(file, { force: true });
    return await confirm(folder);
  } catch (cause) {
    throw fileError(file, `cannot be removed (${codeOf(cause)})`, 'The state in it is still stored', cause);
  }
}

// Synchronous where only the page cache is touched: each trip to the thread pool waits for a turn of the event loop, and
// ten trips made one change take 30 ms beside busy clients. The two calls that wait for the disk use the pool.
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

function confirm({ fd }: OpenFile): Promise<Durability> {
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

/** Removes what a crash left of files being written; replaceFile() and createFiles() name temporary files alike. */
export async function removeLeftovers(folder: string, isOurs: (name: string) => boolean): Promise<void> {
  for (const name of await listNames(folder)) {
    const written = /^(.+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
    if (written !== undefined && isOurs(written)) await removeFile(join(folder, name));
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
  const plain = Buffer.from(content);
  if (plain.length > maxStateBytes)
    throw new Error(`the state of ${id} has ${plain.length} bytes; at most ${maxStateBytes} can be stored`);
  return Buffer.concat([HEADER, await sealer.seal(plain, associatedWith(id))]);
}

/** The key and its name in messages; undefined: there is no key. */
export type NamedKey = { readonly sealer: Sealer | undefined; readonly name: string };

/** Content by sandbox id. Throws an Error that lists everything that cannot be used, and says what to do. */
export async function openStates(
  folder: string,
  { sealer, name: keyName }: NamedKey,
): Promise<ReadonlyMap<string, string>> {
  const names = await listNames(folder);
  // Reported before anything is read: what a file of another name was meant to be is unknown.
  const foreign = names.filter((name) => !isStateFileName(name));
  if (foreign.length > 0)
    throw fileError(
      folder,
      `unknown files: ${enumerate(foreign)}`,
      'Move what is not named ID.sealed elsewhere',
    );
  const contents = new Map<string, string>();
  if (names.length === 0) return contents;
  if (!sealer)
    throw fileError(
      keyName,
      'is missing, and state sealed with it exists',
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
  if (!errors.some(({ error }) => error === UNOPENED)) throw fileError(folder, found, RESTORE);
  if (contents.size > 0) throw fileError(folder, `${found}; ${DAMAGED}`, RESTORE);
  throw fileError(
    folder,
    `${found}; ${keyName} is not the key that sealed them, or they are damaged`,
    OTHER_KEY,
  );
}

const UNOPENED = 'does not open';
const DAMAGED = 'the key opens other files, so these are damaged, truncated or copies of another file';
const RESTORE = 'Restore each file from a backup, or remove it to start over with that sandbox';
const OTHER_KEY = 'Set the key that sealed them, or remove this directory to start over';

/** The text of the file, or what is wrong with it in words that fit after its name. */
async function readState(file: string, id: string, sealer: Sealer): Promise<Buffer | string> {
  const bytes = await readBoundedFile(file);
  if (typeof bytes === 'string') return bytes;
  const header = bytes.subarray(0, HEADER.length);
  if (header.length < HEADER.length && HEADER.indexOf(header) === 0) return 'is truncated';
  if (!header.subarray(0, MAGIC.length).equals(MAGIC)) return 'is not sealed state';
  if (!header.equals(HEADER)) return 'has the format of another version of Sallyport';
  return (await sealer.open(bytes.subarray(HEADER.length), associatedWith(id))) ?? UNOPENED;
}

async function readBoundedFile(file: string): Promise<Buffer | string> {
  try {
    // A link or a pipe was not put here by Sallyport: it must neither be followed nor waited for.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile()) return 'is not a regular file';
    if (stats.size > maxStateFileBytes) return `is larger than ${maxStateFileBytes} bytes`;
    return await handle.readFile();
  } catch (error) {
    return `cannot be read (${codeOf(error)})`;
  }
}

function associatedWith(id: string): string {
  return `sallyport/state/${FORMAT}/sandbox/${id}`;
}

const MAX_NAMED = 5;

function enumerate(items: readonly string[]): string {
  // Escaped: a file name may hold control characters, and this goes to a terminal.
  const named = items.slice(0, MAX_NAMED).map((item) => JSON.stringify(item).slice(1, -1));
  return named.join(', ') + (items.length > MAX_NAMED ? ` and ${items.length - MAX_NAMED} more` : '');
}
