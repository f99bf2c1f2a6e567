// Finds needles in a text that arrives in pieces, in time that grows with the text alone: however the text is cut, the
// same bytes are found. Response heads are one piece, bodies are many. The scanner stores no byte of the text.
//
// A needle may be percent-encoded in part. So beside the text as it is, the scanner follows variants of it in which
// recent escapes are decoded. For the needle `a/b` in the text `xa%2Fb`:
//
//   bytes     x  a  %  2  F  b
//   literal   -  a  -  -  -  -      after `%` the literal text is no beginning of the needle any more
//   variant            a/ .  a/b    the escape is decoded when it is complete: found, at offsets 1 to 6
import { hexValue } from '../../http1/byte-class.ts';
import {
  type NeedleAutomaton,
  START,
  automatonOf,
  nextState,
  openDepth,
  shortened,
} from './needle-automaton.ts';
import { BEGINNING_BYTES, type NeedleSet, escapedByte, toFolded } from './needle-set.ts';
import { nextBeginning } from './needle-skip.ts';

/** Offsets into the whole text; `end` is past the last byte. */
export type OnFound = (start: number, end: number) => void;
export type FoundRange = { readonly start: number; readonly end: number };

const PERCENT = 0x25;
const ESCAPE_BYTES = 3;
const NONE = -1;
/** Only a text that was made for it has more variants that are the beginning of a needle. */
const MAX_VARIANTS = 8;
const ALL_ESCAPES: number = Number.POSITIVE_INFINITY;

/** The text with its latest escapes decoded. It is dropped once no decoded escape is part of a possible needle. */
type Variant = {
  /** Of the automaton. */
  readonly state: number;
  /** Symbols after the last decoded escape: a needle must be longer than that to contain it. */
  readonly sinceEscape: number;
  /** How many of the latest escapes are decoded. */
  readonly decoded: number;
};

const NO_VARIANTS: readonly Variant[] = [];

export class NeedleScanner {
  readonly #needles: NeedleSet;
  readonly #automaton: NeedleAutomaton;
  readonly #onFound: OnFound;
  /** Bytes of the text so far. */
  #at = 0;
  /** State of the text as it is. */
  #literal = START;
  #variants: readonly Variant[] = [];
  /** Offset of the percent sign of an incomplete escape, and its first digit. */
  #pendingEscape = NONE;
  #firstDigit = NONE;
  /** The variants that the incomplete escape would continue. */
  #variantsBefore: readonly Variant[] = [];
  /** Offsets at which escapes ended, as far back as the longest needle may reach. */
  #escapeEnds: number[] = [];

  constructor(needles: NeedleSet, onFound: OnFound, automaton: NeedleAutomaton = automatonOf(needles)) {
    this.#needles = needles;
    this.#automaton = automaton;
    this.#onFound = onFound;
  }

  /** Length of the longest needle. */
  get longest(): number {
    return this.#automaton.longest;
  }

  /** A scanner in the same state, for a text that goes on differently. */
  fork(onFound: OnFound): NeedleScanner {
    const fork = new NeedleScanner(this.#needles, onFound, this.#automaton);
    fork.#at = this.#at;
    fork.#literal = this.#literal;
    fork.#variants = this.#variants;
    fork.#pendingEscape = this.#pendingEscape;
    fork.#firstDigit = this.#firstDigit;
    fork.#variantsBefore = this.#variantsBefore;
    fork.#escapeEnds = this.#openEscapeEnds();
    return fork;
  }

  /** The escapes that a possible needle may contain, and the latest: all that the rest of the text depends on. */
  #openEscapeEnds(): number[] {
    const ends = this.#escapeEnds;
    const open = this.safeToEmitUpTo;
    let from = Math.max(0, ends.length - 1);
    while (from > 0 && (ends[from - 1] as number) >= open) from -= 1;
    return ends.slice(from);
  }

