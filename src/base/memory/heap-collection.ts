// Collections of garbage that a program asks for: V8 counts its own heap, and buffers outside of it would wait for one that hardly grows.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { readonly type: 'minor' | 'major' }) => void;

let collect: Collect | undefined;

/** `minor`: the young generation alone. */
export function collectHeap(type: 'minor' | 'major'): void {
  collect ??= findCollect();
  collect({ type });
}

/** V8 shows it to contexts that are made while the flag is set: no switch of the process is needed. */
function findCollect(): Collect {
  setFlagsFromString('--expose-gc');
  const found = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return found;
}
