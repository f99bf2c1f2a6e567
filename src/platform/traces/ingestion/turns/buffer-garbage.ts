// Buffers that are not needed any more keep their memory until V8 has collected garbage, and it waits for 64 MB of them: what it counts is
// its own heap, in which a buffer of 64 KiB is an object of a hundred bytes. Large bodies are little else than such buffers, so that
// they have them collected as they go on: the young ones every mebibyte, which takes about a millisecond, and those that were in
// use at that moment, and count as old from then on, after some more.
import { collectHeap } from '../../../../base/memory/heap-collection.ts';

const MIB = 1024 * 1024;
const YOUNG_BYTES = MIB;
/** Such a collection takes some 25 ms, as those do that V8 begins. */
export const ALL_BYTES: number = 64 * MIB;

let [young, all] = [0, 0];

/** So many bytes of a large body, or of what is stored of it, have been used. */
export function noteGarbage(bytes: number): void {
  young += bytes;
  all += bytes;
  if (young < YOUNG_BYTES) return;
  young = 0;
  if (all < ALL_BYTES) return collectHeap('minor');
  all = 0;
  collectHeap('major');
}
