// Finds needles in a text that arrives in pieces, also where some of their characters are written as character references
// of HTML: `&#43;`, `&#x2B;`, `&#X002b;`, `&lt;`. The text is scanned as it is. From a reference on that may be part of a
// needle, a second scanner reads the text with its references decoded, until none of them can be part of a needle.
import { type FoundRange, NeedleScanner, type OnFound } from './needle-scanner.ts';
import { type NeedleSet, mayContainNeedle } from './needle-set.ts';

/** Every needle in a text that is there as a whole. Ranges may overlap. */
export function findNeedles(text: Buffer, needles: NeedleSet): readonly FoundRange[] {
  if (!mayContainNeedle(text, needles) && !mayContainReferenced(text, needles)) return [];
  const found: FoundRange[] = [];
  const scanner = new ReferenceScanner(needles, (start, end) => found.push({ start, end }));
  scanner.scan(text);
  scanner.end();
  return found;
}

/** Whether the beginning of a needle is anywhere in the region once its references are decoded. */
export function mayContainReferenced(
  region: Buffer,
  needles: NeedleSet,
  from = 0,
  end: number = region.length,
): boolean {
  const first = region.indexOf(AMPERSAND, from);
  if (first < 0 || first >= end) return false;
  const text = region.toString('latin1', from, end);
  const decoded = text.replace(REFERENCES, (reference) => {
    const byte = byteOf(reference);
    return byte === undefined ? reference : String.fromCharCode(byte);
  });
  return decoded !== text && mayContainNeedle(Buffer.from(decoded, 'latin1'), needles);
}

/** Where a reference was decoded: its offset in the decoded text, and how much longer the text before its end was. */
type Shift = { readonly at: number; readonly extra: number };

export class ReferenceScanner {
  readonly #plain: NeedleScanner;
  readonly #onFound: OnFound;
  #decoded: NeedleScanner | undefined;
  /** Of `#decoded`, as far back as a needle may reach. */
  #shifts: Shift[] = [];
  /** Bytes of the decoded text so far, if there is one. */
  #decodedAt = 0;
  /** Bytes that `#plain` has scanned. */
  #at = 0;
  /** An incomplete reference. It is not scanned before it is known to be one or none. */
  #pending = '';

  constructor(needles: NeedleSet, onFound: OnFound) {
    this.#plain = new NeedleScanner(needles, onFound);
    this.#onFound = onFound;
  }

  /** Every needle that starts before this offset has been found: bytes before it may be emitted. */
  get safeToEmitUpTo(): number {
    const plain = this.#plain.safeToEmitUpTo;
    return this.#decoded ? Math.min(plain, this.#offsetOf(this.#decoded.safeToEmitUpTo)) : plain;
  }

