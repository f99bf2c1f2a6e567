// Reads a tar, plain or compressed by gzip or zstd, as a stream of entries, and writes one of files. The only file that imports
// tar-stream.
import { PassThrough, Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress, type Gunzip } from 'node:zlib';
import { type Entry, extract, type Headers, type Pack, pack } from 'tar-stream';
import { InputError } from '../input-error.ts';
import { refusal, type ArchiveEntry } from './entry.ts';
import { TarFrames } from './tar-frames.ts';

/** What an ordinary file system compresses to is a third; this many times is a bomb. */
const MAX_RATIO = 200;
/** A small archive may be mostly zeros. */
const RATIO_FREE_BYTES = 64 * 1024 * 1024;

const bytesBehind = (): InputError => new InputError('The archive has bytes behind its end');

export type TarLimits = {
  /** Of all heads and contents. */
  readonly maxPlainBytes: number;
  /** Plain archives and those of zstd are refused. */
  readonly isGzip: boolean;
};

/** Throws an InputError for an archive that cannot be read. Reads no further than the consumer does. */
export async function* readTar(
  source: AsyncIterable<Uint8Array>,
  limits: TarLimits = { maxPlainBytes: Infinity, isGzip: false },
): AsyncGenerator<ArchiveEntry> {
  const archive = extract();
  const fed = feed(source, archive, limits);
  // The loop below gets the error. Nothing has destroyed the archive yet where the source fails in its first bytes.
  fed.catch((error: Error) => archive.destroy(error));
  try {
    for await (const entry of archive) {
      const converted = convert(entry.header, readContent(entry, fed));
      if (converted !== undefined) yield converted;
      entry.resume();
    }
    await fed;
  } catch (error) {
    throw describeError(error);
  } finally {
    archive.destroy();
  }
}

/** The stream of an entry does not say why it was cut off: `fed` does. */
async function* readContent(entry: Entry, fed: Promise<void>): AsyncGenerator<Uint8Array> {
  try {
    yield* entry;
  } catch (error) {
    throw describeError(
      await fed.then(
        () => error,
        (cause: unknown) => cause,
      ),
    );
  }
}

async function feed(
  source: AsyncIterable<Uint8Array>,
  archive: NodeJS.WritableStream,
  limits: TarLimits,
): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  const head = await readHead(iterator);
  const counted = { compressed: 0 };
  const all = async function* () {
    try {
      for (let piece: Uint8Array | undefined = head; piece !== undefined; ) {
        counted.compressed += piece.length;
        yield piece;
        const next = await iterator.next();
        piece = next.done ? undefined : next.value;
      }
    } finally {
      await iterator.return?.();
    }
  };
  const format = formatOf(head);
  if (limits.isGzip && format !== 'gzip')
    throw new InputError('The archive is not compressed by gzip: pack it with tar -cz');
  const decompressor = DECOMPRESSORS[format]();
  const check = (pieces: AsyncIterable<Uint8Array>) => checkPieces(pieces, { counted, limits });
  // A decompressor of gzip ends at a zero that follows its stream.
  const isCut = () => format === 'gzip' && (decompressor as Gunzip).bytesWritten < counted.compressed;
  try {
    await pipeline(Readable.from(all()), decompressor, (pieces) => check(pieces as Readable), archive);
  } catch (error) {
    throw decompressor.readableEnded && isCut() ? bytesBehind() : error;
  }
  if (isCut()) throw bytesBehind();
}

async function* checkPieces(
  pieces: AsyncIterable<Uint8Array>,
  { counted, limits }: { readonly counted: { readonly compressed: number }; readonly limits: TarLimits },
): AsyncGenerator<Uint8Array> {
  const frames = new TarFrames();
  let plain = 0;
  for await (const piece of pieces) {
    plain += piece.length;
    if (plain > Math.max(RATIO_FREE_BYTES, counted.compressed * MAX_RATIO))
      throw new InputError(`The archive is more than ${MAX_RATIO} times as large as its compressed form`);
    if (plain > limits.maxPlainBytes)
      throw new InputError(`The archive has more than ${limits.maxPlainBytes} bytes`);
    frames.write(piece);
    yield piece;
  }
  frames.end();
}

