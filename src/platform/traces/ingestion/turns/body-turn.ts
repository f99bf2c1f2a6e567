// Large bodies take turns: what a few of them leave for the garbage collector fits the memory of a process, that of many at once does
// not. A body that waits is not read, so that its client waits too. Small ones never wait, and a client that is slow waits again.
import { noteGarbage } from './buffer-garbage.ts';
import { type Clock, systemClock } from '../../../api/shares/clock.ts';
import { FairQueue, type Leave, type Party } from '../../../api/shares/fair-queue.ts';

/** Up to here a body is small. */
const SMALL_BYTES = 1024 * 1024;
/** A client that sends nothing for so long has its turn again when it goes on: one with a slow network keeps nobody waiting. */
const IDLE_MS = 50;
/** Behind it others come first, if there are any. */
const TURN_MS = 5_000;
/** Shorter than clients wait for a response. */
const WAIT_MS = 60_000;
const MAX_WAITING = 256;
const REJECTION = 'Too many large bodies at once: send this one again later';

/** Of one process. */
export type BodyTurns = {
  open(party: Party): BodyTurn;
  /** Bodies that wait. */
  readonly waiting: number;
};

/** One organization leaves a turn for others. */
export function createBodyTurns(atOnce: number, clock: Clock = systemClock): BodyTurns {
  const limits = { places: atOnce + 1, perOrganization: atOnce, perKey: atOnce };
  const queue = new FairQueue({ ...limits, waitMs: WAIT_MS, maxWaiting: MAX_WAITING }, clock, REJECTION);
  return {
    open: (party) => new BodyTurn(() => queue.enter(party), clock),
    get waiting() {
      return queue.waiting;
    },
  };
}

/** That of one request. */
export class BodyTurn {
  readonly #enter: () => Promise<Leave>;
  readonly #clock: Clock;
  /** That have arrived. */
  bytes = 0;
  #leave: Leave | undefined;
  #sinceMs = 0;
  #cancelIdle: (() => void) | undefined;

  constructor(enter: () => Promise<Leave>, clock: Clock) {
    this.#enter = enter;
    this.#clock = clock;
  }

  /** Before a body is read whose length is known: none of it is held while it waits, nor a decoder for it. Rejects as `take`. */
  async expect(bytes: number): Promise<void> {
    if (bytes > SMALL_BYTES) await this.#begin();
  }

  /** Of a piece that has arrived. Where it has to wait for too long, it rejects with a DomainError `too_many`. */
  take(bytes: number): Promise<void> | undefined {
    this.bytes += bytes;
    if (!this.#isLarge) return undefined;
    noteGarbage(bytes);
    if (this.#clock.now() - this.#sinceMs > TURN_MS) this.end();
    if (this.#leave === undefined) return this.#begin();
    this.#expectMore();
    return undefined;
  }

  async *of(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const piece of body) {
      await this.take(piece.length);
      yield piece;
    }
  }

  /** The body has been read: its turn lasts until what it brought is stored. Rejects as `take`. */
  async finish(): Promise<void> {
    if (!this.#isLarge) return;
    if (this.#leave === undefined) await this.#begin();
    this.#cancelIdle?.();
  }

  end(): void {
    this.#cancelIdle?.();
    this.#leave?.();
    this.#leave = undefined;
  }

  get #isLarge(): boolean {
    return this.bytes > SMALL_BYTES;
  }

  async #begin(): Promise<void> {
    this.#leave = await this.#enter();
    this.#sinceMs = this.#clock.now();
    this.#expectMore();
  }

  #expectMore(): void {
    this.#cancelIdle?.();
    this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.end());
  }
}
