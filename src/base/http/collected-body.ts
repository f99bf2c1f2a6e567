// A body that is read whole, as few pieces: a client may send it in chunks of one byte, each of which is an object of more
// than a hundred bytes until it is copied.

/** Larger pieces are kept as they are. */
const SMALL = 4_096;
const BLOCK = 16_384;

/** Rejects with what the body throws. */
export async function collectBody(body: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let block = Buffer.alloc(0);
  let used = 0;
  for await (const piece of body) {
    if (piece.length === 0) continue;
    // Most bodies have one piece, which is not copied.
    if (pieces.length === 0 || piece.length >= SMALL) {
      pieces.push(piece);
      block = Buffer.alloc(0);
      continue;
    }
    if (piece.length > block.length - used) {
      block = Buffer.allocUnsafeSlow(BLOCK);
      used = 0;
      pieces.push(block.subarray(0, 0));
    }
    block.set(piece, used);
    used += piece.length;
    pieces[pieces.length - 1] = block.subarray(0, used);
  }
  return pieces;
}
