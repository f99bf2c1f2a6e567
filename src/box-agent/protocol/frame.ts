// The frames between a box agent and the box host: length, type, call id, payload. Pure. Each side accepts only the types that
// the other may send, and each type only up to its own length, which is checked before a byte of the payload is kept.

/** Of the payload of one frame, by the side that sends it; a type that is absent is not accepted. */
export type FrameLimits = Readonly<Partial<Record<FrameType, readonly [min: number, max: number]>>>;

export type Frame = { readonly type: FrameType; readonly id: number; readonly payload: Buffer };

/** The numbers are part of the protocol. */
const NUMBERS = {
  /** Begins a call: its parameters as JSON. */
  call: 1,
  /** Bytes of a call: stdin or stdout, a file, a connection, results of a search. */
  data: 2,
  /** Bytes of stderr. */
  error_data: 3,
  /** No more bytes come from this side. */
  end: 4,
  /** How many more bytes the other side may send, as 4 bytes. */
  credit: 5,
  /** The caller has lost interest; the agent ends the call. */
  cancel: 6,
  /** SIGKILL to the process group of a command. */
  kill: 7,
  /** What is known before the bytes come, as JSON. */
  head: 8,
  /** The call has succeeded, as JSON; the last frame of a call. */
  result: 9,
  /** The call has failed, as JSON; the last frame of a call. */
  failure: 10,
  /** Of the channel: asks for a pong. */
  ping: 11,
  /** One byte: 1 while a process of the box other than the agent lives. */
  pong: 12,
} as const;

export type FrameType = keyof typeof NUMBERS;

const TYPES: ReadonlyMap<number, FrameType> = new Map(
  Object.entries(NUMBERS).map(([type, number]) => [number, type as FrameType]),
);

/** Length, type and call id. */
const HEAD_BYTES = 9;
/** What the length counts besides the payload. */
const COUNTED_HEAD_BYTES = 5;

export const MAX_DATA_BYTES: number = 64 * 1024;
export const MAX_CALL_BYTES: number = 1024 * 1024 - COUNTED_HEAD_BYTES;
/** Of a head, a result or a failure: they hold a few numbers and short texts. */
const MAX_MESSAGE_BYTES = 4 * 1024;
/** Call ids are odd, so that the other half stays free for calls by the agent. */
export const MAX_CALL_ID: number = 2 ** 31 - 1;

const DATA = [1, MAX_DATA_BYTES] as const;
const MESSAGE = [2, MAX_MESSAGE_BYTES] as const;

export const FROM_HOST: FrameLimits = {
  call: [2, MAX_CALL_BYTES],
  data: DATA,
  end: [0, 0],
  credit: [4, 4],
  cancel: [0, 0],
  kill: [0, 0],
  ping: [0, 0],
};

export const FROM_AGENT: FrameLimits = {
  data: DATA,
  error_data: DATA,
  end: [0, 0],
  credit: [4, 4],
  head: MESSAGE,
  result: MESSAGE,
  failure: MESSAGE,
  pong: [1, 1],
};

/** The other side broke the protocol: the channel ends. The message never contains what was received. */
export class ProtocolError extends Error {
  override readonly name: string = 'ProtocolError';
}

/** The bytes before the payload. */
export function encodeFrameHead(type: FrameType, id: number, payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32BE(COUNTED_HEAD_BYTES + payloadBytes, 0);
  head.writeUInt8(NUMBERS[type], 4);
  head.writeUInt32BE(id, 5);
  return head;
}

export function encodeCredit(bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(bytes);
  return payload;
}

/** Throws a ProtocolError. */
export function decodeCredit(payload: Buffer): number {
  const bytes = payload.readUInt32BE();
  if (bytes === 0) throw new ProtocolError('a credit of nothing');
  return bytes;
}

/** Finds the frames in a stream that arrives in any pieces. After an error it must not be used again. */
export class FrameReader {
  readonly #limits: FrameLimits;
  readonly #head: Buffer = Buffer.allocUnsafe(HEAD_BYTES);
  #headBytes = 0;
  #frame: { readonly type: FrameType; readonly id: number; readonly length: number } | undefined;
  /** Of a payload that did not arrive in one piece. */
  #payload: Buffer | undefined;
  #payloadBytes = 0;

  constructor(limits: FrameLimits) {
    this.#limits = limits;
  }

  /** A payload may be a view of `piece`. Throws a ProtocolError. */
  *read(piece: Buffer): Generator<Frame, void, undefined> {
    let at = 0;
    while (at < piece.length || this.#frame?.length === 0) {
      if (this.#frame === undefined) {
        const bytes = Math.min(HEAD_BYTES - this.#headBytes, piece.length - at);
        piece.copy(this.#head, this.#headBytes, at, at + bytes);
        this.#headBytes += bytes;
        at += bytes;
        if (this.#headBytes === HEAD_BYTES) this.#frame = this.#readHead();
        continue;
      }
      const { type, id, length } = this.#frame;
      const payload = this.#takePayload(piece.subarray(at), length);
      at += Math.min(piece.length - at, payload.taken);
      if (payload.whole === undefined) return;
      this.#frame = undefined;
      this.#headBytes = 0;
      yield { type, id, payload: payload.whole };
    }
  }

  #readHead() {
    const type = TYPES.get(this.#head.readUInt8(4));
    const [min, max] = (type === undefined ? undefined : this.#limits[type]) ?? [];
    if (type === undefined || min === undefined || max === undefined)
      throw new ProtocolError('a frame of a type that this side does not accept');
    const length = this.#head.readUInt32BE(0) - COUNTED_HEAD_BYTES;
    if (length < min || length > max) throw new ProtocolError(`a frame ${type} of a length out of bounds`);
    return { type, id: this.#head.readUInt32BE(5), length };
  }

  #takePayload(rest: Buffer, length: number): { readonly taken: number; readonly whole?: Buffer } {
    if (this.#payload === undefined && rest.length >= length)
      return { taken: length, whole: rest.subarray(0, length) };
    this.#payload ??= Buffer.allocUnsafe(length);
    const taken = Math.min(length - this.#payloadBytes, rest.length);
    rest.copy(this.#payload, this.#payloadBytes, 0, taken);
    this.#payloadBytes += taken;
    if (this.#payloadBytes < length) return { taken };
    const whole = this.#payload;
    this.#payload = undefined;
    this.#payloadBytes = 0;
    return { taken, whole };
  }
}
