// A payload that is never whole in memory: each piece of it is read for the columns that are derived, and stored as a zstd frame.
import type { Payload } from '../runs/payload.ts';
import type { DerivedField } from '../runs/run-derivation.ts';
import { compressFrame, FRAME_BYTES } from './frame-compressor.ts';
import type { RequestMemory } from './request-memory.ts';
import { ValueSketch } from './value-sketch.ts';

export class LargeValue {
  readonly #sketch: ValueSketch;
  readonly #memory: RequestMemory;
  /** The text of the next frame, and how much of it is there. */
  #text: Buffer;
  #filled = 0;
  readonly #frames: Buffer[] = [];
  /** Where it begins in the spool, once it is there. */
  #from: number | undefined;

  constructor(field: DerivedField, memory: RequestMemory) {
    this.#sketch = new ValueSketch(field);
    this.#memory = memory;
    this.#text = memory.takeBuffer();
  }

  /** Throws InvalidJson. The bytes are copied. */
  push(bytes: Uint8Array): void {
    this.#sketch.push(bytes);
    if (this.#filled + bytes.length > this.#text.length)
      this.#text = Buffer.concat([this.#text], this.#filled + 2 * bytes.length);
    this.#text.set(bytes, this.#filled);
    this.#filled += bytes.length;
  }

  /** To be awaited before the next bytes come. Throws a DomainError where the disk is full. */
  async store(): Promise<void> {
    if (this.#filled >= FRAME_BYTES) await this.#storeFrame();
  }

  /** Throws InvalidJson for a text that ends too early, and as `store`. */
  async end(): Promise<{ readonly value: unknown; readonly payload: Payload }> {
    const value = this.#sketch.end();
    if (this.#filled > 0) await this.#storeFrame();
    this.#memory.giveBuffer(this.#text);
    const payload =
      this.#from === undefined ? Buffer.concat(this.#frames) : this.#memory.spooledFrom(this.#from);
    return { value, payload };
  }

  /** Held as long as the memory allows it, and all in the spool from then on. */
  async #storeFrame(): Promise<void> {
    const pieces = await compressFrame(this.#text.subarray(0, this.#filled));
    this.#filled = 0;
    if (this.#from === undefined) {
      const frame = Buffer.concat(pieces);
      this.#frames.push(frame);
      if (this.#memory.take(frame.length)) return;
      this.#from = this.#memory.spooledBytes;
      return this.#memory.spool(this.#frames.splice(0));
    }
    await this.#memory.spool(pieces);
  }
}
