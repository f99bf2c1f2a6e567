// Reads what a program prints, no faster than it costs others nothing: a program that prints without end waits, and not the process
// that reads the output of all programs.
import type { Readable } from 'node:stream';
import { within } from '../../box-host/bubblewrap/time-limit.ts';
import { type Line, LineSplitter } from './line-splitter.ts';

const PERIOD_MS = 100;
const PERIOD_BYTES: number = 256 * 1024;
/** Empty lines cost as much as full ones. */
const PERIOD_LINES = 1_000;
/** For what is in the pipe when its writers have ended. */
const END_MS = 5_000;

export class LineReader {
  readonly #stream: Readable;
  readonly #take: (line: Line) => void;
  readonly #splitter = new LineSplitter();
  readonly #waiting: Buffer[] = [];
  readonly #closed = Promise.withResolvers<void>();
  #bytes = 0;
  #lines = 0;
  #isEnding = false;
  #hasRest = false;
  #period: NodeJS.Timeout | undefined;

  constructor(stream: Readable, take: (line: Line) => void) {
    this.#stream = stream;
    this.#take = take;
    stream.on('error', () => undefined);
    stream.on('data', (piece: Buffer) => {
      this.#bytes += piece.length;
      // Node resumes the output of a process when it ends, whoever has paused it.
      this.#waiting.push(piece);
      this.#cut();
    });
    stream.on('close', () => this.#closed.resolve());
  }

  /** The writers have ended. Waits for what they wrote, and not for one that holds the pipe nevertheless. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.#renew();
    await within(this.#closed.promise, END_MS, 'the output does not end').catch(() => undefined);
    clearTimeout(this.#period);
    this.#stream.destroy();
    while (this.#hasRest) this.#cutSome();
    const last = this.#splitter.finish();
    if (last !== undefined) this.#take(last);
  }

  #cut(): void {
    this.#cutSome();
    if (this.#hasRest || this.#bytes >= PERIOD_BYTES) this.#stream.pause();
    this.#period ??= setTimeout(() => this.#renew(), PERIOD_MS);
  }

  /** As many lines as this period allows. */
  #cutSome(): void {
    const most = this.#isEnding ? Number.POSITIVE_INFINITY : PERIOD_LINES;
    for (this.#hasRest = true; this.#lines < most; this.#lines += 1) {
      const line = this.#next();
      if (line === undefined) {
        this.#hasRest = false;
        return;
      }
      this.#take(line);
    }
  }

  #next(): Line | undefined {
    for (;;) {
      const line = this.#splitter.next();
      const piece = line === undefined ? this.#waiting.shift() : undefined;
      if (piece === undefined) return line;
      this.#splitter.add(piece);
    }
  }

  #renew(): void {
    clearTimeout(this.#period);
    this.#period = undefined;
    this.#bytes = 0;
    this.#lines = 0;
    if (this.#hasRest) this.#cut();
    if (!this.#hasRest) this.#stream.resume();
  }
}