  /** Takes the next bytes of the text. They are not changed. */
  scan(bytes: Buffer): void {
    let scanned = 0;
    let at = 0;
    while (at < bytes.length) {
      if (this.#pending === '') {
        const start = nextReference(bytes, at);
        if (start > scanned) this.#scanBoth(bytes.subarray(scanned, start));
        scanned = at = start;
        if (at === bytes.length) return;
      }
      this.#pending += String.fromCharCode(bytes[at] as number); // `at` is inside
      if (this.#pending.endsWith(';')) this.#complete();
      else if (!BEGINNING.test(this.#pending)) {
        // The byte that ends it may begin another reference.
        this.#pending = this.#pending.slice(0, -1);
        this.#abandon();
        at -= 1;
      }
      at += 1;
      scanned = at;
    }
  }

  /** The text is complete: an incomplete reference is none. */
  end(): void {
    this.#abandon();
    this.#plain.end();
    this.#decoded?.end();
  }

  #scanBoth(bytes: Buffer): void {
    this.#plain.scan(bytes);
    this.#at += bytes.length;
    if (!this.#decoded) return;
    this.#decoded.scan(bytes);
    this.#decodedAt += bytes.length;
    this.#dropDecoded();
  }

  #abandon(): void {
    const bytes = Buffer.from(this.#pending, 'latin1');
    this.#pending = '';
    if (bytes.length > 0) this.#scanBoth(bytes);
  }

  #complete(): void {
    const byte = byteOf(this.#pending);
    if (byte === undefined) {
      this.#abandon();
      return;
    }
    const reference = Buffer.from(this.#pending, 'latin1');
    this.#pending = '';
    if (!this.#decoded && this.#plain.mayContinueWith(byte)) this.#fork();
    this.#plain.scan(reference);
    this.#at += reference.length;
    if (!this.#decoded) return;
    const before = this.#shifts.at(-1)?.extra ?? 0;
    this.#shifts.push({ at: this.#decodedAt, extra: before + reference.length - 1 });
    this.#decodedAt += 1;
    this.#decoded.scan(Buffer.of(byte));
    this.#dropDecoded();
  }

  /** Before the reference is scanned. */
  #fork(): void {
    this.#shifts = [];
    this.#decodedAt = this.#at;
    this.#decoded = this.#plain.fork((start, end) =>
      this.#onFound(this.#offsetOf(start), this.#offsetOf(end)),
    );
  }

  /** Once no open needle contains a reference, the decoded text is as the text itself. */
  #dropDecoded(): void {
    const last = this.#shifts.at(-1);
    if (!this.#decoded || !last) return;
    if (this.#decoded.safeToEmitUpTo > last.at) this.#decoded = undefined;
    const reach = MAX_ESCAPED * this.#plain.longest;
    if (this.#shifts.length > 2 * reach) this.#shifts.splice(0, this.#shifts.length - reach);
  }

  /** The offset in the text for one in the decoded text, by a binary search. */
  #offsetOf(decoded: number): number {
    let [low, high] = [0, this.#shifts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#shifts[middle] as Shift).at < decoded) low = middle + 1;
      else high = middle;
    }
    return decoded + (this.#shifts[low - 1]?.extra ?? 0);
  }
}

const AMPERSAND = 0x26;
/** Symbols of the text for one of a needle: a percent-escape. */
const MAX_ESCAPED = 3;
const NAMED: Readonly<Record<string, number>> = { amp: 0x26, lt: 0x3c, gt: 0x3e, quot: 0x22, apos: 0x27 };
/** Encoders write few leading zeros, and an incomplete reference must be bounded. */
const BEGINNING = /^&(?:#(?:[0-9]{0,27}|[xX][0-9a-fA-F]{0,26})|[a-z]{0,4})$/;
const REFERENCE = /^&(?:#0{0,24}([0-9]{1,3})|#[xX]0{0,24}([0-9a-fA-F]{1,2})|([a-z]{2,4}));$/;
const REFERENCES = /&(?:#0{0,24}[0-9]{1,3}|#[xX]0{0,24}[0-9a-fA-F]{1,2}|[a-z]{2,4});/g;

/** The ASCII character that a reference stands for: values that are injected contain no other. */
function byteOf(reference: string): number | undefined {
  const [, decimal, hex, name] = REFERENCE.exec(reference) ?? [];
  const byte =
    decimal !== undefined
      ? Number(decimal)
      : hex !== undefined
        ? Number.parseInt(hex, 16)
        : name !== undefined && Object.hasOwn(NAMED, name)
          ? NAMED[name]
          : undefined;
  return byte !== undefined && byte < 0x80 ? byte : undefined;
}

/** The next ampersand that may begin a reference, or the end. */
function nextReference(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(AMPERSAND, from); at >= 0; at = bytes.indexOf(AMPERSAND, at + 1)) {
    const next = bytes[at + 1];
    if (next === undefined || FIRST.includes(next)) return at;
  }
  return bytes.length;
}

/** `#`, or the first letter of a name. */
const FIRST: Buffer = Buffer.from('#aglq');
