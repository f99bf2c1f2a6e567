// An automaton that finds every needle of a set in a stream of bytes, one step a byte (Aho and Corasick, 1975): where a
// text stops being one needle it goes on as the longest beginning of another. It knows symbols, that is bytes as needles
// fold them, and no stream.
import { hexValue } from '../http1/byte-class.ts';
import { type NeedleSet, toFolded } from './needle-set.ts';

export type NeedleAutomaton = {
  /** By symbol: the state behind the first one. */
  readonly first: Int32Array;
  /** By state, as all below: the symbol that leads here. */
  readonly symbol: Uint8Array;
  readonly child: Int32Array;
  readonly sibling: Int32Array;
  /** Of the longest beginning that the text up to here ends with, itself left out. */
  readonly fallback: Int32Array;
  /** Symbols of a needle that the text up to here ends with. */
  readonly depth: Int32Array;
  /** Symbols of the longest needle that ends here; 0 if none does. */
  readonly found: Int32Array;
  readonly longest: number;
};

export const START = 0;
const PERCENT = 0x25;

/** Takes room for each symbol of each needle; made when first asked for, and kept as long as its set. */
export function automatonOf(needles: NeedleSet): NeedleAutomaton {
  let known = automata.get(needles);
  if (known) return known;
  known = build([...needles.byBeginning.values()].flat().flatMap(readingsOf));
  automata.set(needles, known);
  return known;
}

const automata = new WeakMap<NeedleSet, NeedleAutomaton>();

export function nextState(automaton: NeedleAutomaton, from: number, symbol: number): number {
  for (let state = from; state !== START; state = automaton.fallback[state] as number) {
    const next = childOf(automaton, state, symbol);
    if (next !== START) return next;
  }
  return automaton.first[symbol] as number; // 256 entries
}

/** The state for the same text of which no more than `depth` symbols count. */
export function shortened(automaton: NeedleAutomaton, from: number, depth: number): number {
  let state = from;
  while ((automaton.depth[state] as number) > depth) state = automaton.fallback[state] as number;
  return state;
}

/** Symbols at the end of the text of which, with more behind them, a needle may yet be made. */
export function openDepth({ child, fallback, depth }: NeedleAutomaton, from: number): number {
  let state = from;
  while (state !== START && child[state] === START) state = fallback[state] as number;
  return depth[state] as number;
}

/** A needle that holds escapes itself is searched for in unescaped text too. */
function readingsOf(needle: Buffer): Buffer[] {
  if (!needle.includes(PERCENT)) return [needle];
  const plain: number[] = [];
  for (let at = 0; at < needle.length; at += 1) {
    const [high, low] = [hexValue(needle[at + 1] ?? 0), hexValue(needle[at + 2] ?? 0)];
    const isEscape = needle[at] === PERCENT && high >= 0 && low >= 0;
    plain.push(isEscape ? toFolded(high * 16 + low) : (needle[at] as number));
    if (isEscape) at += 2;
  }
  return [needle, Buffer.from(plain)];
}

function build(needles: readonly Buffer[]): NeedleAutomaton {
  const states = needles.reduce((sum, { length }) => sum + length, 1);
  const automaton: NeedleAutomaton = {
    first: new Int32Array(256),
    symbol: new Uint8Array(states),
    child: new Int32Array(states),
    sibling: new Int32Array(states),
    fallback: new Int32Array(states),
    depth: new Int32Array(states),
    found: new Int32Array(states),
    longest: needles.reduce((most, { length }) => Math.max(most, length), 0),
  };
  let used = 1;
  for (const needle of needles) used = insert(automaton, needle, used);
  link(automaton, used);
  return automaton;
}

/** Answers how many states are in use. */
function insert(automaton: NeedleAutomaton, needle: Buffer, from: number): number {
  const { first, symbol, child, sibling, depth, found } = automaton;
  let [state, used] = [START, from];
  for (const [i, byte] of needle.entries()) {
    let next = state === START ? (first[byte] as number) : childOf(automaton, state, byte);
    if (next === START) {
      next = used;
      used += 1;
      symbol[next] = byte;
      depth[next] = i + 1;
      if (state === START) first[byte] = next;
      else {
        sibling[next] = child[state] as number;
        child[state] = next;
      }
    }
    state = next;
  }
  found[state] = needle.length;
  return used;
}

/** Sets where each state falls back to: shallow ones first, since deeper ones fall back to them. */
function link(automaton: NeedleAutomaton, states: number): void {
  const { first, symbol, child, sibling, fallback, found } = automaton;
  const queue = new Int32Array(states);
  let end = 0;
  for (const state of first) if (state !== START) queue[end++] = state;
  for (let at = 0; at < end; at += 1) {
    const state = queue[at] as number;
    const back = fallback[state] as number;
    if (found[state] === 0) found[state] = found[back] as number;
    for (let next = child[state] as number; next !== START; next = sibling[next] as number) {
      fallback[next] = nextState(automaton, back, symbol[next] as number);
      queue[end++] = next;
    }
  }
}

function childOf({ symbol, child, sibling }: NeedleAutomaton, state: number, wanted: number): number {
  let next = child[state] as number;
  while (next !== START && symbol[next] !== wanted) next = sibling[next] as number;
  return next;
}
