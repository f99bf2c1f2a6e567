// The end of what a box writes to standard error. It may write as much as it wants: little is kept, and no more is read in a period
// than costs next to nothing, so that the box waits and not the process that serves all boxes.
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

const MAX_BYTES = 4096;
const PERIOD_MS = 100;
const PERIOD_BYTES: number = 4 * 1024 * 1024;
/** For what is still in the pipe when its writers have ended. */
const END_MS = 1_000;

export class LastLines {
  readonly #stream: Readable;
  #tail: Buffer = Buffer.alloc(0);
  #bytes = 0;
  #period: NodeJS.Timeout | undefined;

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.on('error', () => undefined);
    stream.on('data', (piece: Buffer) => this.#take(piece));
  }

  /** The writers have ended. Waits for what they wrote, and not for one that holds the pipe nevertheless. */
  async end(): Promise<string> {
    const stream = this.#stream;
    if (!stream.closed) {
      stream.resume();
      const timeout = new AbortController();
      const closed = once(stream, 'close', { signal: timeout.signal });
      await Promise.race([closed, delay(END_MS, undefined, timeout)]).catch(() => undefined);
      timeout.abort();
      await closed.catch(() => undefined);
    }
    clearTimeout(this.#period);
    stream.destroy();
    return this.#tail.toString('utf8');
  }

  #take(piece: Buffer): void {
    // A copy: a view would keep the whole piece in memory.
    const kept = [this.#tail, piece.subarray(-MAX_BYTES)];
    this.#tail = Buffer.from(Buffer.concat(kept).subarray(-MAX_BYTES));
    this.#bytes += piece.length;
    if (this.#bytes >= PERIOD_BYTES) this.#stream.pause();
    this.#period ??= setTimeout(() => {
      this.#period = undefined;
      this.#bytes = 0;
      this.#stream.resume();
    }, PERIOD_MS);
  }
}
