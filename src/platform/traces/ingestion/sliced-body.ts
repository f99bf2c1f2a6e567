// A body in slices: each takes about a millisecond to read, and between two of them others go on.
import type { Pace } from '../../../base/steps.ts';
import { InvalidJson } from './json/invalid-json.ts';
import { JsonScanner, type ScanHandler } from './json/json-scanner.ts';
import type { RequestMemory } from './request-memory.ts';

// Thousands of small values may be in one, each of which costs some microseconds.
const SLICE_BYTES = 4 * 1024;

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

type Reader = {
  readonly handler: ScanHandler;
  /** The deepest level of the text whose values are reported. */
  readonly depth: number;
  readonly memory: RequestMemory;
  /** Awaited before the next bytes of the body come. */
  settle(): Promise<void>;
};

/** Returns what is wrong with the text. Throws what the body, the handler and `settle` throw. */
export async function scanBody(
  body: AsyncIterable<Uint8Array>,
  { handler, depth, memory, settle }: Reader,
): Promise<InvalidJson | undefined> {
  const scanner = new JsonScanner(handler, depth);
  try {
    for await (const piece of inSlices(body, memory.pace)) {
      scanner.push(piece);
      await settle();
    }
    scanner.end();
    await settle();
    return undefined;
  } catch (error) {
    if (!(error instanceof InvalidJson)) throw error;
    return error;
  }
}
