// How much of a request is held in memory until it is written. What is beyond that is spooled.
import { BodyError } from '../../../base/http/body-error.ts';
import { createPace, type Pace } from '../../../base/steps.ts';
import type { Payload } from '../runs/payload.ts';
import type { RunValues, SpooledValues } from '../runs/run-part.ts';
import type { BodyTurn } from './turns/body-turn.ts';
import { FRAME_BYTES } from './frame-compressor.ts';
import { Spool } from './spool.ts';

/** Of payloads and of what is derived from them. */
export const HELD_BYTES = 2 * 1024 * 1024;

/** For a frame of text, and the slice behind it. */
const BUFFER_BYTES = FRAME_BYTES + 16 * 1024;

/** Of everything else: names, tags, orders. Those of a thousand runs are some hundred kilobytes. */
const FACTS_BYTES = 8 * 1024 * 1024;

/** The columns of one field: at once, or from a file when they are written. */
export type HeldValues = { readonly values: RunValues } | { readonly spooled: SpooledValues };

export class RequestMemory {
  readonly #spool: Spool;
  #left: number;
  #factsLeft = FACTS_BYTES;
  readonly #buffers: Buffer[] = [];
  /** Between two steps of reading the request. */
  readonly pace: Pace = createPace();

  /** That of the request among large ones. */
  readonly turn: BodyTurn;

  constructor(directory: string, turn: BodyTurn, heldBytes: number = HELD_BYTES) {
    this.turn = turn;
    this.#spool = new Spool(directory);
    this.#left = heldBytes;
  }

  /** Whether so many more bytes may be held; they count from now on. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  /** Counts bytes that have to be held. Throws a BodyError where they are too many. */
  takeFacts(bytes: number): void {
    this.#factsLeft -= bytes;
    if (this.#factsLeft < 0) throw new BodyError('too_large', TOO_MANY_FACTS);
  }

  /** A buffer for a payload that arrives. With a new one for each piece of it, most of the memory would be garbage. */
  takeBuffer(): Buffer {
    return this.#buffers.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
  }

  /** It is used no more. */
  giveBuffer(buffer: Buffer): void {
    this.#buffers.push(buffer);
  }

  /** Where the next bytes will be. */
  get spooledBytes(): number {
    return this.#spool.size;
  }

  async spool(pieces: readonly Uint8Array[]): Promise<void> {
    await this.#spool.append(pieces);
  }

  spooledFrom(from: number): Payload {
    return this.#spool.slice(from, this.#spool.size - from);
  }

  /** Holds the columns of a field whose payload has been taken care of. */
  async hold(values: RunValues): Promise<HeldValues> {
    const { payloads, derived } = split(values);
    if (this.take(sizeOf(derived))) return { values };
    const text = Buffer.from(JSON.stringify(derived));
    const from = this.#spool.size;
    await this.#spool.append([text]);
    const slice = this.#spool.slice(from, text.length);
    const read = async (): Promise<RunValues> => {
      const pieces = await Array.fromAsync(slice.read(), (piece) => Buffer.from(piece));
      return { ...(JSON.parse(Buffer.concat(pieces).toString()) as RunValues), ...payloads };
    };
    return { spooled: { read } };
  }

  /** Bytes of the body so far, without its coding. */
  get contentBytes(): number {
    return this.turn.bytes;
  }

  close(): void {
    this.turn.end();
    this.#spool.close();
  }
}

const TOO_MANY_FACTS = `The runs of a request have more than ${FACTS_BYTES} bytes besides inputs, outputs and other payloads`;

function split(values: RunValues): {
  readonly payloads: RunValues;
  readonly derived: Readonly<Record<string, unknown>>;
} {
  const entries = Object.entries(values);
  return {
    payloads: Object.fromEntries(entries.filter(([name]) => name.endsWith('_json'))),
    derived: Object.fromEntries(entries.filter(([name]) => !name.endsWith('_json'))),
  };
}

/** Of the texts, and what an object takes besides. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 16;
  if (typeof value !== 'object' || value === null) return 16;
  let size = 64;
  for (const [name, member] of Object.entries(value)) size += name.length + 16 + sizeOf(member);
  return size;
}
