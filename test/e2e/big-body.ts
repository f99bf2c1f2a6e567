// A hundred megabytes that are never in memory at once: created piece by piece and hashed as a stream.
import { createHash, randomBytes, type Hash } from 'node:crypto';

export const BIG_BYTES = 100_000_000;
const PIECE_BYTES = 1_000_000;

export type BigBody = {
  readonly length: number;
  readonly sha256: string;
  pieces(): Generator<Buffer>;
};

/** `length` bytes in different pieces of 1 MB, so that a lost, duplicated or swapped piece changes the hash. */
export function createBigBody(length: number = BIG_BYTES): BigBody {
  const noise = randomBytes(PIECE_BYTES);
  function* pieces(): Generator<Buffer> {
    for (let sent = 0; sent < length; sent += PIECE_BYTES) {
      const piece = Buffer.from(noise.subarray(0, Math.min(PIECE_BYTES, length - sent)));
      piece.writeUInt32BE(sent / PIECE_BYTES);
      yield piece;
    }
  }
  const hash: Hash = createHash('sha256');
  for (const piece of pieces()) hash.update(piece);
  return { length, sha256: hash.digest('hex'), pieces };
}

/** The pieces as a chunked body (RFC 9112 §7.1), with the last chunk. */
export function* chunked(pieces: Iterable<Buffer>): Generator<Buffer> {
  for (const piece of pieces) {
    yield Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  }
  yield Buffer.from('0\r\n\r\n');
}
