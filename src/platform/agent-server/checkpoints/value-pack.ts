// Values on their way into one statement: their bytes one after another, because a parameter for each of them would need a statement
// for each number of values, and text of bytes is twice as long. Pure.
import type { Typed } from '../../../agent-worker/protocol/messages.ts';

/** Where a value is in the bytes, as SQL counts: from 1. */
export type Packed = { readonly type: string; readonly start: number; readonly length: number };

type Unpacked = {
  readonly type: string;
  readonly text?: string | undefined;
  readonly base64?: string | undefined;
};

export class ValuePack {
  readonly #pieces: Buffer[] = [];
  #length = 0;

  add({ type, text, base64 }: Unpacked): Packed {
    const bytes = text === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(text);
    const start = this.#length + 1;
    this.#pieces.push(bytes);
    this.#length += bytes.length;
    return { type, start, length: bytes.length };
  }

  get length(): number {
    return this.#length;
  }

  toBytes(): Buffer {
    return Buffer.concat(this.#pieces, this.#length);
  }
}

/** As it is sent to a worker: text where the serializer wrote JSON. */
export function toTyped(type: string, bytes: Buffer): Typed {
  if (type !== 'json') return { type, base64: bytes.toString('base64') };
  return { type, text: bytes.toString() };
}
