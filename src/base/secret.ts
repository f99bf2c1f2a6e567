// A value that must never be printed. Only reveal() returns it, and only eight files of the product may call that, which a
// test checks: the gate that writes the header, the callback client, the sealed state, the transfer from the thread that
// parses documents, the sender of records, and of the platform the vault, the documents that it seals and the client of the box host.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { inspect } from 'node:util';
import { credentialParts } from './credential-parts.ts';

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

  /** The parts of the value that a host may echo by themselves, except those inside the texts that are no secret. */
  credentials(open: readonly string[] = []): readonly Secret[] {
    // As one text: a template may have a thousand of them, and its value a thousand parts. No part has a lone surrogate.
    const all = open.join('\ud800');
    return credentialParts(this.#value)
      .filter((part) => !all.includes(part))
      .map((part) => new Secret(part));
  }

  /** Each value once. */
  static distinct(secrets: readonly Secret[]): readonly Secret[] {
    const byValue = new Map<string, Secret>();
    for (const secret of secrets) if (!byValue.has(secret.#value)) byValue.set(secret.#value, secret);
    return [...byValue.values()];
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

function digest(value: string): Buffer {
  return createHash('sha256').update(processKey).update(value, 'utf8').digest();
}
