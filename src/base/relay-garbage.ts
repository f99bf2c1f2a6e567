// Bytes that pass through leave dead buffers behind, which V8 does not see when it decides on a cheap collection of
// young objects: left alone it waits for some 50 MB of them and then marks the whole heap. Collecting the young
// every few megabytes keeps memory flat, and big bodies pass faster. Knows nothing of sockets.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const COLLECT_EVERY_BYTES = 8 * 1024 * 1024;

let relayedBytes = 0;
let collectYoung: (() => void) | undefined;

/** Told of every chunk that was read to be passed on. Costs an addition; about a millisecond every 8 MiB. */
export function countRelayed(bytes: number): void {
  relayedBytes += bytes;
  if (relayedBytes < COLLECT_EVERY_BYTES) return;
  relayedBytes = 0;
  collectYoung ??= youngCollector();
  collectYoung();
}

/** The collector of a context that nobody else holds: globalThis gets no `gc`. */
function youngCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collector: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  // A V8 without it merely collects when it would have.
  return typeof collector === 'function' ? () => void collector({ type: 'minor' }) : () => undefined;
}
