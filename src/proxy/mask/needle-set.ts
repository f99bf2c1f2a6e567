// The texts to search for (needles), and quick checks that spare nearly every region the search itself. Pure.
import { type Steps, finish } from '../../base/steps.ts';
import { SEMICOLON, hexValue } from '../../http1/byte-class.ts';
import { IntSet } from './int-set.ts';

export type NeedleSet = {
  /** Folded; none if they are too many to be searched for. */
  readonly needles: readonly Buffer[];
  /** The first four bytes of each needle. */
  readonly beginnings: IntSet;
  /** 1 at the hash of each beginning: nearly every byte of a region is passed over without a look into the set. */
  readonly filter: Uint8Array;
  /** One of the beginnings contains `%`, `&` or `;`, which escapes and references consist of. */
  readonly beginsWithSign: boolean;
  /** Hashes of the first eight bytes of each needle, for a set that is too large to be searched for in heads. */
  readonly prefixes: IntSet | undefined;
  /** Of all needles, or more than may be searched for. */
  readonly bytes: number;
};

/** About 32 KiB of tokens in all their forms. Preparing the search for more would take too much time and memory. */
export const MAX_SEARCHED_BYTES = 524_288;
/**
 * The same for heads, about 4 KiB of tokens: every response has a head, and an upstream that echoes a secret chooses how
 * often a search is prepared.
 */
export const MAX_HEAD_SEARCH_BYTES = 65_536;
export const BEGINNING_BYTES = 4;
const PREFIX_BYTES = 8;
const ARENA_BYTES = 16_384;
/** The first bytes of each form depend on no more of a value, even if all of them are escapes. */
const PREFIX_CHARS = 24;
/** Shorter texts would match by chance. */
const MIN_DECODED_BYTES = 8;
const PERCENT = 0x25;
const AMPERSAND = 0x26;
/** Beyond every region, and a small integer: loops compare with it at each byte. */
const NOWHERE = 0x3fff_ffff;

/** `texts` must have at least 8 bytes each. */
export function compileNeedles(texts: readonly string[]): NeedleSet {
  return finish(compileInSteps(texts, (text) => [text], MAX_SEARCHED_BYTES));
}

/**
 * The needles of all forms of the values. Needles of more than `maxSearched` bytes together are not searched for, so only
 * their first bytes are stored. No step takes longer than a few milliseconds.
 */
export function* compileInSteps(
  values: readonly string[],
  formsOf: (value: string) => readonly string[],
  maxSearched: number,
): Steps<NeedleSet> {
  const collection = new NeedleCollection(maxSearched);
  for (const value of values) {
    const text = collection.isTooLarge ? value.slice(0, PREFIX_CHARS) : value;
    for (const form of new Set(formsOf(text))) collection.add(form);
    yield;
  }
  return collection.finish();
}

class NeedleCollection {
  readonly #maxSearched: number;
  #needles: Buffer[] = [];
  #arena: Buffer = Buffer.alloc(0);
  #arenaUsed = 0;
  readonly #beginnings = new IntSet();
  #prefixes: IntSet | undefined;
  #beginsWithSign = false;
  #bytes = 0;

  constructor(maxSearched: number) {
    this.#maxSearched = maxSearched;
  }

  get isTooLarge(): boolean {
    return this.#bytes > this.#maxSearched;
  }

  add(text: string): void {
    for (const needle of foldedNeedles(this.#place(text))) {
      this.#beginnings.add(needle.readInt32BE());
      this.#prefixes?.add(prefixOf(needle));
      this.#beginsWithSign ||= hasSign(needle);
      this.#bytes += needle.length;
      this.#needles.push(needle);
    }
    if (this.#bytes > MAX_HEAD_SEARCH_BYTES && !this.#prefixes) {
      this.#prefixes = new IntSet();
      for (const needle of this.#needles) this.#prefixes.add(prefixOf(needle));
    }
    if (this.isTooLarge) this.#needles = [];
  }

  /** In memory of the set's own: in a pool of the process, a small buffer of another owner would keep all of it. */
  #place(text: string): Buffer {
    const length = Buffer.byteLength(text);
    if (this.#arena.length - this.#arenaUsed < length) {
      this.#arena = Buffer.allocUnsafeSlow(Math.max(length, ARENA_BYTES));
      this.#arenaUsed = 0;
    }
    const placed = this.#arena.subarray(this.#arenaUsed, this.#arenaUsed + length);
    placed.write(text);
    if (!this.isTooLarge) this.#arenaUsed += length;
    return placed;
  }

  finish(): NeedleSet {
    const beginnings = this.#beginnings;
    // Sparse, so that few bytes pass by chance.
    const slots = Math.min(16, Math.max(8, Math.ceil(Math.log2(beginnings.size * 64))));
    const filter = new Uint8Array(2 ** slots);
    beginnings.forEach((beginning) => {
      filter[slotOf(beginning, filter.length - 1)] = 1;
    });
    return {
      needles: this.#needles,
      beginnings,
      filter,
      beginsWithSign: this.#beginsWithSign,
      prefixes: this.#prefixes,
      bytes: this.#bytes,
    };
  }
}

function hasSign(needle: Buffer): boolean {
  for (let at = 0; at < BEGINNING_BYTES; at += 1) {
    const byte = needle[at];
    if (byte === PERCENT || byte === AMPERSAND || byte === SEMICOLON) return true;
  }
  return false;
}

/** A text with escapes is found with all of them decoded too; a longer text that is decoded in part is ambiguous. */
function foldedNeedles(text: Buffer): readonly Buffer[] {
  const needle = fold(text);
  if (!needle.includes(PERCENT)) return [needle];
  const decoded = decodeEscapes(needle);
  return decoded.length < MIN_DECODED_BYTES || decoded.length === needle.length
    ? [needle]
    : [needle, decoded];
}

function fold(bytes: Buffer): Buffer {
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = foldedAt(bytes, at);
  return bytes;
}

/** Two texts with one hash are one prefix: more heads are hidden, never fewer. */
function prefixOf(symbolsOfNeedle: Buffer): number {
  const mixed = Math.imul(symbolsOfNeedle.readInt32BE(), 0x9e3779b1) ^ symbolsOfNeedle.readInt32BE(4);
  return Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) | 0;
}

