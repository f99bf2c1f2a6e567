// Finds any of many texts in a region of bytes, in one pass whose length depends on the region and not on how many
// texts there are. A text is found as it stands and with any of its bytes percent-encoded. Pure.
import { hexValue } from '../../http1/byte-class.ts';

export type NeedleSet = {
  /** By their first four bytes; longest first. */
  readonly byBeginning: ReadonlyMap<number, readonly Buffer[]>;
  /** 1 where the hash of a beginning falls: spares nearly every byte of a region the look into the map. */
  readonly filter: Uint8Array;
  /** Of all texts, each once. */
  readonly bytes: number;
};

/** Offsets into the region; `end` is past the last byte. */
export type FoundRange = { readonly start: number; readonly end: number };

export const BEGINNING_BYTES = 4;
/** What is left of escapes may be short, and then it is found by chance. */
const MIN_UNESCAPED_BYTES = 8;
const PERCENT = 0x25;
/** Beyond every region, and a small integer: the loop compares with it at each byte. */
const NOWHERE = 0x3fff_ffff;
/** What looking at one needle costs besides its bytes. */
const LOOK_STEPS = 8;
/** What a byte costs that may be escaped. */
const ESCAPED_STEPS = 4;
/**
 * About two milliseconds. An honest region holds the secrets that a host echoes and a few likenesses; to compare
 * each of its bytes with thousands of long texts it must have been made for that.
 */
const MAX_STEPS = 1_000_000;

/** `texts` should have at least 4 bytes each. */
export function compileNeedles(texts: readonly string[]): NeedleSet {
  // Sparse, so that few bytes pass by chance.
  const filter = new Uint8Array(2 ** Math.min(16, Math.max(8, Math.ceil(Math.log2(texts.length * 64)))));
  const byBeginning = new Map<number, Buffer[]>();
  let bytes = 0;
  for (const needle of foldedNeedles(texts).toSorted((a, b) => b.length - a.length)) {
    bytes += needle.length;
    const beginning = needle.readInt32BE();
    const others = byBeginning.get(beginning);
    if (others) others.push(needle);
    else byBeginning.set(beginning, [needle]);
    filter[slotOf(beginning, filter)] = 1;
  }
  return { byBeginning, filter, bytes };
}

/** A text that holds escapes is found unescaped too: of a longer one that is escaped in part nobody could tell which are its own. */
function foldedNeedles(texts: readonly string[]): Buffer[] {
  return [...new Set(texts)].flatMap((text) => {
    const needle = Buffer.from(text).map(toFolded) as Buffer; // of a Buffer, map makes a Buffer
    if (!needle.includes(PERCENT)) return [needle];
    const plain = unescaped(needle);
    return plain.length < MIN_UNESCAPED_BYTES || plain.length === needle.length ? [needle] : [needle, plain];
  });
}

function unescaped(needle: Buffer): Buffer {
  const plain: number[] = [];
  for (let at = 0; at < needle.length; at += 1) {
    const escaped = escapedByte(needle, at);
    plain.push(escaped < 0 ? (needle[at] as number) : toFolded(escaped));
    if (escaped >= 0) at += 2;
  }
  return Buffer.from(plain);
}

/** Where needles are, in order and apart from one another, or that the region is too full of likenesses to say. */
export function findNeedles(region: Buffer, needles: NeedleSet): readonly FoundRange[] | 'overwhelmed' {
  const found: FoundRange[] = [];
  const search: Search = { region, needles, steps: 0 };
  const { filter } = needles;
  const last = region.length - BEGINNING_BYTES;
  let percent = nextPercent(region, 0);
  let window = 0;
  for (let at = 1 - BEGINNING_BYTES; at <= last; at += 1) {
    window = (window << 8) | foldedAt(region, at + BEGINNING_BYTES - 1);
    const isPlain = percent - at >= BEGINNING_BYTES;
    if (isPlain && filter[slotOf(window, filter)] === 0) continue;
    if (at < 0) continue;
    if (percent < at) percent = nextPercent(region, at);
    let end = endAt(search, at, window, percent);
    // The beginning itself may be escaped: which bytes are is the host's choice.
    if (end === 0 && !isPlain) end = endAt(search, at, unescapedWindow(region, at), percent);
    if (end > 0) keep(found, at, end);
    if (search.steps > MAX_STEPS) return 'overwhelmed';
  }
  return found;
}

