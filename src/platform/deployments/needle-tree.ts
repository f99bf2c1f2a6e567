// A tree of byte strings with links from each of its states to that of the longest beginning of another string with which it ends: a text is
// searched for all of them in one pass. Pure.

export type NeedleTree = {
  /** By state, as all below: that of the longest shorter beginning that the text ends with. */
  readonly fallback: Int32Array;
  /** Length of the beginning that the text ends with. */
  readonly depth: Int32Array;
  /** Length of the longest string that ends here; 0 if none does. */
  readonly found: Int32Array;
  /** 1: what ends here is only the beginning of a string. */
  readonly isBeginning: Uint8Array;
  /** A hash table with open addressing: state and byte, and the state after them. */
  readonly keys: Int32Array;
  readonly targets: Int32Array;
};

const START = 0;

/** `maxLength`: of longer strings the beginning counts. */
export function buildNeedleTree(strings: readonly Buffer[], maxLength: number): NeedleTree {
  const needles = strings.map((one) => one.subarray(0, maxLength));
  const tree = createEmpty(needles.reduce((sum, { length }) => sum + length, 1));
  let used = 1;
  for (const [index, needle] of needles.entries()) {
    let state = START;
    for (const byte of needle) {
      const slot = slotOf(tree, state, byte);
      if (tree.keys[slot] === FREE) {
        tree.keys[slot] = keyOf(state, byte);
        tree.targets[slot] = used;
        tree.depth[used] = (tree.depth[state] as number) + 1;
        used += 1;
      }
      state = tree.targets[slot] as number;
    }
    tree.found[state] = needle.length;
    if (needle.length < (strings[index]?.length ?? 0)) tree.isBeginning[state] = 1;
  }
  link(tree, used);
  return tree;
}

export function nextState(tree: NeedleTree, from: number, byte: number): number {
  for (let state = from; ; state = tree.fallback[state] as number) {
    const slot = slotOf(tree, state, byte);
    if (tree.keys[slot] !== FREE) return tree.targets[slot] as number;
    if (state === START) return START;
  }
}

/** No state leads to START: its key is that of no pair. */
const FREE = 0;

function keyOf(state: number, byte: number): number {
  return state * 256 + byte + 1;
}

function createEmpty(states: number): NeedleTree {
  const slots = 2 ** Math.ceil(Math.log2(2 * states));
  return {
    fallback: new Int32Array(states),
    depth: new Int32Array(states),
    found: new Int32Array(states),
    isBeginning: new Uint8Array(states),
    keys: new Int32Array(slots),
    targets: new Int32Array(slots),
  };
}

/** Random, so that nobody can choose strings whose pairs share slots. */
const MULTIPLIER = (Math.random() * 2 ** 32) | 1;

/** Where the pair is, or belongs. At least half of the slots are free. */
function slotOf({ keys }: NeedleTree, state: number, byte: number): number {
  const key = keyOf(state, byte);
  const last = keys.length - 1;
  // The upper bits of the product depend on all bits of the key.
  let slot = Math.imul(key, MULTIPLIER) >>> Math.clz32(last);
  while (keys[slot] !== FREE && keys[slot] !== key) slot = (slot + 1) & last;
  return slot;
}

/** Shallow states first: deeper ones fall back to them. */
function link(tree: NeedleTree, used: number): void {
  const { keys, targets, depth, fallback, found, isBeginning } = tree;
  const pairs = Array.from(keys.keys()).filter((slot) => keys[slot] !== FREE);
  const depthOf = (slot: number): number => depth[targets[slot] as number] as number;
  for (const slot of pairs.toSorted((a, b) => depthOf(a) - depthOf(b))) {
    const state = targets[slot] as number;
    const [parent, byte] = [
      Math.floor(((keys[slot] as number) - 1) / 256),
      ((keys[slot] as number) - 1) % 256,
    ];
    if (parent !== START) fallback[state] = nextState(tree, fallback[parent] as number, byte);
    const back = fallback[state] as number;
    if (found[state] !== 0) continue;
    found[state] = found[back] as number;
    isBeginning[state] = isBeginning[back] as number;
  }
  if (pairs.length !== used - 1) throw new Error('a state of the tree has no place in its table');
}
