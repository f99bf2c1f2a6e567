// Collections of garbage that a program asks for: V8 counts its own heap, and buffers outside of it would wait for one that hardly grows.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' | 'major' }) => void;

let collect: Collect | undefined;

/** `minor`: the young generation alone. */
export function collectHeap(type: 'minor' | 'major'): void {
  collect ??= findCollect();
  // V8 lets the young generation grow when more than its size has survived collections, however many there were.
  setFlagsFromString('--semi-space-growth-factor=1');
  collect({ type });
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`);
}

/** V8's own. */
const GROWTH_FACTOR = 2;

/** V8 shows it to contexts that are made while the flag is set: no switch of the process is needed. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  const found = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return found;
}
