// Masks secrets in the body of an HTTP/1.1 response. It gets the data without chunk framing and writes chunks of its own:
// the bytes that the mask holds back may end in the middle of a chunk.
import type { Framing } from '../../http1/framing.ts';
import { BodyMask, type Emit } from '../mask/body-mask.ts';
import type { Mask } from '../mask/mask.ts';

const CRLF = Buffer.from('\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

export class ScrubbedBody {
  readonly #mask: BodyMask;
  readonly #send: Emit;
  readonly #isChunked: boolean;
  readonly #emit: Emit;

  constructor(mask: Mask, framing: Framing, send: Emit) {
    this.#mask = new BodyMask(mask);
    this.#send = send;
    this.#isChunked = framing.kind === 'chunked';
    this.#emit = this.#isChunked ? (piece) => this.#sendChunk(piece) : send;
  }

  /** How many ranges were masked. */
  get ranges(): number {
    return this.#mask.ranges;
  }

  push(piece: Buffer): void {
    this.#mask.push(piece, this.#emit);
  }

  /** The body is complete: sends what the mask held back. */
  end(): void {
    this.#mask.end(this.#emit);
    if (this.#isChunked) this.#send(LAST_CHUNK);
  }

  #sendChunk(piece: Buffer): void {
    this.#send(Buffer.from(`${piece.length.toString(16)}\r\n`));
    this.#send(piece);
    this.#send(CRLF);
  }
}
