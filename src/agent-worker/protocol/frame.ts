// Frames between an agent server and its worker: 4 bytes of length, big-endian, and so many bytes of JSON. Pure. The length is
// checked before anything is kept, and memory grows with what has arrived, never with what was announced.
import { MAX_FRAME_BYTES } from './messages.ts';

/** The other side broke the protocol: the channel ends. The message never contains what was received. */
export class ProtocolError extends Error {
  override readonly name: string = 'ProtocolError';
}

/** What is to be sent does not fit in a frame: the call fails, and the channel goes on. */
export class FrameTooLarge extends Error {
  override readonly name: string = 'FrameTooLarge';

  constructor() {
    super(`a message is larger than ${MAX_FRAME_BYTES / 1024 / 1024} MiB`);
  }
}

const HEAD_BYTES = 4;
/** The first of a payload that arrives in pieces; then it doubles. */
const FIRST_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/** Throws FrameTooLarge. */
export function encodeFrame(message: object, maxBytes: number = MAX_FRAME_BYTES): Buffer {
  const text = JSON.stringify(message);
  const length = Buffer.byteLength(text);
  if (length > maxBytes) throw new FrameTooLarge();
  const frame = Buffer.allocUnsafe(HEAD_BYTES + length);
  frame.writeUInt32BE(length);
  frame.write(text, HEAD_BYTES);
  return frame;
}

/** Finds the payloads in a stream that arrives in any pieces. After an error it must not be used again. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #head: Buffer = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** Of a payload that did not arrive in one piece. */
  #payload: Buffer = NOTHING;
  #payloadBytes = 0;

  constructor(maxBytes: number = MAX_FRAME_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** A payload may be a view of `piece`. Throws a ProtocolError. */
  *read(piece: Buffer): Generator<Buffer, void, undefined> {
    let rest = piece;
    while (rest.length > 0) {
      if (this.#headBytes < HEAD_BYTES) {
        rest = this.#readHead(rest);
        continue;
      }
      const length = this.#head.readUInt32BE();
      const missing = length - this.#payloadBytes;
      const part = rest.subarray(0, missing);
      rest = rest.subarray(part.length);
      const isWhole = part.length === missing;
      if (this.#payloadBytes > 0 || !isWhole) this.#keep(part, length);
      if (!isWhole) return;
      const payload = this.#payloadBytes > 0 ? this.#payload.subarray(0, length) : part;
      this.#headBytes = 0;
      this.#payload = NOTHING;
      this.#payloadBytes = 0;
      yield payload;
    }
  }

  #readHead(rest: Buffer): Buffer {
    const taken = rest.copy(this.#head, this.#headBytes, 0, HEAD_BYTES - this.#headBytes);
    this.#headBytes += taken;
    if (this.#headBytes === HEAD_BYTES) {
      const length = this.#head.readUInt32BE();
      if (length === 0) throw new ProtocolError('an empty frame');
      if (length > this.#maxBytes) throw new ProtocolError('a frame of a length out of bounds');
    }
    return rest.subarray(taken);
  }

  #keep(part: Buffer, length: number): void {
    const needed = this.#payloadBytes + part.length;
    if (needed > this.#payload.length) {
      const capacity = Math.min(length, Math.max(needed, 2 * this.#payload.length, FIRST_BYTES));
      const larger = Buffer.allocUnsafe(capacity);
      this.#payload.copy(larger, 0, 0, this.#payloadBytes);
      this.#payload = larger;
    }
    part.copy(this.#payload, this.#payloadBytes);
    this.#payloadBytes = needed;
  }
}
