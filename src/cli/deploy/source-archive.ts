// Packs files of a directory into a gzipped tar. The archive is a file without a name: it is gone when the process ends, however
// it ends, and no other process can open it.
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { type TarFile, writeTar } from '../../base/archive/tar-archive.ts';
import { InputError } from '../../base/input-error.ts';
import { codeOf } from '../../tls/pem-files.ts';

export type SourceArchive = AsyncDisposable & {
  readonly bytes: number;
  readonly sha256: string;
  /** From its first byte, as often as an upload is tried. */
  read(): Readable;
};

export const MAX_ARCHIVE_BYTES: number = 200 * 2 ** 20;
export const LARGE_ARCHIVE_BYTES: number = 50 * 2 ** 20;

/** Throws an InputError for a file that cannot be read or changes meanwhile, and for an archive that is too large. */
export async function packSource(root: string, paths: readonly string[]): Promise<SourceArchive> {
  const sizes = new Map<string, number>();
  const handle = await openNameless();
  try {
    const gzip = Readable.from(writeTar(readFiles(root, paths, sizes))).compose(createGzip());
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of gzip as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > MAX_ARCHIVE_BYTES) throw new InputError(tooLarge(sizes));
      hash.update(piece);
      await handle.writeFile(piece);
    }
    return {
      bytes,
      sha256: hash.digest('hex'),
      read: () => handle.createReadStream({ start: 0, end: bytes - 1, autoClose: false }),
      [Symbol.asyncDispose]: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function openNameless(): Promise<FileHandle> {
  const file = join(tmpdir(), `sallyport-${randomUUID()}`);
  const handle = await open(file, 'wx+', 0o600);
  await unlink(file);
  return handle;
}

async function* readFiles(
  root: string,
  paths: readonly string[],
  sizes: Map<string, number>,
): AsyncGenerator<TarFile> {
  for (const path of paths) {
    await using handle = await openFile(root, path);
    const stats = await handle.stat();
    if (!stats.isFile())
      throw new InputError(`${join(root, path)} is no regular file any more: deploy again`);
    const { size, mode } = stats;
    sizes.set(path, size);
    const content = readExactly(handle, size, path);
    yield { path, bytes: size, isExecutable: (mode & 0o111) !== 0, content };
  }
}

async function openFile(root: string, path: string): Promise<FileHandle> {
  try {
    // Since the directory was read, the file may have become a link or a named pipe, which would block.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return await open(join(root, path), flags);
  } catch (cause) {
    throw new InputError(`${join(root, path)} cannot be read (${String(codeOf(cause))})`, { cause });
  }
}

/** The head in the archive says how many bytes follow. */
async function* readExactly(handle: FileHandle, size: number, path: string): AsyncGenerator<Uint8Array> {
  let left = size;
  if (size > 0)
    for await (const piece of handle.createReadStream({ start: 0, end: size - 1, autoClose: false })) {
      left -= piece.length;
      yield piece;
    }
  if (left > 0) throw new InputError(`${path} became shorter while it was packed: deploy again`);
}

function tooLarge(sizes: ReadonlyMap<string, number>): string {
  const largest = [...sizes].toSorted(([, a], [, b]) => b - a).slice(0, 3);
  const named = largest.map(([path, size]) => `${path} (${inMebibytes(size)})`).join(', ');
  return `the archive has more than ${inMebibytes(MAX_ARCHIVE_BYTES)}; the largest files so far: ${named}. Leave out what is no source in .gitignore or .dockerignore`;
}

/** As people read sizes: `1.5 MiB`. */
export function inMebibytes(bytes: number): string {
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
