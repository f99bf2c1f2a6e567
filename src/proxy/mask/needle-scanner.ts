// Finds needles in a body as it streams by, in time that grows with the body alone: however the body is cut into pieces,
// the same bytes are found. It says where needles stand, and from where on more bytes are needed to say. It keeps no byte.
import { hexValue } from '../../http1/byte-class.ts';
import {
  type NeedleAutomaton,
  START,
  automatonOf,
  nextState,
  openDepth,
  shortened,
} from './needle-automaton.ts';
import {
  BEGINNING_BYTES,
  type NeedleSet,
  mayContainNeedle,
  nextPercent,
  nextPossible,
  toFolded,
} from './needle-set.ts';

/** Offsets into the whole text; `end` is past the last byte. */
export type OnFound = (start: number, end: number) => void;
export type FoundRange = { readonly start: number; readonly end: number };

/** Every needle in a text that is there as a whole. Ranges may overlap. */
export function findNeedles(text: Buffer, needles: NeedleSet): readonly FoundRange[] {
  if (!text.includes(PERCENT) && !mayContainNeedle(text, needles)) return [];
  const found: FoundRange[] = [];
  const scanner = new NeedleScanner(needles, (start, end) => found.push({ start, end }));
  scanner.scan(text);
  scanner.end();
  return found;
}

const PERCENT = 0x25;
const NONE = -1;
/** Each is of text that was made to be read in several ways. */
const MAX_READINGS = 8;

/** The text with its escapes undone, where that is another text. It counts for as long as an escape is in it. */
type Reading = {
  readonly state: number;
  /** Symbols behind the escape that it may not fall behind. */
  readonly since: number;
  /** The latest so many escapes are undone in it. */
  readonly escapes: number;
};

export class NeedleScanner {
  readonly #needles: NeedleSet;
  readonly #automaton: NeedleAutomaton;
  readonly #onFound: OnFound;
  /** Bytes of the body so far. */
  #at = 0;
  /** Of the text as it stands. */
  #literal = START;
  #readings: readonly Reading[] = [];
  /** Where the escape in progress begins, and its first digit as it stands. */
  #percent = NONE;
  #high = NONE;
  /** What an escape in progress would continue. */
  #before: readonly Reading[] = [];
  /** Where escapes ended, as far back as the longest needle may reach. */
  #escapes: number[] = [];

  constructor(needles: NeedleSet, onFound: OnFound) {
    this.#needles = needles;
    this.#automaton = automatonOf(needles);
    this.#onFound = onFound;
  }