function decodeEscapes(text: Buffer): Buffer {
  const decoded: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const escaped = escapedByte(text, at);
    decoded.push(escaped < 0 ? (text[at] as number) : toFolded(escaped));
    if (escaped >= 0) at += 2;
  }
  return Buffer.from(decoded);
}

/**
 * The first offset from `from` to `last` where a needle may begin, or `last + 1`. The four bytes from each offset must be
 * inside the region and must not contain a percent sign.
 */
function nextPossible(region: Buffer, from: number, last: number, { filter }: NeedleSet): number {
  if (from > last) return from;
  let window = 0;
  for (let at = from; at < from + BEGINNING_BYTES - 1; at += 1) window = (window << 8) | foldedAt(region, at);
  for (let at = from; at <= last; at += 1) {
    window = (window << 8) | foldedAt(region, at + BEGINNING_BYTES - 1);
    if (filter[slotOf(window, filter.length - 1)] === 1) return at;
  }
  return last + 1;
}

/**
 * Whether the beginning of a needle is anywhere in the region, each of its bytes as it is or percent-encoded: its first
 * four bytes, or the first eight if the set is too large to be searched for.
 */
export function mayContainNeedle(
  region: Buffer,
  needles: NeedleSet,
  from = 0,
  end: number = region.length,
): boolean {
  const last = end - BEGINNING_BYTES;
  let percent = nextPercent(region, from);
  for (let at = from; at <= last; at += 1) {
    if (percent < at) percent = nextPercent(region, at);
    at = nextPossible(region, at, Math.min(last, percent - BEGINNING_BYTES), needles);
    if (at <= last && isBeginning(region, at, 0, needles)) return true;
  }
  return false;
}

/**
 * Whether a beginning goes on at `at` after `length` symbols. An escape is tried both ways: the percent sign may be a byte
 * of the needle itself, or of the text before a needle that begins inside the escape.
 */
function isBeginning(region: Buffer, at: number, length: number, needles: NeedleSet): boolean {
  if (length === BEGINNING_BYTES) {
    if (!needles.beginnings.has(symbols.readInt32BE())) return false;
    if (!needles.prefixes) return true;
  }
  if (length === PREFIX_BYTES) return needles.prefixes?.has(prefixOf(symbols)) === true;
  if (at >= region.length) return false;
  symbols[length] = foldedAt(region, at);
  if (isBeginning(region, at + 1, length + 1, needles)) return true;
  const escaped = escapedByte(region, at);
  if (escaped < 0) return false;
  symbols[length] = toFolded(escaped);
  return isBeginning(region, at + 3, length + 1, needles);
}

/** Scratch memory of `isBeginning`. */
const symbols: Buffer = Buffer.alloc(PREFIX_BYTES);

/** The byte that the escape at `at` stands for; negative if there is no escape. */
export function escapedByte(region: Buffer, at: number): number {
  if (region[at] !== PERCENT || at + 2 >= region.length) return -1;
  const high = hexValue(region[at + 1] as number); // the length was checked
  const low = hexValue(region[at + 2] as number);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/** The next percent sign, or an offset beyond every region. */
function nextPercent(region: Buffer, from: number): number {
  const at = region.indexOf(PERCENT, from);
  return at === -1 ? NOWHERE : at;
}

/** Whether four symbols are the beginning of a needle. */
export function beginsNeedle(window: number, { filter, beginnings }: NeedleSet): boolean {
  return filter[slotOf(window, filter.length - 1)] === 1 && beginnings.has(window);
}

/** Fibonacci hashing: the upper bits of the product depend on all four bytes. */
export function slotOf(beginning: number, lastSlot: number): number {
  return (Math.imul(beginning, 0x9e3779b1) >>> 16) & lastSlot;
}

// One byte for characters that encodings write in two ways: base64 and base64url, and a space as `+` in forms. A text
// that differs from a needle only in these is found too; honest texts do not.
const foldedBytes: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => byte);
foldedBytes[0x20] = 0x2b; // SP
foldedBytes[0x2d] = 0x2b; // -
foldedBytes[0x5f] = 0x2f; // _

export function toFolded(byte: number): number {
  return foldedBytes[byte] as number; // 256 entries
}

/** `at` must be inside the region. */
function foldedAt(region: Buffer, at: number): number {
  return foldedBytes[region[at] as number] as number;
}
