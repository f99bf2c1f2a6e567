// Pieces of a stream on their way. Those that are written together are joined, because a write for each costs more than a copy
// of small ones. What was forwarded is garbage, which is collected before it is much.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

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

/** About what a transfer forwards between two collections of a young generation of 1 MB. */
const MAX_GARBAGE_BYTES = 8 * 1024 * 1024;

let garbageBytes = 0;
let collectYoung: (() => void) | undefined;

/**
 * Counts a piece that will be garbage when it is written. Its memory is freed when V8 collects its young generation, but of
 * the piece that counts only the small object in front of it: transfers at full speed would hold tens of megabytes.
 */
export function countForwarded(bytes: number): void {
  garbageBytes += bytes;
  if (garbageBytes < MAX_GARBAGE_BYTES) return;
  garbageBytes = 0;
  collectYoung ??= createCollector();
  collectYoung();
}

/** V8 offers it to contexts that are created while a flag is set. */
function createCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor' });
}
