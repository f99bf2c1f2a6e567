// Bytes of which nothing is needed any more. The collector of garbage sees a small object for each of them and waits until there are
// many, tens of megabytes of bytes: a stream that frees what was used needs the memory of one piece.

/** Small buffers are parts of one that others have parts of too. */
const POOL_BYTES = Buffer.allocUnsafe(1).buffer.byteLength;

/**
 * Frees the memory of a piece, the last one of its buffer where that has several. Nobody may have a view of that buffer that is
 * still used.
 */
export function freeBytes({ buffer, byteOffset, byteLength }: Uint8Array): void {
  if (byteOffset + byteLength < buffer.byteLength || buffer.byteLength === POOL_BYTES) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Each piece is valid until the next one is asked for. */
export async function* freed(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of pieces) {
    yield piece;
    freeBytes(piece);
  }
}
