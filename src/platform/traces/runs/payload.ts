// JSON of a client as it was sent, on its way to the store: short ones in memory, others wherever they were spooled. Stored as a zstd
// frame, or as the text itself where that is short.
import { createZstdDecompress, zstdDecompress, zstdDecompressSync } from 'node:zlib';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';

/** Bytes as they are stored. */
export type Payload = Buffer | SpooledPayload;

/** May be read more than once: a transaction that is rolled back is tried again. */
export type SpooledPayload = {
  readonly size: number;
  read(): AsyncIterable<Uint8Array>;
};

/** RFC 8878 §3.1.1. No JSON begins with the first of these bytes. */
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

const decompress = promisify(zstdDecompress);

/** The JSON of stored bytes. */
export async function unpackPayload(stored: Buffer): Promise<Buffer> {
  return isFrame(stored) ? await decompress(stored) : stored;
}

/** The same where it has at most `maxBytes`; undefined where it has more, which a short frame may. */
export async function unpackSmall(stored: Buffer, maxBytes: number): Promise<Buffer | undefined> {
  if (!isFrame(stored)) return stored.length <= maxBytes ? stored : undefined;
  try {
    return await decompress(stored, { maxOutputLength: maxBytes });
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw error;
  }
}

/** Of a frame that is unpacked at once, as its JSON is: to wait for a thread takes longer. */
const AT_ONCE_BYTES = 16 * 1024;

/** The JSON of stored bytes, for a process that serves nobody meanwhile. Throws a RangeError where it has more than `maxBytes`. */
export function unpackWithin(stored: Buffer, maxBytes: number): Buffer | Promise<Buffer> {
  if (!isFrame(stored)) return stored;
  if (stored.length > AT_ONCE_BYTES) return decompress(stored, { maxOutputLength: maxBytes });
  return zstdDecompressSync(stored, { maxOutputLength: maxBytes });
}

/** The JSON of a payload that is read in pieces. */
export async function* unpackInPieces(stored: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const pieces = stored[Symbol.asyncIterator]();
  const first = await pieces.next();
  if (first.done === true) return;
  const all = Readable.from(
    (async function* () {
      yield first.value;
      yield* { [Symbol.asyncIterator]: () => pieces };
    })(),
    { objectMode: false },
  );
  if (!isFrame(first.value)) return yield* all;
  const unpacked = createZstdDecompress();
  all.on('error', (error) => unpacked.destroy(error));
  yield* all.pipe(unpacked);
}

function isFrame(stored: Buffer): boolean {
  return stored.subarray(0, 4).equals(ZSTD_MAGIC);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
