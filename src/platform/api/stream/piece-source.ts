// What a streamed response is made of, one piece at a time. Waiting for a piece also ends when none came for a while, and
// when a signal aborts, for the producer may know of neither.

export type Found<T> = { readonly piece: T } | 'idle' | 'ended' | 'aborted';

export type PieceLimits = {
  /** A wait for the next piece ends with `idle` after this long. */
  readonly idleMs: number;
  /** Every wait ends with `aborted` from its abort on. */
  readonly signal: AbortSignal;
};

export class PieceSource<T> implements Disposable {
  readonly #iterator: AsyncIterator<T>;
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  /** The next piece is asked for once, however often it is waited for: a promise keeps all that wait for it. */
  #isAsked = false;
  #take: (() => IteratorResult<T>) | undefined;
  #isIdle = false;
  #wake: (() => void) | undefined;

  constructor(pieces: AsyncIterable<T>, { idleMs, signal }: PieceLimits) {
    this.#iterator = pieces[Symbol.asyncIterator]();
    this.#signal = signal;
    this.#timer = setTimeout(() => {
      this.#isIdle = true;
      this.#wake?.();
    }, idleMs);
    signal.addEventListener('abort', this.#onAbort);
  }

  /** Rejects with what the producer throws. */
  async next(): Promise<Found<T>> {
    this.#isIdle = false;
    this.#timer.refresh();
    this.#ask();
    for (;;) {
      if (this.#signal.aborted) return 'aborted';
      if (this.#take !== undefined) return this.#found(this.#take);
      if (this.#isIdle) return 'idle';
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Does not wait for the producer, which may be waiting itself. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal.removeEventListener('abort', this.#onAbort);
    void this.#iterator.return?.().catch(() => undefined);
  }

  readonly #onAbort = (): void => this.#wake?.();

  #ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    const settle = (take: () => IteratorResult<T>): void => {
      this.#take = take;
      this.#wake?.();
    };
    this.#iterator.next().then(
      (result) => settle(() => result),
      (error: unknown) =>
        settle(() => {
          throw error;
        }),
    );
  }

  #found(take: () => IteratorResult<T>): Found<T> {
    this.#take = undefined;
    this.#isAsked = false;
    const { done, value } = take();
    return done === true ? 'ended' : { piece: value };
  }
}
