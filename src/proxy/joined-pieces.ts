// Pieces of a stream that came together leave together: a write for each would cost more than a copy of small ones.

/** Pieces up to this many bytes in all are copied together; larger ones stay as they are. */
const MAX_JOINED_BYTES = 16_384;
/** Below this many bytes a piece on average, copying costs less than a write for each, whatever they are in all. */
const SMALL_PIECE_BYTES = 1_024;

/** The same bytes in as few pieces as pay. */
export function joinPieces(pieces: readonly Buffer[]): readonly Buffer[] {
  const [first, second] = pieces;
  if (!first || !second) return pieces;
  const whole = pieces.length === 2 ? adjoined(first, second) : undefined;
  if (whole) return [whole];
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const isCopied = total <= MAX_JOINED_BYTES || total < pieces.length * SMALL_PIECE_BYTES;
  return isCopied ? [Buffer.concat(pieces, total)] : pieces;
}

/** Two pieces that lie side by side in memory, as one: an answer of which nothing was changed. */
function adjoined(first: Buffer, second: Buffer): Buffer | undefined {
  const isAdjoined = first.buffer === second.buffer && first.byteOffset + first.length === second.byteOffset;
  return isAdjoined ? Buffer.from(first.buffer, first.byteOffset, first.length + second.length) : undefined;
}
