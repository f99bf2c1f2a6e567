// The files of the state as bytes: replaced whole and durably, read within a bound. Knows no key and no sandbox.
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fsync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { codeOf, fileError, syncDirectory } from '../../tls/pem-files.ts';

/** Makes the directory and those above it, readable by us alone, durable once the promise settles. */
export async function makeDirectory(directory: string): Promise<void> {
  try {
    const first = await mkdir(resolve(directory), { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    for (let made = resolve(directory); made.length >= first.length; made = dirname(made))
      await syncDirectory(dirname(made));
  } catch (cause) {
    throw fileError(directory, `cannot be made (${codeOf(cause)})`, 'The state is not kept', cause);
  }
}

/** `in_doubt`: done, but the disk did not confirm it; it may not be there after a loss of power. */
export type Durability = 'durable' | 'in_doubt';

/** If it rejects, the file holds what it held before. */
export async function replaceFile(file: string, bytes: Buffer): Promise<Durability> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    // Before the change: once it is made, nothing that could be missing may be needed.
    using folder = openFile(dirname(file), 'r');
    await createFile(temporary, bytes);
    renameSync(temporary, file);
    return await confirm(folder);
  } catch (cause) {
    // A disk that fails may refuse this too; the first reason is the one to tell, and the next start removes it.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileError(file, `cannot be written (${codeOf(cause)})`, 'What it held before is kept', cause);
  }
}

/** If it rejects, the file is still there. One that is not there is removed already. */
export async function removeFile(file: string): Promise<Durability> {
  try {
    using folder = openFile(dirname(file), 'r');
    rmSync(file, { force: true });
    return await confirm(folder);
  } catch (cause) {
    throw fileError(file, `cannot be removed (${codeOf(cause)})`, 'The state that it holds is kept', cause);
  }
}

function confirm({ fd }: OpenFile): Promise<Durability> {
  return syncFd(fd).then(
    () => 'durable',
    () => 'in_doubt',
  );
}

// What touches memory alone is done at once: every trip to the thread pool waits for a turn of the event loop, and ten
// of them made one change take thirty milliseconds beside busy clients. The two that wait for the disk make the trip.
type OpenFile = Disposable & { readonly fd: number };

function openFile(file: string, flags: string): OpenFile {
  const fd = openSync(file, flags, 0o600);
  return { fd, [Symbol.dispose]: () => closeSync(fd) };
}

async function createFile(file: string, bytes: Buffer): Promise<void> {
  using made = openFile(file, 'wx');
  writeFileSync(made.fd, bytes);
  await syncFd(made.fd);
}

const syncFd: (fd: number) => Promise<void> = promisify(fsync);

/** The name of the file that was being written, if `name` is what a crash in between leaves; createFiles() names alike. */
export function leftoverOf(name: string): string | undefined {
  return /^(.+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
}

/** The file's bytes, or what is wrong with it in words that fit after its name. */
export async function readBoundedFile(file: string, maxBytes: number): Promise<Buffer | string> {
  try {
    // A link or a pipe was not put here by us: neither followed nor waited for.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    await using handle = await open(file, flags);
    const stats = await handle.stat();
    if (!stats.isFile()) return 'is not a regular file';
    if (stats.size > maxBytes) return `is over ${maxBytes} bytes`;
    return await handle.readFile();
  } catch (error) {
    return `cannot be read (${codeOf(error)})`;
  }
}
