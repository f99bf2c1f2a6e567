// One payload of a run on its way to the store: checked, compressed as it arrives, and read as far as columns are derived from it.
import { type ZstdCompress, constants, createZstdCompress, zstdCompressSync } from 'node:zlib';
import { isUtf8 } from 'node:buffer';
import type { Payload } from '../runs/payload.ts';
import { deriveValues } from '../runs/run-derivation.ts';
import type { RunField, RunValues } from '../runs/run-part.ts';
import { InvalidJson } from './invalid-json.ts';
import type { Tap } from './json-scanner.ts';
import type { HeldValues, RequestMemory } from './request-memory.ts';
import { ValueSketch } from './value-sketch.ts';
import { positionOfSyntaxError } from '../../../base/json/json-document.ts';

/** The fields whose JSON is kept as it was sent. */
export const PAYLOAD_FIELDS = ['inputs', 'outputs', 'events', 'extra', 'error', 'serialized'] as const;
export type PayloadField = (typeof PAYLOAD_FIELDS)[number] & RunField;

/** Up to here JSON is parsed at once, which takes less than a millisecond. */
const SMALL_BYTES = 64 * 1024;
/** Shorter texts are stored as they are: the database keeps them in the row. */
const PLAIN_BYTES = 2 * 1024;

const SMALL_PARAMS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** With a window of 256 KiB a stream takes less than a mebibyte, whatever it compresses. */
const STREAM_PARAMS = {
  params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_windowLog]: 18 },
};

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
    this.#pieces.push(Uint8Array.from(bytes));
    if (this.#size > SMALL_BYTES) this.#large ??= new LargeValue(this.#field, this.#memory);
  }

  /** To be awaited before the next bytes come. Throws InvalidJson, or a DomainError where the disk is full. */
  async drain(): Promise<void> {
    if (this.#large === undefined) return;
    const pieces = this.#pieces;
    this.#pieces = [];
    for (const piece of pieces) {
      await this.#large.push(piece);
      await this.#memory.pace();
    }
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

  /** After an error. */
  discard(): void {
    this.#large?.discard();
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

/** It is never whole in memory. */
class LargeValue {
  readonly #sketch: ValueSketch;
  readonly #memory: RequestMemory;
  readonly #compressor: ZstdCompress = createZstdCompress(STREAM_PARAMS);
  #compressed: Buffer[] = [];
  #held = 0;
  /** Where it begins in the spool, once it is there. */
  #from: number | undefined;

  constructor(field: PayloadField, memory: RequestMemory) {
    this.#sketch = new ValueSketch(field === 'serialized' ? 'extra' : field);
    this.#memory = memory;
    this.#compressor.on('data', (piece: Buffer) => void this.#compressed.push(piece));
    // Who waits for a write gets it.
    this.#compressor.on('error', () => undefined);
  }

  async push(piece: Uint8Array): Promise<void> {
    this.#sketch.push(piece);
    await new Promise<void>((resolve, reject) => {
      this.#compressor.write(piece, (error) => (error ? reject(error) : resolve()));
    });
    await this.#store();
  }

  async end(): Promise<{ readonly value: unknown; readonly payload: Payload }> {
    const value = this.#sketch.end();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#compressor.on('end', resolve).on('error', reject);
    this.#compressor.end();
    await promise;
    await this.#store();
    const payload =
      this.#from === undefined ? Buffer.concat(this.#compressed) : this.#memory.spooledFrom(this.#from);
    return { value, payload };
  }

  discard(): void {
    this.#compressor.destroy();
  }

  /** Held as long as the memory allows it, and all in the spool from then on. */
  async #store(): Promise<void> {
    if (this.#compressed.length === 0) return;
    const bytes = this.#compressed.reduce((sum, { length }) => sum + length, 0);
    if (this.#from === undefined && this.#memory.take(bytes - this.#held)) {
      this.#held = bytes;
      return;
    }
    this.#from ??= this.#memory.spooledBytes;
    await this.#memory.spool(this.#compressed);
    this.#compressed = [];
    this.#held = 0;
  }
}