  /** Every needle that starts before this offset has been found. */
  get openFrom(): number {
    const openStart = (reading: Reading, end: number): number =>
      this.#startOf(reading, end, openDepth(this.#automaton, reading.state));
    let from = this.#at - openDepth(this.#automaton, this.#literal);
    const isWaiting = this.#percent !== NONE;
    const [readings, end] = isWaiting ? [this.#before, this.#percent] : [this.#readings, this.#at];
    for (const reading of readings) from = Math.min(from, openStart(reading, end));
    return from;
  }

  /** Takes the next bytes of the body, and changes none. */
  scan(bytes: Buffer): void {
    const base = this.#at;
    const { depth } = this.#automaton;
    let at = 0;
    let from = NONE;
    let percent = nextPercent(bytes, 0);
    while (at < bytes.length) {
      // What begins here or later is looked for by the cheaper way.
      const start = at - (depth[this.#literal] as number);
      const isIdle = this.#percent === NONE && this.#readings.length === 0;
      const isShort = at - start < BEGINNING_BYTES && base + start >= (this.#escapes.at(-1) ?? 0);
      if (isIdle && start > from && isShort) {
        if (percent < start) percent = nextPercent(bytes, start);
        at = from = nextPossible(
          bytes,
          start,
          Math.min(percent, bytes.length) - BEGINNING_BYTES,
          this.#needles,
        );
        this.#literal = START;
      }
      this.#at = base + at;
      this.#step(bytes[at] as number); // `nextPossible` stays inside
      at += 1;
    }
    this.#at = base + bytes.length;
  }

  /** The body is whole: an escape in progress is none. */
  end(): void {
    if (this.#percent !== NONE) this.#giveUpEscape();
  }

  #step(byte: number): void {
    const automaton = this.#automaton;
    const isOver = this.#percent !== NONE && this.#continueEscape(byte);
    if (byte === PERCENT) this.#beginEscape();
    const symbol = toFolded(byte);
    this.#literal = nextState(automaton, this.#literal, symbol);
    const end = this.#at + 1;
    const found = automaton.found[this.#literal] as number;
    if (found > 0) this.#onFound(end - found, end);
    if (this.#percent === NONE && !isOver) this.#pass(symbol, end);
  }

  /** The next byte is no part of an escape. */
  #pass(symbol: number, end: number): void {
    if (this.#readings.length === 0) return;
    this.#readings = this.#readings.flatMap((reading) =>
      this.#advance(reading, symbol, end, { since: reading.since + 1, escapes: reading.escapes }),
    );
  }

  /** The state that the text is in counts on: at the end of the escape it may turn out to be another text. */
  #beginEscape(): void {
    this.#percent = this.#at;
    this.#high = NONE;
    const since = this.#at - (this.#escapes.at(-1) ?? NONE);
    const automaton = this.#automaton;
    const isUndone = this.#readings[0]?.escapes === Number.POSITIVE_INFINITY;
    const before = isUndone ? [...this.#readings] : [this.#undone(since), ...this.#readings];
    // A needle may begin inside of what looks like an escape, as behind the sign of a wildcard.
    if ((automaton.depth[this.#literal] as number) > since && before.length < MAX_READINGS)
      before.push({ state: this.#literal, since, escapes: 0 });
    this.#before = before;
  }

  /** Cheap only where no such reading goes on: then nothing that the text ends with is longer than an escape. */
  #undone(since: number): Reading {
    const state = shortened(this.#automaton, this.#literal, since);
    return { state, since, escapes: Number.POSITIVE_INFINITY };
  }

  /** True if the escape ends with this byte. Readings wait for it: to fall back for each sign would cost their depth. */
  #continueEscape(byte: number): boolean {
    const digit = hexValue(byte);
    if (digit < 0) this.#giveUpEscape();
    else if (this.#high === NONE) this.#high = byte;
    else {
      this.#endEscape(toFolded(hexValue(this.#high) * 16 + digit));
      return true;
    }
    return false;
  }

  /** It was none: its bytes stand for themselves. */
  #giveUpEscape(): void {
    const start = this.#percent;
    this.#percent = NONE;
    this.#pass(toFolded(PERCENT), start + 1);
    if (this.#high !== NONE) this.#pass(toFolded(this.#high), start + 2);
  }

  #endEscape(symbol: number): void {
    const end = this.#at + 1;
    if (this.#automaton.endsInEscape) this.#findInEscape(toFolded(this.#high));
    this.#percent = NONE;
    this.#escapes.push(end);
    if (this.#escapes.length > 2 * this.#automaton.longest) this.#escapes.splice(0, this.#automaton.longest);
    this.#readings = this.#before.flatMap((reading) => {
      const { since, escapes } = reading;
      const isUndone = escapes === Number.POSITIVE_INFINITY;
      return this.#advance(reading, symbol, end, { since: isUndone ? 0 : since + 1, escapes: escapes + 1 });
    });
  }

  /** Needles that end within an escape, by readings that are about to undo it. */
  #findInEscape(high: number): void {
    for (const reading of this.#before) {
      let { state } = reading;
      for (const [i, symbol] of [PERCENT, high].entries()) {
        state = nextState(this.#automaton, state, symbol);
        const end = this.#percent + 1 + i;
        const length = this.#automaton.found[state] as number;
        if (length > 0) this.#onFound(this.#startOf(reading, end, length), end);
      }
    }
  }

  /** The reading one symbol on; none where what is left of it is the text as it stands, or that of another reading. */
  #advance(
    { state }: Reading,
    symbol: number,
    end: number,
    { since, escapes }: Omit<Reading, 'state'>,
  ): Reading | [] {
    const { found, depth } = this.#automaton;
    const next = { state: nextState(this.#automaton, state, symbol), since, escapes };
    if ((depth[next.state] as number) <= since) return [];
    const length = found[next.state] as number;
    if (length > 0) this.#onFound(this.#startOf(next, end, length), end);
    return next;
  }

  /** Where the last `length` symbols of a reading begin in the body. */
  #startOf({ escapes: undone }: Reading, end: number, length: number): number {
    // Monotonous: an escape further back ends three bytes earlier or more, and moves the beginning by two.
    const newest = this.#escapes.length - 1;
    let [few, many] = [0, Math.min(undone, this.#escapes.length)];
    while (few < many) {
      const middle = (few + many) >> 1;
      if ((this.#escapes[newest - middle] as number) + 2 * middle > end - length) few = middle + 1;
      else many = middle;
    }
    return end - length - 2 * few;
  }
}
