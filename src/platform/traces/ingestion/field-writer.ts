// One payload of a run on its way to the store: checked, compressed as it arrives, and read as far as columns are derived from it.
import { constants, zstdCompressSync } from 'node:zlib';
import { isUtf8 } from 'node:buffer';
import type { Payload } from '../runs/payload.ts';
import { deriveValues } from '../runs/run-derivation.ts';
import type { RunField, RunValues } from '../runs/run-part.ts';
import { InvalidJson } from './json/invalid-json.ts';
import type { Tap } from './json/json-scanner.ts';
import { LargeValue } from './large-value.ts';
import type { HeldValues, RequestMemory } from './request-memory.ts';
import { positionOfSyntaxError } from '../../../base/json/json-document.ts';

/** The fields whose JSON is kept as it was sent. */
export const PAYLOAD_FIELDS = ['inputs', 'outputs', 'events', 'extra', 'error', 'serialized'] as const;
export type PayloadField = (typeof PAYLOAD_FIELDS)[number] & RunField;

/** Up to here JSON is parsed at once, which takes less than a millisecond. */
const SMALL_BYTES = 64 * 1024;
/** Shorter texts are stored as they are: the database keeps them in the row. */
const PLAIN_BYTES = 2 * 1024;

const SMALL_PARAMS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export class FieldWriter implements Tap {
  readonly #field: PayloadField;
  readonly #memory: RequestMemory;
  #pieces: Uint8Array[] = [];
  #size = 0;
  #large: LargeValue | undefined;

  constructor(field: PayloadField, memory: RequestMemory) {
    this.#field = field;
    this.#memory = memory;
  }

  /** Throws InvalidJson. The bytes are copied. */
  write(bytes: Uint8Array): void {
    this.#size += bytes.length;
    if (this.#large !== undefined && this.#pieces.length === 0) return this.#large.push(bytes);
    this.#pieces.push(new Uint8Array(bytes));
    if (this.#size > SMALL_BYTES)
      this.#large ??= new LargeValue(this.#field === 'serialized' ? 'extra' : this.#field, this.#memory);
  }

  /** To be awaited before the next bytes come. Throws InvalidJson, and a DomainError where the disk is full. */
  async drain(): Promise<void> {
    if (this.#large === undefined) return;
    // What was held until the value was too large for one step: the small values in it may take 50 ms.
    for (const piece of this.#pieces.splice(0)) {
      this.#large.push(piece);
      await this.#memory.pace();
    }
    await this.#large.store();
  }

  /** Undefined for null. Throws as `drain`. */
  async finish(): Promise<HeldValues | undefined> {
    if (this.#large !== undefined) {
      await this.drain();
      const { value, payload } = await this.#large.end();
      return this.#memory.hold(toValues(this.#field, value, payload));
    }
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    const value = parseSmall(bytes);
    return value === null
      ? undefined
      : this.#memory.hold(toValues(this.#field, value, await this.#keep(bytes)));
  }

  async #keep(bytes: Buffer): Promise<Payload> {
    const stored = bytes.length < PLAIN_BYTES ? bytes : zstdCompressSync(bytes, SMALL_PARAMS);
    if (this.#memory.take(stored.length)) return stored;
    const from = this.#memory.spooledBytes;
    await this.#memory.spool([stored]);
    return this.#memory.spooledFrom(from);
  }
}

function toValues(field: PayloadField, value: unknown, payload: Payload): RunValues {
  const derived = field === 'serialized' ? {} : deriveValues(field, value);
  return { ...derived, [`${field}_json`]: payload };
}

function parseSmall(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new InvalidJson('The text is not UTF-8', 0);
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch (error) {
    throw new InvalidJson('The text is not JSON', positionOfSyntaxError(error) ?? bytes.length);
  }
}
