// Passes over text in which no needle begins, however the text is read: as it is, or with its percent-escapes and character
// references decoded. Nearly every byte of a body is passed over here; only what is left is searched symbol by symbol.
import { hexValue } from '../../http1/byte-class.ts';
import { INCOMPLETE, NO_REFERENCE, referenceAt } from './character-reference.ts';
import { BEGINNING_BYTES, type NeedleSet, beginsNeedle, slotOf, toFolded } from './needle-set.ts';

const PERCENT = 0x25;
const AMPERSAND = 0x26;
/** Marks the bytes that may begin an escape or a reference. */
const SIGN = 0x100;
const UNKNOWN = -1;

const symbols: Uint16Array = Uint16Array.from({ length: 256 }, (_, byte) =>
  byte === PERCENT || byte === AMPERSAND ? SIGN | byte : toFolded(byte),
);

/**
 * The first offset at which a needle may begin, or which cannot be decided because the text ends: no needle begins before
 * it. A needle may begin with the digits of an escape too, as `61bc` does in `%61bc`.
 */
export function nextBeginning(region: Buffer, from: number, needles: NeedleSet): number {
  for (let at = from; ; ) {
    at = passPlain(region, at, needles);
    // Only the search can distinguish such beginnings from escapes and references.
    if (needles.beginsWithSign || !hasSign(region, at)) return at;
    const reached = passSigns(region, at, needles);
    if (reached === at) return at;
    at = reached;
  }
}

/** The first offset where the next four bytes are the beginning of a needle, contain a sign or go past the end. */
function passPlain(region: Buffer, from: number, needles: NeedleSet): number {
  const ahead = BEGINNING_BYTES - 1;
  if (hasSign(region, from)) return from;
  const { filter } = needles;
  const last = filter.length - 1;
  let window = 0;
  for (let at = from; at < from + ahead; at += 1)
    window = (window << 8) | (symbols[region[at] ?? 0] as number);
  for (let at = from + ahead; at < region.length; at += 1) {
    const symbol = symbols[region[at] as number] as number; // `at` is inside
    window = (window << 8) | symbol;
    // The first check of `beginsNeedle`, without a call for each byte.
    const mayBegin = filter[slotOf(window, last)] === 1;
    if (symbol >= SIGN || (mayBegin && beginsNeedle(window, needles))) return at - ahead;
  }
  return Math.max(from, region.length - ahead);
}

function hasSign(region: Buffer, from: number): boolean {
  const last = Math.min(from + BEGINNING_BYTES, region.length);
  for (let at = from; at < last; at += 1) if ((symbols[region[at] as number] as number) >= SIGN) return true;
  return false;
}

/**
 * The same where there are signs, symbol by symbol: the first offset at which a needle may begin, which cannot be decided,
 * or from which on there are no signs.
 */
function passSigns(region: Buffer, from: number, needles: NeedleSet): number {
  const { filter } = needles;
  const last = filter.length - 1;
  let window = 0;
  // Where the last four symbols begin, the newest last.
  let [first, second, third, newest] = [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN];
  // The digits of the escapes that the last three symbols were decoded from, 0 if a symbol stands for itself.
  let [digitsFirst, digitsSecond, digitsThird] = [0, 0, 0];
  let plain = 0;
  for (let at = from; at < region.length && plain < BEGINNING_BYTES; ) {
    let symbol = symbols[region[at] as number] as number; // `at` is inside
    let next = at + 1;
    let digits = 0;
    plain += 1;
    if (symbol >= SIGN) {
      const sign = signAt(region, at);
      if (sign === UNKNOWN) break;
      symbol = sign & 0xff;
      next = at + (sign >> 8);
      if (region[at] === AMPERSAND) {
        if (startsInside(region, at, next, needles)) break;
      } else if (next > at + 1) digits = digitsAt(region, at);
      plain = 0;
    }
    window = (window << 8) | symbol;
    first = second;
    second = third;
    third = newest;
    newest = at;
    // The first check of `beginsNeedle`, without a call for each symbol.
    if (filter[slotOf(window, last)] === 1 && first !== UNKNOWN && beginsNeedle(window, needles))
      return first;
    if ((digitsFirst | digitsSecond | digitsThird | digits) !== 0) {
      const afterDigit = (digitsFirst << 24) | (window & 0xff_ffff);
      if (filter[slotOf(afterDigit, last)] === 1 && digitsFirst !== 0 && beginsNeedle(afterDigit, needles))
        return first;
      const afterDigits = (digitsSecond << 16) | (window & 0xffff);
      if (filter[slotOf(afterDigits, last)] === 1 && digitsSecond !== 0 && beginsNeedle(afterDigits, needles))
        return second;
      digitsFirst = digitsSecond;
      digitsSecond = digitsThird;
      digitsThird = digits;
    }
    at = next;
  }
  return second === UNKNOWN ? from : second;
}

/** The symbol that the sign stands for, with its length shifted by eight bits; or that the next bytes must be searched. */
function signAt(region: Buffer, at: number): number {
  if (region[at] === PERCENT) {
    if (at + 2 >= region.length) return UNKNOWN;
    const high = hexValue(region[at + 1] as number); // the length was checked
    const low = hexValue(region[at + 2] as number);
    if (high >= 0 && low >= 0) return (3 << 8) | toFolded(high * 16 + low);
    // A digit of an escape may be written as a reference.
    const isOpen = region[at + 1] === AMPERSAND || region[at + 2] === AMPERSAND;
    return isOpen ? UNKNOWN : (1 << 8) | PERCENT;
  }
  const reference = referenceAt(region, at);
  if (reference === NO_REFERENCE) return (1 << 8) | AMPERSAND;
  // A percent sign that is written as a reference may begin an escape.
  if (reference === INCOMPLETE || (reference & 0xff) === PERCENT) return UNKNOWN;
  return (reference & ~0xff) | toFolded(reference & 0xff);
}

/** Whether a needle may begin inside a reference, with its number. */
function startsInside(region: Buffer, at: number, next: number, needles: NeedleSet): boolean {
  const end = next - 1;
  if (end - at <= BEGINNING_BYTES) return false;
  let window = 0;
  for (let inner = at + 1; inner < end; inner += 1) {
    window = (window << 8) | toFolded(region[inner] as number); // `inner` is inside
    if (inner - at >= BEGINNING_BYTES && beginsNeedle(window, needles)) return true;
  }
  return false;
}

function digitsAt(region: Buffer, at: number): number {
  return ((region[at + 1] as number) << 8) | (region[at + 2] as number);
}
