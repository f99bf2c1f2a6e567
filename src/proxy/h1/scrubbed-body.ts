// The body of an HTTP/1.1 answer, with secrets masked, on its way to the client. It gets the data alone: what is held back
// may end in the middle of a chunk, so a body in chunks is cut into new ones.
import type { Framing } from '../../http1/framing.ts';
import { BodyMask, type Emit } from '../mask/body-mask.ts';
import type { Mask } from '../mask/mask.ts';
import type { ResponseOut } from './response-out.ts';

const CRLF: Buffer = Buffer.from('\r\n');
const LAST_CHUNK: Buffer = Buffer.from('0\r\n\r\n');

export class ScrubbedBody {
  readonly #mask: BodyMask;
  readonly #out: ResponseOut;
  readonly #isChunked: boolean;
  readonly #emit: Emit;

  constructor(mask: Mask, framing: Framing, out: ResponseOut) {
    this.#mask = new BodyMask(mask);
    this.#out = out;
    this.#isChunked = framing.kind === 'chunked';
    this.#emit = this.#isChunked ? (piece) => this.#addChunk(piece) : (piece) => out.add(piece);
  }

  /** Places that were masked. */
  get places(): number {
    return this.#mask.ranges;
  }

  push(piece: Buffer): void {
    this.#mask.push(piece, this.#emit);
  }

  /** The body is whole. Without it what is held never leaves. */
  end(): void {
    this.#mask.end(this.#emit);
    if (this.#isChunked) this.#out.add(LAST_CHUNK);
  }

  #addChunk(piece: Buffer): void {
    this.#out.add(Buffer.from(`${piece.length.toString(16)}\r\n`));
    this.#out.add(piece);
    this.#out.add(CRLF);
  }
}
