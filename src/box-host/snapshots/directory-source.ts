// Reads a directory as the entries of a snapshot. Everything is opened relative to its directory's descriptor: a directory
// that is replaced by a link meanwhile leads nowhere.
import { constants } from 'node:fs';
import { type FileHandle, open, opendir, lstat, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { refusal, type ArchiveEntry } from '../../base/archive/entry.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** `within`: the directories that it must be below, or be; anywhere when absent. */
export async function* readDirectory(
  directory: string,
  within?: readonly string[],
): AsyncGenerator<ArchiveEntry> {
  const root = await openDirectory(directory, directory);
  try {
    if (within !== undefined) await requireWithin(root, within);
    yield* walk(root, '');
  } finally {
    await root.close();
  }
}

/** What was opened, and not what a path names: a link may lie on the way, and change. */
async function requireWithin(root: FileHandle, within: readonly string[]): Promise<void> {
  const opened = await readlink(`/proc/self/fd/${root.fd}`);
  for (const one of within) {
    const real = await realpath(one).catch(() => undefined);
    if (real !== undefined && (opened === real || opened.startsWith(real.endsWith('/') ? real : `${real}/`)))
      return;
  }
  throw new InputError('The directory is not below one that snapshots may be made of');
}

async function openDirectory(path: string, shown: string): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (cause) {
    throw new InputError(`${JSON.stringify(shown)} is no directory that can be read`, { cause });
  }
}

async function* walk(directory: FileHandle, path: string): AsyncGenerator<ArchiveEntry> {
  const at = `/proc/self/fd/${directory.fd}`;
  for await (const { name } of await opendir(at)) {
    const below = path === '' ? name : `${path}/${name}`;
    const stats = await lstat(join(at, name));
    const common = { path: below, modifiedMs: stats.mtimeMs };
    if (stats.isSymbolicLink()) {
      yield { ...common, kind: 'symlink', target: await readlink(join(at, name)) };
    } else if (stats.isDirectory()) {
      yield { ...common, kind: 'directory' };
      const child = await openDirectory(join(at, name), below);
      try {
        yield* walk(child, below);
      } finally {
        await child.close();
      }
    } else if (stats.isFile()) {
      const isExecutable = (stats.mode & 0o111) !== 0;
      yield { ...common, kind: 'file', isExecutable, content: readFile(join(at, name), below) };
    } else throw refusal(below, 'is neither a file, a directory nor a link: leave it out');
  }
}

/** O_NONBLOCK: a named pipe that took the place of the file would block. */
async function* readFile(path: string, shown: string): AsyncGenerator<Uint8Array> {
  await using handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!(await handle.stat()).isFile()) throw refusal(shown, 'changed while it was read');
  yield* handle.createReadStream({ autoClose: false });
}
