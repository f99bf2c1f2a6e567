// How the fuzz targets of streams cut their input: the first byte seeds where, the rest is the stream.

export type Split = { readonly whole: Buffer; readonly pieces: readonly Buffer[] };

/** Pieces of 1 byte, or of lengths that a seed makes; 0 as the seed leaves the stream whole. */
export function split(data: Buffer): Split {
  const seed = data[0] ?? 0;
  const whole = data.subarray(1);
  if (seed === 0) return { whole, pieces: [whole] };
  const pieces: Buffer[] = [];
  let state = seed;
  for (let at = 0; at < whole.length; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    const length = seed === 1 ? 1 : 1 + ((state >> 8) % seed);
    pieces.push(whole.subarray(at, at + length));
    at += length;
  }
  return { whole, pieces };
}
