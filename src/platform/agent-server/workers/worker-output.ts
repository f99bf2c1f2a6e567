// What workers write to stdout and stderr, and their messages for the log, as lines of the log: of bounded length and number. A
// worker that writes more is slowed down by its pipe, and its lines are counted instead of written.
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import type { LogLevel } from '../../../agent-worker/protocol/messages.ts';
import type { Log } from '../../../base/log.ts';

const MAX_LINE_CHARS = 8 * 1024;
/** Of one worker. */
const LINES_PER_SECOND = 200;
const PERIOD_MS = 1000;
/** Of one stream: what is read in a slice of time, whether it is written or not. */
const SLICE_BYTES = 256 * 1024;
const SLICE_MS = 50;
/** V8 writes it in one piece. */
const OUT_OF_HEAP = 'JavaScript heap out of memory';

export class WorkerOutput {
  readonly #log: Log;
  readonly #pid: number | undefined;
  #lines = 0;
  #dropped = 0;
  #period: NodeJS.Timeout | undefined;
  readonly #closed: Promise<void>[] = [];
  #isOutOfHeap = false;

  constructor(log: Log, pid: number | undefined) {
    this.#log = log;
    this.#pid = pid;
  }

  /** V8 has written that it has no heap left. */
  get isOutOfHeap(): boolean {
    return this.#isOutOfHeap;
  }

  /** Resolves when all that it has written is read. */
  async closed(): Promise<void> {
    await Promise.all(this.#closed);
  }

  write(level: LogLevel, source: 'stdout' | 'stderr' | 'log', text: string): void {
    if (this.#period === undefined) this.#period = setTimeout(this.#onPeriod, PERIOD_MS).unref();
    this.#lines += 1;
    if (this.#lines > LINES_PER_SECOND) this.#dropped += 1;
    else {
      const line = text.length > MAX_LINE_CHARS ? `${text.slice(0, MAX_LINE_CHARS)}…` : text;
      this.#log[level]({ worker: this.#pid, source }, line);
    }
  }

  /** Reads a stream of the worker to its end. */
  follow(stream: Readable, source: 'stdout' | 'stderr'): void {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    let bytes = 0;
    let slice: NodeJS.Timeout | undefined;
    const onSlice = (): void => {
      slice = undefined;
      bytes = 0;
      stream.resume();
    };
    stream.on('data', (piece: Buffer) => {
      const text = decoder.write(piece);
      if (source === 'stderr' && text.includes(OUT_OF_HEAP)) this.#isOutOfHeap = true;
      rest = this.#writeLines(source, rest, text);
      bytes += piece.length;
      slice ??= setTimeout(onSlice, SLICE_MS);
      if (bytes >= SLICE_BYTES) stream.pause();
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed.push(promise);
    stream.once('close', () => {
      clearTimeout(slice);
      if (rest !== '') this.write('info', source, rest);
      resolve();
    });
    // What it has written is read; nothing else depends on it.
    stream.on('error', () => stream.destroy());
  }

  /** Returns the beginning of a line that has not ended. */
  #writeLines(source: 'stdout' | 'stderr', rest: string, text: string): string {
    let start = 0;
    let line = rest;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.write('info', source, line + text.slice(start, Math.min(end, start + MAX_LINE_CHARS + 1)));
      line = '';
      start = end + 1;
    }
    // No more of it would be written.
    return line.length > MAX_LINE_CHARS ? line : line + text.slice(start, start + MAX_LINE_CHARS + 1);
  }

  readonly #onPeriod = (): void => {
    this.#period = undefined;
    this.#lines = 0;
    if (this.#dropped > 0)
      this.#log.warn({ worker: this.#pid, lines: this.#dropped }, 'lines of a worker were dropped');
    this.#dropped = 0;
  };
}