/** At least the magic number, unless the source is shorter. */
async function readHead(iterator: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  let head: Uint8Array = new Uint8Array(0);
  while (head.length < MAGIC_BYTES) {
    const next = await iterator.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  return head;
}

const MAGIC_BYTES = 4;

const DECOMPRESSORS = {
  gzip: (): Transform => createGunzip(),
  zstd: (): Transform => createZstdDecompress(),
  plain: (): Transform => new PassThrough(),
} as const;

function formatOf(head: Uint8Array): keyof typeof DECOMPRESSORS {
  const magic = Buffer.from(head.subarray(0, MAGIC_BYTES)).toString('hex');
  if (magic.startsWith('1f8b')) return 'gzip';
  return magic === '28b52ffd' ? 'zstd' : 'plain';
}

/** Undefined: an entry that only describes others. */
function convert(header: Headers, content: AsyncIterable<Uint8Array>): ArchiveEntry | undefined {
  const { name: path, type, linkname: target } = header;
  // Not a number where the field holds none, or more than a date can be.
  const common = { path, modifiedMs: header.mtime?.getTime() || 0 };
  switch (type) {
    case 'directory':
      return { ...common, kind: 'directory' };
    case 'file':
    case 'contiguous-file':
      return { ...common, kind: 'file', isExecutable: ((header.mode ?? 0) & 0o111) !== 0, content };
    case 'symlink':
      return { ...common, kind: 'symlink', target: target ?? '' };
    case 'link':
      return { ...common, kind: 'hardlink', target: target ?? '' };
    case 'character-device':
    case 'block-device':
      throw refusal(path, 'is a device node: leave it out (tar --exclude=./dev)');
    case 'fifo':
      throw refusal(path, 'is a named pipe: leave it out');
    case 'pax-header':
    case 'pax-global-header':
    case 'gnu-long-path':
    case 'gnu-long-link-path':
      return undefined;
    default:
      throw refusal(path, 'is of a kind that cannot be unpacked');
  }
}

/** What the archive's reader and the decompressors throw is about the archive. */
function describeError(error: unknown): unknown {
  if (error instanceof InputError || !(error instanceof Error)) return error;
  const code = 'code' in error ? String(error.code) : '';
  const isOfArchive =
    code.startsWith('Z_') || code.startsWith('ZSTD_') || /tar|end of data/i.test(error.message);
  return isOfArchive
    ? new InputError(`The archive is no tar (plain, gzip or zstd) or is damaged: ${error.message}`, {
        cause: error,
      })
    : error;
}

/** What an archive holds of a file that is sent away: nothing of its owner, of this machine or of its time. */
export type TarFile = {
  readonly path: string;
  readonly bytes: number;
  readonly isExecutable: boolean;
  /** Exactly `bytes` of them. */
  readonly content: AsyncIterable<Uint8Array>;
};

// As in packages of npm: the builders of Python packages reject times before 1980, which a ZIP cannot hold.
const MODIFIED = new Date('1985-10-26T08:15:00Z');

/** The same files give the same bytes. Reads no further than the consumer does; an error of a file is thrown. */
export async function* writeTar(files: AsyncIterable<TarFile>): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const added = addFiles(archive, files);
  // The loop below gets the error.
  added.catch((error: Error) => archive.destroy(error));
  try {
    for await (const piece of archive) yield piece;
    await added;
  } finally {
    archive.destroy();
  }
}

async function addFiles(archive: Pack, files: AsyncIterable<TarFile>): Promise<void> {
  for await (const { path, bytes, isExecutable, content } of files) {
    const mode = isExecutable ? 0o755 : 0o644;
    const owner = { uid: 0, gid: 0, uname: '', gname: '' };
    const entry = archive.entry({ name: path, size: bytes, mode, mtime: MODIFIED, ...owner });
    await pipeline(content, entry);
  }
  archive.finalize();
}
