// Where the frames of a WebSocket end (RFC 6455 §5.2): a frame of ours may be sent between two of them alone. Payloads are not read.

const MAX_HEAD = 14;

export class FrameBoundary {
  readonly #head: Buffer = Buffer.alloc(MAX_HEAD);
  #headLength = 0;
  #payloadLeft = 0;

  /** All frames that have begun have ended. */
  get isReached(): boolean {
    return this.#headLength === 0 && this.#payloadLeft === 0;
  }

  /** Takes the next bytes of the stream, or with `stops` those up to the end of a frame. Returns how many. */
  push(chunk: Buffer, stops: boolean): number {
    let at = 0;
    const isAtEnd = (): boolean => stops && this.isReached;
    while (at < chunk.length && !isAtEnd()) {
      const length = Math.min(this.#payloadLeft, chunk.length - at);
      this.#payloadLeft -= length;
      at += length;
      if (length === 0) this.#pushHeadByte(chunk[at++] as number);
    }
    return at;
  }

  #pushHeadByte(byte: number): void {
    this.#head[this.#headLength] = byte;
    this.#headLength += 1;
    this.#readHead();
  }

  #readHead(): void {
    const head = this.#head;
    if (this.#headLength < 2) return;
    const second = head[1] as number;
    const short = second & 0x7f;
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
    const maskBytes = (second & 0x80) === 0 ? 0 : 4;
    if (this.#headLength < 2 + lengthBytes + maskBytes) return;
    this.#headLength = 0;
    if (lengthBytes === 0) this.#payloadLeft = short;
    // One above 2^53 never ends, like any that is long enough.
    else this.#payloadLeft = lengthBytes === 2 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
  }
}
