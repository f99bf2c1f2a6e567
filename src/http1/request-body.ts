// A request body: delimited by its framing, buffered until the upstream is ready, then forwarded piece by piece. It copies
// no data.
import { ChunkWalker } from './chunk-walker.ts';
import type { HeadError } from './head-error.ts';
import type { Framing } from './framing.ts';

export class RequestBody {
  /** Bytes that wait for the upstream. */
  bufferedBytes = 0;
  /** Bytes forwarded or buffered. */
  bytes = 0;
  #remaining: number;
  readonly #walker: ChunkWalker | undefined;
  #buffered: Buffer[] | undefined;
  #sink: ((piece: Buffer) => void) | undefined;

  constructor(framing: Framing) {
    this.#remaining = framing.kind === 'length' ? framing.length : 0;
    this.#walker = framing.kind === 'chunked' ? new ChunkWalker('request') : undefined;
  }

  get isComplete(): boolean {
    return this.#walker ? this.#walker.done : this.#remaining === 0;
  }

  get error(): HeadError | undefined {
    return this.#walker?.error;
  }

  /** All of it was forwarded. After a part of it, the upstream would read what comes next as the rest. */
  get isForwarded(): boolean {
    return this.isComplete && this.bufferedBytes === 0;
  }

  /** Takes the part of `chunk` that belongs to the body and returns its length. */
  push(chunk: Buffer): number {
    if (this.isComplete) return 0;
    if (this.#walker) return this.#walker.walk(chunk, 0, (piece) => this.#take(piece));
    const taken = Math.min(this.#remaining, chunk.length);
    this.#remaining -= taken;
    this.#take(taken === chunk.length ? chunk : chunk.subarray(0, taken));
    return taken;
  }

  /** Forwards what is buffered, and everything that comes. */
  openTo(sink: (piece: Buffer) => void): void {
    this.#sink = sink;
    const buffered = this.#buffered;
    this.#buffered = undefined;
    this.bufferedBytes = 0;
    if (buffered) for (const piece of buffered) sink(piece);
  }

  /** Drops what is buffered, and everything that comes: the response came first. */
  discard(): void {
    this.#buffered = undefined;
    this.bufferedBytes = 0;
    this.#sink = ignore;
  }

  #take(piece: Buffer): void {
    this.bytes += piece.length;
    if (this.#sink) return this.#sink(piece);
    (this.#buffered ??= []).push(piece);
    this.bufferedBytes += piece.length;
  }
}

function ignore(): void {}
