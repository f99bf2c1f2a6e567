// A body in slices: each takes about a millisecond to read, and between two of them others go on.
import type { Pace } from '../../../base/steps.ts';

const SLICE_BYTES = 16 * 1024;

export async function* inSlices(
  body: AsyncIterable<Uint8Array>,
  pace: Pace,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of body)
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      await pace();
      yield piece.subarray(at, at + SLICE_BYTES);
    }
}