  /** Whether a needle may be open after this byte. */
  mayContinueWith(byte: number): boolean {
    if (byte === PERCENT || this.#pendingEscape !== NONE || this.#variants.length > 0) return true;
    return nextState(this.#automaton, this.#literal, toFolded(byte)) !== START;
  }

  /** Every needle that starts before this offset has been found: bytes before it may be emitted. */
  get safeToEmitUpTo(): number {
    let offset = this.#at - openDepth(this.#automaton, this.#literal);
    const isPending = this.#pendingEscape !== NONE;
    const [variants, end] = isPending
      ? [this.#variantsBefore, this.#pendingEscape]
      : [this.#variants, this.#at];
    for (const variant of variants)
      offset = Math.min(offset, this.#startOf(variant, end, openDepth(this.#automaton, variant.state)));
    return offset;
  }

  /** Whether nothing that could become a needle is open. */
  get isIdle(): boolean {
    return this.#literal === START && this.#pendingEscape === NONE && this.#variants.length === 0;
  }

  /** Passes over bytes in which no needle begins, while idle. */
  skip(length: number): void {
    this.#at += length;
  }

  /** Takes the next bytes of the text. They are not changed. */
  scan(bytes: Buffer): void {
    const base = this.#at;
    let at = 0;
    let skippedTo = NONE;
    while (at < bytes.length) {
      const start = at - (this.#automaton.depth[this.#literal] as number);
      if (start > skippedTo && this.#canSkip(base + start, at - start)) {
        at = skippedTo = nextBeginning(bytes, start, this.#needles);
        this.#literal = START;
      }
      this.#at = base + at;
      const byte = bytes[at] as number; // `nextBeginning` stays inside
      const escaped = byte === PERCENT ? escapedByte(bytes, at) : NONE;
      const isSimple = escaped !== NONE && this.#isSimple();
      const mayEscape = byte === PERCENT && (escaped !== NONE || at + ESCAPE_BYTES > bytes.length);
      if (isSimple) this.#stepEscape(bytes, at, toFolded(escaped));
      else this.#step(byte, mayEscape);
      at += isSimple ? ESCAPE_BYTES : 1;
    }
    this.#at = base + bytes.length;
  }

  /** The text is complete: an incomplete escape is none. */
  end(): void {
    if (this.#pendingEscape !== NONE) this.#abandonEscape();
  }

  /** Whether only a short literal beginning is open, so that the cheaper search for beginnings may go on from `start`. */
  #canSkip(start: number, openBytes: number): boolean {
    const isLiteral = this.#pendingEscape === NONE && this.#variants.length === 0;
    return isLiteral && openBytes < BEGINNING_BYTES && start >= (this.#escapeEnds.at(-1) ?? 0);
  }

  #step(byte: number, mayEscape: boolean): void {
    const endsEscape = this.#pendingEscape !== NONE && this.#continueEscape(byte);
    if (mayEscape) this.#beginEscape();
    const symbol = toFolded(byte);
    const end = this.#at + 1;
    this.#stepLiteral(symbol, end);
    if (this.#pendingEscape === NONE && !endsEscape) this.#advanceAll(symbol, end);
  }

  #stepLiteral(symbol: number, end: number): void {
    this.#literal = nextState(this.#automaton, this.#literal, symbol);
    const found = this.#automaton.found[this.#literal] as number;
    if (found > 0) this.#onFound(end - found, end);
  }

  /** Whether no needle may begin or end inside the escape that comes next, as in nearly every text. */
  #isSimple(): boolean {
    if (this.#pendingEscape !== NONE || this.#automaton.endsInEscape || this.#variants.length > 1)
      return false;
    const [variant] = this.#variants;
    if (variant !== undefined && variant.decoded !== ALL_ESCAPES) return false;
    return (this.#automaton.depth[this.#literal] as number) <= this.#at - (this.#escapeEnds.at(-1) ?? NONE);
  }

  /** A whole escape at once: what `#beginEscape` and `#continueEscape` do in three steps, in a fraction of the time. */
  #stepEscape(bytes: Buffer, at: number, symbol: number): void {
    const before = this.#variants[0]?.state ?? this.#literal;
    const start = this.#at;
    for (let i = 0; i < ESCAPE_BYTES; i += 1)
      this.#stepLiteral(toFolded(bytes[at + i] as number), start + i + 1); // the escape is inside
    const end = start + ESCAPE_BYTES;
    this.#addEscapeEnd(end);
    const variant = this.#advance({ state: before, sinceEscape: 0, decoded: ALL_ESCAPES }, symbol, end);
    this.#variants = variant ? [variant] : NO_VARIANTS;
  }

  /** A byte that is not part of an escape. */
  #advanceAll(symbol: number, end: number): void {
    if (this.#variants.length === 0) return;
    const open: Variant[] = [];
    for (const { state, sinceEscape, decoded } of this.#variants) {
      const variant = this.#advance({ state, sinceEscape: sinceEscape + 1, decoded }, symbol, end);
      if (variant) open.push(variant);
    }
    this.#variants = open;
  }

  /** The literal state goes on too: the escape may be part of a needle as it is. */
  #beginEscape(): void {
    this.#pendingEscape = this.#at;
    this.#firstDigit = NONE;
    const automaton = this.#automaton;
    const sinceEscape = this.#at - (this.#escapeEnds.at(-1) ?? NONE);
    const before = [...this.#variants];
    // Without a variant that decodes all escapes, no open needle is longer than the text since the last escape.
    if (before[0]?.decoded !== ALL_ESCAPES) {
      const state = shortened(automaton, this.#literal, sinceEscape);
      before.unshift({ state, sinceEscape, decoded: ALL_ESCAPES });
    }
    // A needle may begin inside the previous escape, for example after its percent sign.
    if ((automaton.depth[this.#literal] as number) > sinceEscape && before.length < MAX_VARIANTS)
      before.push({ state: this.#literal, sinceEscape, decoded: 0 });
    this.#variantsBefore = before;
  }

  /** True if the escape is complete with this byte. Variants wait for that: one step for each sign could cost their depth. */
  #continueEscape(byte: number): boolean {
    const digit = hexValue(byte);
    if (digit < 0) this.#abandonEscape();
    else if (this.#firstDigit === NONE) this.#firstDigit = byte;
    else {
      this.#completeEscape(toFolded(hexValue(this.#firstDigit) * 16 + digit));
      return true;
    }
    return false;
  }

  /** It is no escape: its bytes stand for themselves. */
  #abandonEscape(): void {
    const start = this.#pendingEscape;
    this.#pendingEscape = NONE;
    this.#advanceAll(toFolded(PERCENT), start + 1);
    if (this.#firstDigit !== NONE) this.#advanceAll(toFolded(this.#firstDigit), start + 2);
  }

  #completeEscape(symbol: number): void {
    const end = this.#at + 1;
    if (this.#automaton.endsInEscape) this.#findInsideEscape(toFolded(this.#firstDigit));
    this.#pendingEscape = NONE;
    this.#addEscapeEnd(end);
    const open: Variant[] = [];
    for (const { state, sinceEscape, decoded } of this.#variantsBefore) {
      const since = decoded === ALL_ESCAPES ? 0 : sinceEscape + 1;
      const variant = this.#advance({ state, sinceEscape: since, decoded: decoded + 1 }, symbol, end);
      if (variant) open.push(variant);
    }
    this.#variants = open;
  }

  #addEscapeEnd(end: number): void {
    this.#escapeEnds.push(end);
    if (this.#escapeEnds.length > 2 * this.#automaton.longest)
      this.#escapeEnds.splice(0, this.#automaton.longest);
  }

  /** Needles that end inside this escape, in variants that are about to decode it. */
  #findInsideEscape(firstDigit: number): void {
    for (const variant of this.#variantsBefore) {
      let { state } = variant;
      for (const [i, symbol] of [PERCENT, firstDigit].entries()) {
        state = nextState(this.#automaton, state, symbol);
        const end = this.#pendingEscape + 1 + i;
        const length = this.#automaton.found[state] as number;
        if (length > 0) this.#onFound(this.#startOf(variant, end, length), end);
      }
    }
  }

  /** The variant after one more symbol; none if it became the literal text or another variant. */
  #advance(variant: Variant, symbol: number, end: number): Variant | undefined {
    const { found, depth } = this.#automaton;
    const { sinceEscape, decoded } = variant;
    const state = nextState(this.#automaton, variant.state, symbol);
    if ((depth[state] as number) <= sinceEscape) return undefined;
    const length = found[state] as number;
    if (length > 0) this.#onFound(this.#startOf(variant, end, length), end);
    return { state, sinceEscape, decoded };
  }

  /** Where the last `length` symbols of a variant begin in the text. */
  #startOf({ decoded }: Variant, end: number, length: number): number {
    // Binary search: an escape further back ends at least three bytes earlier and moves the beginning by only two.
    const newest = this.#escapeEnds.length - 1;
    let [few, many] = [0, Math.min(decoded, this.#escapeEnds.length)];
    while (few < many) {
      const middle = (few + many) >> 1;
      if ((this.#escapeEnds[newest - middle] as number) + 2 * middle > end - length) few = middle + 1;
      else many = middle;
    }
    return end - length - 2 * few;
  }
}
