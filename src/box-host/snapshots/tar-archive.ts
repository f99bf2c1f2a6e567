// Reads a tar, plain or compressed by gzip or zstd, as a stream of entries. The only file that imports tar-stream.
import { PassThrough, Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { type Entry, extract, type Headers } from 'tar-stream';
import { InputError } from '../../base/input-error.ts';
import { refusal, type SnapshotEntry } from './entry.ts';

/** What an ordinary file system compresses to is a third; this many times is a bomb. */
const MAX_RATIO = 200;
/** A small archive may be mostly zeros. */
const RATIO_FREE_BYTES = 64 * 1024 * 1024;
/** tar-stream keeps the head of an entry in memory, with long names and attributes, whatever its size. */
const MAX_HEAD_BYTES = 4 * 1024 * 1024;

/** `consumed`: what of `plain` came before the entry or the piece of content that was read last. */
type Counted = { compressed: number; plain: number; consumed: number };

/** Throws an InputError for an archive that cannot be read. Reads no further than the consumer does. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<SnapshotEntry> {
  const archive = extract();
  const counted: Counted = { compressed: 0, plain: 0, consumed: 0 };
  const fed = feed(source, archive, counted);
  // The loop below gets the error. Nothing has destroyed the archive yet where the source fails in its first bytes.
  fed.catch((error: Error) => archive.destroy(error));
  try {
    for await (const entry of archive) {
      counted.consumed = counted.plain;
      const converted = convert(entry.header, readContent(entry, counted));
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

async function* readContent(entry: Entry, counted: Counted): AsyncGenerator<Uint8Array> {
  for await (const piece of entry) {
    counted.consumed = counted.plain;
    yield piece;
  }
}

async function feed(
  source: AsyncIterable<Uint8Array>,
  archive: NodeJS.WritableStream,
  counted: Counted,
): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  const head = await readHead(iterator);
  const count = async function* (pieces: AsyncIterable<Uint8Array>) {
    for await (const piece of pieces) {
      if (counted.plain - counted.consumed > MAX_HEAD_BYTES)
        throw new InputError(`The archive has an entry with a head of more than ${MAX_HEAD_BYTES} bytes`);
      counted.plain += piece.length;
      if (counted.plain > Math.max(RATIO_FREE_BYTES, counted.compressed * MAX_RATIO))
        throw new InputError(`The archive is more than ${MAX_RATIO} times as large as its compressed form`);
      yield piece;
    }
  };
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
  await pipeline(Readable.from(all()), decompressor(head), (pieces) => count(pieces as Readable), archive);
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

function decompressor(head: Uint8Array): Transform {
  const magic = Buffer.from(head.subarray(0, MAGIC_BYTES)).toString('hex');
  if (magic.startsWith('1f8b')) return createGunzip();
  if (magic === '28b52ffd') return createZstdDecompress();
  return new PassThrough();
}

/** Undefined: an entry that only describes others. */
function convert(header: Headers, content: AsyncIterable<Uint8Array>): SnapshotEntry | undefined {
  const { name: path, type, linkname: target } = header;
  const common = { path, modifiedMs: header.mtime?.getTime() ?? 0 };
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
      throw refusal(path, 'is of a kind that a snapshot cannot have');
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
