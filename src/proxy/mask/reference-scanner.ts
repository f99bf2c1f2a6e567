// Finds needles in a text that arrives in pieces, also where some of their characters are written as character references
// of HTML: `&#43;`, `&#x2B;`, `&#X002b;`, `&lt;`. The text is scanned as it is. From a reference on that may be part of a
// needle, a second scanner reads the text with its references decoded, until none of them can be part of a needle.
import { INCOMPLETE, NO_REFERENCE, nextReference, referenceAt } from './character-reference.ts';
import { type FoundRange, NeedleScanner, type OnFound } from './needle-scanner.ts';
import { type NeedleSet, mayContainNeedle } from './needle-set.ts';
import { nextBeginning } from './needle-skip.ts';

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
  const ampersand = region.indexOf(AMPERSAND, from);
  if (ampersand < 0 || ampersand >= end) return false;
  const text = region.subarray(from, end);
  const first = nextReference(text, ampersand - from);
  return first < text.length && mayContainNeedle(decodeReferences(text, first), needles);
}

function decodeReferences(text: Buffer, first: number): Buffer {
  const decoded = Buffer.from(text);
  let used = first;
  for (let at = first; at < text.length; used += 1) {
    const reference = text[at] === AMPERSAND ? referenceAt(text, at) : NO_REFERENCE;
    decoded[used] = reference < 0 ? (text[at] as number) : reference & 0xff; // `at` is inside
    at += reference < 0 ? 1 : reference >> 8;
  }
  return decoded.subarray(0, used);
}

const AMPERSAND = 0x26;
/** Symbols of the text for one of a needle: a percent-escape. */
const MAX_ESCAPED = 3;
const NOTHING: Buffer = Buffer.alloc(0);

/** Where a reference was decoded: its offset in the decoded text, and how much longer the text before its end was. */
type Shift = { readonly at: number; readonly extra: number };

export class ReferenceScanner {
  readonly #needles: NeedleSet;
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
  #pending: Buffer = NOTHING;

  constructor(needles: NeedleSet, onFound: OnFound) {
    this.#needles = needles;
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
    let at = this.#pending.length > 0 ? this.#resume(bytes) : 0;
    while (at < bytes.length) {
      at = this.#skip(bytes, at);
      const start = nextReference(bytes, at);
      if (start > at) this.#scanBoth(bytes.subarray(at, start));
      if (start === bytes.length) return;
      const reference = referenceAt(bytes, start);
      if (reference === INCOMPLETE) {
        this.#pending = Buffer.from(bytes.subarray(start));
        return;
      }
      at = start + (reference >> 8);
      this.#scanReference(bytes.subarray(start, at), reference & 0xff);
    }
  }

  /** The text is complete: an incomplete reference is none. */
  end(): void {
    this.#scanBoth(this.#takePending());
    this.#plain.end();
    this.#decoded?.end();
  }

  /** Passes over bytes that neither scanner has to see, because nothing is open. */
  #skip(bytes: Buffer, from: number): number {
    if (this.#decoded || !this.#plain.isIdle) return from;
    const to = nextBeginning(bytes, from, this.#needles);
    this.#plain.skip(to - from);
    this.#at += to - from;
    return to;
  }

  /** Completes the reference that the last piece ended in. Returns how many bytes of this piece it takes. */
  #resume(bytes: Buffer): number {
    for (let at = 0; at < bytes.length; at += 1) {
      const longer = Buffer.concat([this.#pending, bytes.subarray(at, at + 1)]);
      const reference = referenceAt(longer, 0);
      if (reference === NO_REFERENCE) {
        this.#scanBoth(this.#takePending());
        return at;
      }
      this.#pending = longer;
      if (reference === INCOMPLETE) continue;
      this.#scanReference(this.#takePending(), reference & 0xff);
      return at + 1;
    }
    return bytes.length;
  }

  #takePending(): Buffer {
    const pending = this.#pending;
    this.#pending = NOTHING;
    return pending;
  }

  #scanBoth(bytes: Buffer): void {
    this.#plain.scan(bytes);
    this.#at += bytes.length;
    if (!this.#decoded) return;
    this.#decoded.scan(bytes);
    this.#decodedAt += bytes.length;
    this.#dropDecoded();
  }

  #scanReference(reference: Buffer, byte: number): void {
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
