// Joins pieces of a stream that are written together: a write for each costs more than a copy of small ones.

/** Pieces of up to this many bytes in all are copied into one. */
const MAX_JOINED_BYTES = 16_384;
/** Pieces that are smaller on average are copied whatever their total: a write for each would cost more. */
const SMALL_PIECE_BYTES = 1_024;

/** The same bytes in fewer pieces, where that is cheaper. */
export function joinPieces(pieces: readonly Buffer[]): readonly Buffer[] {
  const [first, second] = pieces;
  if (!first || !second) return pieces;
  const whole = pieces.length === 2 ? adjoined(first, second) : undefined;
  if (whole) return [whole];
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const isCopied = total <= MAX_JOINED_BYTES || total < pieces.length * SMALL_PIECE_BYTES;
  return isCopied ? [Buffer.concat(pieces, total)] : pieces;
}

/** Two pieces that are adjacent in memory, as one: a response that was not changed. */
function adjoined(first: Buffer, second: Buffer): Buffer | undefined {
  const isAdjoined = first.buffer === second.buffer && first.byteOffset + first.length === second.byteOffset;
  return isAdjoined ? Buffer.from(first.buffer, first.byteOffset, first.length + second.length) : undefined;
}
