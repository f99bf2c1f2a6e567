// JSON as bytes that arrive in pieces, checked byte by byte (RFC 8259) and never held: a handler learns which values there are near the
// top, and may take the bytes of any of them. Memory is a byte for each level, so that a text of any size costs what it is long.
import { InvalidJson } from './invalid-json.ts';
import { firstOfNumber, isDigit, isNumberDone, mayRepeatDigits, nextOfNumber } from './json-number.ts';
import { Utf8Check } from './utf8-check.ts';

/** Takes the bytes of one value, from its first to its last; a piece of them is valid until the call returns. */
export type Tap = { write(bytes: Uint8Array): void };

export type ScanHandler = {
  /**
   * A value begins. `name` is that of a member, and undefined elsewhere. Where a tap is returned nothing is reported of what is inside
   * the value.
   */
  open(depth: number, name: string | undefined, kind: ValueKind): Tap | undefined;
  /** It has ended. */
  close(depth: number): void;
};

export type ValueKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

/** Deeper texts are refused: no client reads them back. */
export const MAX_DEPTH = 100_000;
/** A longer name is none that anybody looks for. */
const MAX_NAME_BYTES = 1_024;

const [VALUE, FIRST_VALUE, FIRST_NAME, NAME, COLON, AFTER, STRING, ESCAPE, HEX, LITERAL] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
];

const LITERALS: ReadonlyMap<number, Buffer> = new Map(
  ['true', 'false', 'null'].map((text) => [text.charCodeAt(0), Buffer.from(text)]),
);

export class JsonScanner {
  readonly #handler: ScanHandler;
  /** The deepest level whose values are reported. */
  #reported: number;
  readonly #utf8 = new Utf8Check();
  /** Of each level that is open: 1 for an object. */
  #levels = new Uint8Array(64);
  #depth = 0;
  #state: number = VALUE;
  #hexLeft = 0;
  #literal: Buffer = Buffer.alloc(0);
  #literalAt = 0;
  #isName = false;
  #name: number[] | undefined;
  #lastName: string | undefined;
  #tap: Tap | undefined;
  #tapDepth = 0;
  /** Where in the piece the bytes of the tap begin. */
  #tapFrom = 0;
  /** Bytes before the piece. */
  #before = 0;
  #hasEnded = false;

  constructor(handler: ScanHandler, reportedDepth: number) {
    this.#handler = handler;
    this.#reported = reportedDepth;
  }

  /** From now on no value below this level is reported, neither that it begins nor that it ends. */
  reportTo(depth: number): void {
    this.#reported = Math.min(depth, this.#reported);
  }

