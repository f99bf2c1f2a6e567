// JSON of a client as it was sent, on its way to the store: short ones in memory, others wherever they were spooled. Stored as a zstd
// frame, or as the text itself where that is short.
import { zstdDecompress } from 'node:zlib';
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
  return stored.subarray(0, 4).equals(ZSTD_MAGIC) ? await decompress(stored) : stored;
}
