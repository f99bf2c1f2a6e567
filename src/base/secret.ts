// A value that must never be printed. Only reveal() returns it, and only four files of the product may call that, which a
// test checks: the gate that writes the header, the callback client, the sealed state, and the sender of records.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';

const PRINTED = '[secret]';
// Keyed, so that a fingerprint in a heap dump or a cache key cannot be tried against guesses.
const processKey: Buffer = randomBytes(32);

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself, for the files that may read it. */
  reveal(): string {
    return this.#value;
  }

  /** Length of the value in UTF-16 units. */
  get length(): number {
    return this.#value.length;
  }

  /** Joins literal text and secrets into one new secret. */
  static join(parts: readonly (string | Secret)[]): Secret {
    return new Secret(parts.map((part) => (typeof part === 'string' ? part : part.#value)).join(''));
  }

  /**
   * The credentials inside an authorization value, which a host may echo without their scheme: what follows
   * `Bearer `, `Token ` and the like, and for `Basic` the user's password too (RFC 9110 §11.4, RFC 7617).
   */
  credentials(): readonly Secret[] {
    const [, scheme = '', rest = ''] = /^([A-Za-z][A-Za-z0-9-]*) +(\S.*)$/.exec(this.#value) ?? [];
    if (rest === '') return [];
    const password = scheme.toLowerCase() === 'basic' ? passwordOf(rest) : '';
    return [rest, password].filter((text) => text !== '').map((text) => new Secret(text));
  }

  /** Whether the value passes a test, such as "is a valid field value". */
  satisfies(test: (value: string) => boolean): boolean {
    return test(this.#value);
  }

  /** Constant-time comparison, length included: both sides are hashed first. */
  equals(candidate: string): boolean {
    return timingSafeEqual(digest(this.#value), digest(candidate));
  }

  /** Identifies the value inside this process only; safe as part of a cache key. */
  fingerprint(): string {
    return digest(this.#value).toString('base64url');
  }

  toString(): string {
    return PRINTED;
  }

  toJSON(): string {
    return PRINTED;
  }

  [Symbol.toPrimitive](): string {
    return PRINTED;
  }
}

// console.log and pino's formatters use this symbol before toString.
Object.defineProperty(Secret.prototype, inspect.custom, { value: () => PRINTED });

function passwordOf(encoded: string): string {
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  return pair.slice(pair.indexOf(':') + 1);
}

function digest(value: string): Buffer {
  return createHash('sha256').update(processKey).update(value, 'utf8').digest();
}
