// An automaton that finds every needle of a set in a stream of bytes, one step for each byte (Aho and Corasick, 1975). Where
// a text stops being the beginning of one needle, it continues as the longest beginning of another. Its symbols are folded
// bytes.
import { type Steps, finish } from '../../base/steps.ts';
import { hexValue } from '../../http1/byte-class.ts';
import type { NeedleSet } from './needle-set.ts';

export type NeedleAutomaton = {
  /** By symbol: the state after it at the start of a needle. */
  readonly first: Int32Array;
  /** By state, as all below: the symbol that leads here. */
  readonly symbol: Uint8Array;
  readonly child: Int32Array;
  readonly sibling: Int32Array;
  /** State of the longest shorter beginning that the text ends with. */
  readonly fallback: Int32Array;
  /** Where to continue with a symbol that leads nowhere from here; states that lead to the same symbols only are skipped. */
  readonly retreat: Int32Array;
  /** Length of the beginning that the text ends with, in symbols. */
  readonly depth: Int32Array;
  /** Length of the longest needle that ends here; 0 if none does. */
  readonly found: Int32Array;
  readonly longest: number;
  /** A needle ends with what could be the beginning of an escape. */
  readonly endsInEscape: boolean;
};

export const START = 0;
const STATES_A_STEP = 4_096;
const PERCENT = 0x25;

/** Built when first needed and cached with its set, up to a total size: every symbol takes memory. */
export function automatonOf(needles: NeedleSet): NeedleAutomaton {
  return automata.get(needles) ?? finish(buildAutomaton(needles));
}

/** Whether the search can begin without building anything. */
export function isPrepared(needles: NeedleSet): boolean {
  return automata.has(needles);
}

/** No step takes longer than a few milliseconds. */
export function* buildAutomaton(needles: NeedleSet): Steps<NeedleAutomaton> {
  const automaton = yield* build(needles.needles);
  automata.set(needles, automaton);
  store({ needles: new WeakRef(needles), symbols: automaton.symbol.length + MIN_SYMBOLS_COUNTED });
  return automaton;
}

type CacheEntry = { readonly needles: WeakRef<NeedleSet>; readonly symbols: number };

const automata = new WeakMap<NeedleSet, NeedleAutomaton>();
/** Oldest first. Weak references: an automaton contains secrets and must be collected with its set. */
const cache: CacheEntry[] = [];
let cachedSymbols = 0;
/** Rules can be combined in many sets on many hosts. At 25 bytes a symbol this is 100 MB. */
const MAX_CACHED_SYMBOLS = 4_194_304;
const MIN_SYMBOLS_COUNTED = 1_024;

/** The newest entry stays, whatever its size. */
function store(newest: CacheEntry): void {
  cache.push(newest);
  cachedSymbols += newest.symbols;
  while (cachedSymbols > MAX_CACHED_SYMBOLS && cache.length > 1) {
    const oldest = cache.shift() as CacheEntry;
    cachedSymbols -= oldest.symbols;
    const needles = oldest.needles.deref();
    if (needles) automata.delete(needles);
  }
}

export function nextState(automaton: NeedleAutomaton, from: number, symbol: number): number {
  for (let state = from; state !== START; state = automaton.retreat[state] as number) {
    const next = childOf(automaton, state, symbol);
    if (next !== START) return next;
  }
  return automaton.first[symbol] as number; // 256 entries
}

/** The state for the last `depth` symbols of the text. */
export function shortened(automaton: NeedleAutomaton, from: number, depth: number): number {
  let state = from;
  while ((automaton.depth[state] as number) > depth) state = automaton.fallback[state] as number;
  return state;
}

/** How many symbols at the end of the text may still become a needle. */
export function openDepth({ child, fallback, depth }: NeedleAutomaton, from: number): number {
  let state = from;
  while (state !== START && child[state] === START) state = fallback[state] as number;
  return depth[state] as number;
}

/** Level by level, so that states are stored in the order in which they are linked, and states of a level are adjacent. */
function* build(texts: readonly Buffer[]): Steps<NeedleAutomaton> {
  const needles = texts.toSorted((a, b) => b.length - a.length);
  const automaton = createEmpty(needles);
  const ends = new Int32Array(needles.length);
  let used = 1;
  for (let depth = 0; depth < automaton.longest; depth += 1) {
    for (const [i, needle] of needles.entries()) {
      if (needle.length <= depth) break;
      const state = stateAfter(automaton, ends[i] as number, needle[depth] as number, used);
      if (state === used) used += 1;
      automaton.depth[state] = depth + 1;
      if (needle.length === depth + 1) automaton.found[state] = needle.length;
      ends[i] = state;
    }
    yield;
  }
  yield* link(automaton, used);
  return automaton;
}

function createEmpty(needles: readonly Buffer[]): NeedleAutomaton {
  const states = needles.reduce((sum, { length }) => sum + length, 1);
  return {
    first: new Int32Array(256),
    symbol: new Uint8Array(states),
    child: new Int32Array(states),
    sibling: new Int32Array(states),
    fallback: new Int32Array(states),
    retreat: new Int32Array(states),
    depth: new Int32Array(states),
    found: new Int32Array(states),
    longest: needles[0]?.length ?? 0,
    endsInEscape: needles.some(endsInEscape),
  };
}

function endsInEscape(needle: Buffer): boolean {
  const last = needle.length - 1;
  return needle[last] === PERCENT || (needle[last - 1] === PERCENT && hexValue(needle[last] as number) >= 0);
}

/** The child of `state` for this symbol; `unused` becomes it if there is none. */
function stateAfter(automaton: NeedleAutomaton, state: number, wanted: number, unused: number): number {
  const { first, symbol, child, sibling } = automaton;
  const known = state === START ? (first[wanted] as number) : childOf(automaton, state, wanted);
  if (known !== START) return known;
  symbol[unused] = wanted;
  if (state === START) first[wanted] = unused;
  else {
    sibling[unused] = child[state] as number;
    child[state] = unused;
  }
  return unused;
}

/** Sets the fallback of each state, shallow states first: deeper states fall back to them. */
function* link(automaton: NeedleAutomaton, used: number): Steps<void> {
  const { symbol, child, sibling, fallback, retreat, found } = automaton;
  for (let state = 1; state < used; state += 1) {
    if (state % STATES_A_STEP === 0) yield;
    const back = fallback[state] as number;
    retreat[state] = leadsNoFurther(automaton, back, state) ? (retreat[back] as number) : back;
    if (found[state] === 0) found[state] = found[back] as number;
    for (let next = child[state] as number; next !== START; next = sibling[next] as number)
      fallback[next] = nextState(automaton, back, symbol[next] as number);
  }
}

/** Without this check, a repetitive text would fall back repetition by repetition (Knuth, Morris and Pratt, 1977). */
function leadsNoFurther(automaton: NeedleAutomaton, back: number, state: number): boolean {
  const only = automaton.child[back] as number;
  if (only === START) return true;
  const isOnly = back !== START && automaton.sibling[only] === START;
  return isOnly && childOf(automaton, state, automaton.symbol[only] as number) !== START;
}

function childOf({ symbol, child, sibling }: NeedleAutomaton, state: number, wanted: number): number {
  let next = child[state] as number;
  while (next !== START && symbol[next] !== wanted) next = sibling[next] as number;
  return next;
}
