// A request body on its way: cut by its framing, held until the host is ready for it, then passed on piece by
// piece. It neither stores more than it was given nor copies data.
import { ChunkWalker } from '../../http1/chunk-walker.ts';
import type { HeadError } from '../../http1/head-error.ts';
import type { Framing } from '../../http1/framing.ts';

export class RequestBody {
  /** Bytes that wait for the host. */
  heldBytes = 0;
  /** Bytes passed on or held. */
  bytes = 0;
  #remaining: number;
  readonly #walker: ChunkWalker | undefined;
  #held: Buffer[] | undefined;
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

  /** All of it has been passed on: a host that was shown a part would take what comes next for the rest. */
  get isPassedOn(): boolean {
    return this.isComplete && this.heldBytes === 0;
  }

  /** Takes what belongs to the body and answers how many bytes of `chunk` that was. */
  push(chunk: Buffer): number {
    if (this.isComplete) return 0;
    if (this.#walker) return this.#walker.walk(chunk, 0, (piece) => this.#take(piece));
    const taken = Math.min(this.#remaining, chunk.length);
    this.#remaining -= taken;
    this.#take(taken === chunk.length ? chunk : chunk.subarray(0, taken));
    return taken;
  }

  /** Passes on what is held and everything that comes. */
  openTo(sink: (piece: Buffer) => void): void {
    this.#sink = sink;
    const held = this.#held;
    this.#held = undefined;
    this.heldBytes = 0;
    if (held) for (const piece of held) sink(piece);
  }

  /** The answer came first: the rest is read and thrown away. */
  discard(): void {
    this.#held = undefined;
    this.heldBytes = 0;
    this.#sink = ignore;
  }

  #take(piece: Buffer): void {
    this.bytes += piece.length;
    if (this.#sink) return this.#sink(piece);
    (this.#held ??= []).push(piece);
    this.heldBytes += piece.length;
  }
}

function ignore(): void {}