/**
 * The first place from `from` to `last` where a needle may begin, or the one behind `last`. Each of them must have the
 * bytes of a beginning behind it, none of them a percent sign.
 */
export function nextPossible(region: Buffer, from: number, last: number, { filter }: NeedleSet): number {
  if (from > last) return from;
  let window = 0;
  for (let at = from; at < from + BEGINNING_BYTES - 1; at += 1) window = (window << 8) | foldedAt(region, at);
  for (let at = from; at <= last; at += 1) {
    window = (window << 8) | foldedAt(region, at + BEGINNING_BYTES - 1);
    if (filter[slotOf(window, filter)] === 1) return at;
  }
  return last + 1;
}

type Search = { readonly region: Buffer; readonly needles: NeedleSet; steps: number };

/** Where the longest needle of this beginning that stands at `at` ends; 0 if none does. */
function endAt(search: Search, at: number, beginning: number, percent: number): number {
  const { needles } = search;
  if (needles.filter[slotOf(beginning, needles.filter)] === 0) return 0;
  for (const needle of needles.byBeginning.get(beginning) ?? []) {
    const isPlain = percent >= at + needle.length;
    const end = plainEnd(search, at, needle) || (isPlain ? 0 : escapedEnd(search, at, needle));
    if (end > 0 || search.steps > MAX_STEPS) return end;
  }
  return 0;
}

function plainEnd(search: Search, at: number, needle: Buffer): number {
  const { region } = search;
  let matched = 0;
  if (at + needle.length <= region.length)
    while (matched < needle.length && foldedAt(region, at + matched) === needle[matched]) matched += 1;
  search.steps += LOOK_STEPS + matched;
  return matched === needle.length ? at + matched : 0;
}

function escapedEnd(search: Search, at: number, needle: Buffer): number {
  const { region } = search;
  let end = at;
  let matched = 0;
  for (; matched < needle.length && end < region.length; matched += 1) {
    const escaped = escapedByte(region, end);
    if (escaped >= 0 && toFolded(escaped) === needle[matched]) end += 3;
    else if (foldedAt(region, end) === needle[matched]) end += 1;
    else break;
  }
  search.steps += LOOK_STEPS + ESCAPED_STEPS * matched;
  return matched === needle.length ? end : 0;
}

/** Overlapping needles become one range: each comes after those that begin before it. */
function keep(found: FoundRange[], start: number, end: number): void {
  const last = found.at(-1);
  if (last === undefined || start > last.end) found.push({ start, end });
  else found[found.length - 1] = { start: last.start, end: Math.max(last.end, end) };
}

function unescapedWindow(region: Buffer, at: number): number {
  let window = 0;
  let end = at;
  for (let i = 0; i < BEGINNING_BYTES && end < region.length; i += 1) {
    const escaped = escapedByte(region, end);
    window = (window << 8) | (escaped >= 0 ? toFolded(escaped) : foldedAt(region, end));
    end += escaped >= 0 ? 3 : 1;
  }
  return window;
}

/** The byte that the escape at `at` stands for; negative if none is there. */
function escapedByte(region: Buffer, at: number): number {
  if (region[at] !== PERCENT || at + 2 >= region.length) return -1;
  const high = hexValue(region[at + 1] as number); // the length was checked
  const low = hexValue(region[at + 2] as number);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/** Beyond every region if there is none. */
export function nextPercent(region: Buffer, from: number): number {
  const at = region.indexOf(PERCENT, from);
  return at === -1 ? NOWHERE : at;
}

/** Fibonacci hashing: the upper bits of the product depend on all four bytes. */
function slotOf(beginning: number, filter: Uint8Array): number {
  return (Math.imul(beginning, 0x9e3779b1) >>> 16) & (filter.length - 1);
}

// One byte for what encodings write in two ways: base64 and base64url, and a space as `+` in forms. A text that
// differs from a needle in these alone is found too, which honest texts do not.
const foldedBytes: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => byte);
foldedBytes[0x20] = 0x2b; // SP
foldedBytes[0x2d] = 0x2b; // -
foldedBytes[0x5f] = 0x2f; // _

export function toFolded(byte: number): number {
  return foldedBytes[byte] as number; // 256 entries
}

/** The caller has checked `at` to be inside. */
function foldedAt(region: Buffer, at: number): number {
  return foldedBytes[region[at] as number] as number;
}