  /** Throws InvalidJson, and what the handler throws. */
  push(piece: Uint8Array): void {
    if (!this.#utf8.push(piece)) throw this.#invalid('The text is not UTF-8', 0);
    this.#tapFrom = 0;
    let at = 0;
    while (at < piece.length) at = this.#state === STRING ? this.#inString(piece, at) : this.#step(piece, at);
    if (this.#tap !== undefined && this.#tapFrom < piece.length)
      this.#tap.write(piece.subarray(this.#tapFrom));
    this.#before += piece.length;
  }

  /** Throws InvalidJson for a text that ends too early. */
  end(): void {
    this.#tapFrom = 0;
    if (!this.#hasEnded && this.#depth === 0 && isNumberDone(this.#state))
      this.#endValue(new Uint8Array(), 0);
    if (!this.#hasEnded || !this.#utf8.end()) throw this.#invalid('The text ends too early', 0);
  }

  /** Goes to the end of a string as fast as it can: most bytes are in strings. */
  #inString(piece: Uint8Array, from: number): number {
    let at = from;
    for (; at < piece.length; at += 1) {
      const byte = piece[at] as number;
      if (byte !== 0x22 && byte !== 0x5c && byte >= 0x20) continue;
      if (byte < 0x20) throw this.#invalid('A string has a control character', at);
      if (this.#name !== undefined) this.#addName(piece.subarray(from, at));
      if (byte === 0x5c) {
        this.#state = ESCAPE;
        if (this.#name !== undefined) this.#addName(piece.subarray(at, at + 1));
        return at + 1;
      }
      this.#endString(piece, at + 1);
      return at + 1;
    }
    if (this.#name !== undefined) this.#addName(piece.subarray(from, at));
    return at;
  }

  /** Returns the place of the next byte, which is the same one where a number ends before it. */
  #step(piece: Uint8Array, at: number): number {
    const byte = piece[at] as number;
    switch (this.#state) {
      case VALUE:
      case FIRST_VALUE:
        if (!isSpace(byte)) this.#beginValue(piece, at, byte);
        return at + 1;
      case FIRST_NAME:
      case NAME:
        if (byte === 0x22) this.#beginName();
        else if (byte === 0x7d && this.#state === FIRST_NAME) this.#endContainer(piece, at);
        else if (!isSpace(byte)) throw this.#invalid('A name in quotes is expected', at);
        return at + 1;
      case COLON:
        if (byte === 0x3a) this.#state = VALUE;
        else if (!isSpace(byte)) throw this.#invalid('A colon is expected', at);
        return at + 1;
      case AFTER:
        this.#afterValue(piece, at, byte);
        return at + 1;
      case ESCAPE:
      case HEX:
        this.#inEscape(piece, at, byte);
        return at + 1;
      case LITERAL:
        if (byte !== this.#literal[this.#literalAt])
          throw this.#invalid('true, false or null is expected', at);
        this.#literalAt += 1;
        if (this.#literalAt === this.#literal.length) this.#endValue(piece, at + 1);
        return at + 1;
      default:
        return this.#inNumber(piece, at, byte);
    }
  }

  #beginValue(piece: Uint8Array, at: number, byte: number): void {
    if (byte === 0x5d && this.#state === FIRST_VALUE) {
      this.#endContainer(piece, at);
      return;
    }
    const kind = kindOf(byte);
    if (kind === undefined) throw this.#invalid('A value is expected', at);
    this.#report(kind, at);
    if (kind === 'object' || kind === 'array') this.#push(kind, at);
    else if (kind === 'string') this.#state = STRING;
    else if (kind === 'number') this.#state = firstOfNumber(byte);
    else {
      this.#literal = LITERALS.get(byte) ?? Buffer.alloc(0);
      this.#literalAt = 1;
      this.#state = LITERAL;
    }
  }

  #report(kind: ValueKind, at: number): void {
    if (this.#tap !== undefined || this.#depth > this.#reported) return;
    const isMember = this.#depth > 0 && this.#levels[this.#depth - 1] === 1;
    this.#tap = this.#handler.open(this.#depth, isMember ? this.#lastName : undefined, kind);
    this.#tapDepth = this.#depth;
    this.#tapFrom = at;
  }

  #push(kind: 'object' | 'array', at: number): void {
    if (this.#depth === MAX_DEPTH) throw this.#invalid(`A value is deeper than ${MAX_DEPTH} levels`, at);
    if (this.#depth === this.#levels.length) {
      const larger = new Uint8Array(this.#levels.length * 2);
      larger.set(this.#levels);
      this.#levels = larger;
    }
    this.#levels[this.#depth] = kind === 'object' ? 1 : 0;
    this.#depth += 1;
    this.#state = kind === 'object' ? FIRST_NAME : FIRST_VALUE;
  }

  #endContainer(piece: Uint8Array, at: number): void {
    this.#depth -= 1;
    this.#endValue(piece, at + 1);
  }

  #endValue(piece: Uint8Array, end: number): void {
    this.#state = AFTER;
    this.#hasEnded = this.#depth === 0;
    if (this.#tap === undefined) {
      if (this.#depth <= this.#reported) this.#handler.close(this.#depth);
    } else if (this.#depth === this.#tapDepth) {
      if (end > this.#tapFrom) this.#tap.write(piece.subarray(this.#tapFrom, end));
      this.#tap = undefined;
      this.#handler.close(this.#depth);
    }
  }

  #afterValue(piece: Uint8Array, at: number, byte: number): void {
    if (isSpace(byte)) return;
    if (this.#hasEnded) throw this.#invalid('There is more after the value', at);
    const isObject = this.#levels[this.#depth - 1] === 1;
    if (byte === 0x2c) this.#state = isObject ? NAME : VALUE;
    else if (byte === (isObject ? 0x7d : 0x5d)) this.#endContainer(piece, at);
    else throw this.#invalid('A comma or the end of what it is in is expected', at);
  }

  #beginName(): void {
    this.#isName = true;
    this.#name = this.#tap === undefined && this.#depth <= this.#reported ? [] : undefined;
    this.#state = STRING;
  }

  #addName(bytes: Uint8Array): void {
    if (this.#name === undefined || this.#name.length > MAX_NAME_BYTES) return;
    this.#name.push(...bytes.subarray(0, MAX_NAME_BYTES + 1));
  }

  #endString(piece: Uint8Array, end: number): void {
    if (!this.#isName) {
      this.#endValue(piece, end);
      return;
    }
    this.#isName = false;
    this.#lastName = this.#name === undefined ? undefined : toName(this.#name);
    this.#name = undefined;
    this.#state = COLON;
  }

  #inEscape(piece: Uint8Array, at: number, byte: number): void {
    if (this.#name !== undefined) this.#addName(piece.subarray(at, at + 1));
    if (this.#state === HEX) {
      if (!isHex(byte)) throw this.#invalid('An escape is not valid', at);
      this.#hexLeft -= 1;
      if (this.#hexLeft === 0) this.#state = STRING;
    } else if (byte === 0x75) {
      this.#hexLeft = 4;
      this.#state = HEX;
    } else if (ESCAPED.has(byte)) this.#state = STRING;
    else throw this.#invalid('An escape is not valid', at);
  }

  #inNumber(piece: Uint8Array, from: number, first: number): number {
    let [at, byte] = [from, first];
    while (isDigit(byte) && mayRepeatDigits(this.#state)) {
      at += 1;
      if (at === piece.length) return at;
      byte = piece[at] as number;
    }
    const next = nextOfNumber(this.#state, byte);
    if (next !== undefined) {
      this.#state = next;
      return at + 1;
    }
    if (!isNumberDone(this.#state)) throw this.#invalid('A number is not valid', at);
    this.#endValue(piece, at);
    return at;
  }

  #invalid(message: string, at: number): InvalidJson {
    return new InvalidJson(message, this.#before + at);
  }
}

const ESCAPED: ReadonlySet<number> = new Set(Buffer.from('"\\/bfnrt'));

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isHex(byte: number): boolean {
  return isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

function kindOf(byte: number): ValueKind | undefined {
  if (byte === 0x7b) return 'object';
  if (byte === 0x5b) return 'array';
  if (byte === 0x22) return 'string';
  if (byte === 0x2d || isDigit(byte)) return 'number';
  if (byte === 0x6e) return 'null';
  return LITERALS.has(byte) ? 'boolean' : undefined;
}

/** Undefined for one that is too long. */
function toName(bytes: readonly number[]): string | undefined {
  if (bytes.length > MAX_NAME_BYTES) return undefined;
  return JSON.parse(`"${Buffer.from(bytes).toString('utf8')}"`) as string;
}
