// How far the heap of this process grows before garbage is collected. The flags are those of the launcher, which choose less CPU for
// more memory; while large bodies are received, whose memory is outside of the heap, it grows as little as it can.
import { setFlagsFromString } from 'node:v8';

/** The old generation is collected at 1.5 times what survived, and at 4 times otherwise (`bin/sallyport.js`). */
const FLAGS = {
  small: ['--heap-growing-percent=50', '--semi-space-growth-factor=1'],
  usual: ['--heap-growing-percent=300', '--semi-space-growth-factor=2'],
} as const;

let reasons = 0;

/** Until the function that it returns is called, once. */
export function keepHeapSmall(): () => void {
  if (reasons === 0) FLAGS.small.forEach(setFlagsFromString);
  reasons += 1;
  return () => {
    reasons -= 1;
    if (reasons === 0) FLAGS.usual.forEach(setFlagsFromString);
  };
}
