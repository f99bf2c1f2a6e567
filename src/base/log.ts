// Log lines and exchange records are written through one asynchronous, bounded sink, so that a slow reader of the output
// never slows the proxy. The adapter of pino.
import { write as writeFd, writeSync } from 'node:fs';
import { type Logger, pino, stdTimeFunctions } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

export type LogSink = {
  write(line: string): void;
  /** True while so much waits to be written that new work must be rejected. */
  readonly isBlocked: boolean;
  /** Lines lost because the sink was full. */
  readonly dropped: number;
  /** What waits to be written. */
  readonly waiting?: { readonly chars: number };
  /** Resolves when everything is written, or after `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>;
};

const MAX_BUFFERED_CHARS = 8 * 1024 * 1024;
const BLOCKED_CHARS = 4 * 1024 * 1024;
// A write for each request costs more CPU than parsing the request, so lines wait for more lines. A write delays the requests
// that come meanwhile, so many lines wait longer: their writes must be rare enough not to be the p99 of the requests.
const FLUSH_DELAY_MS = 20;
const MANY_CHARS = 16 * 1024;
const MAX_DELAYS = 3;
const FLUSH_CHARS = 192 * 1024;
const PAGE_BYTES = FLUSH_CHARS + 32 * 1024;
const RETRY_DELAY_MS = 50;
/** When a write takes longer, its reader does not read. */
const STUCK_MS = 1000;

/** A sink over a file descriptor. Writes go to the thread pool; at most 8 Mi characters wait. */
export function createFdSink(fd: number): LogSink & { flush(): void } {
  return new FdSink(fd);
}

class FdSink implements LogSink {
  readonly #fd: number;
  readonly waiting: LinePages = new LinePages();
  #delays = 0;
  #inFlight: Buffer | undefined;
  /** When the current write in the thread pool began. */
  #writingSinceMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  dropped = 0;
  #drained: (() => void) | undefined;

  constructor(fd: number) {
    this.#fd = fd;
    process.on('exit', this.#flushAtExit);
  }

  write(line: string): void {
    const chars = this.waiting.chars + line.length;
    if (chars > MAX_BUFFERED_CHARS) {
      this.dropped += 1;
      return;
    }
    this.waiting.add(line);
    if (chars >= FLUSH_CHARS && !this.#inFlight) this.flush();
    else this.#schedule();
  }

  get isBlocked(): boolean {
    return this.waiting.chars >= BLOCKED_CHARS;
  }

  async close(timeoutMs = 2000): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#drained = resolve;
    const limit = setTimeout(resolve, timeoutMs);
    this.flush();
    await promise;
    clearTimeout(limit);
    this.#drained = undefined;
    if (this.waiting.chars === 0 && !this.#inFlight) process.off('exit', this.#flushAtExit);
  }

  #schedule(): void {
    this.#timer ??= setTimeout(this.#onDelay, FLUSH_DELAY_MS).unref();
  }

  readonly #onDelay = (): void => {
    this.#timer = undefined;
    this.#delays += 1;
    if (this.waiting.chars >= MANY_CHARS && this.#delays < MAX_DELAYS) this.#schedule();
    else this.flush();
  };

  /** Writes at once, without waiting for more lines. */
  readonly flush = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#delays = 0;
    if (this.#inFlight) return;
    this.#inFlight = this.waiting.take();
    if (this.#inFlight) this.#writeInFlight();
    else this.#drained?.();
  };

  readonly #writeInFlight = (): void => {
    if (!this.#inFlight) return;
    this.#writingSinceMs = performance.now();
    writeFd(this.#fd, this.#inFlight, this.#onWritten);
  };

  readonly #onWritten = (error: NodeJS.ErrnoException | null, written: number): void => {
    this.#writingSinceMs = undefined;
    const rest = this.#inFlight?.subarray(error ? 0 : written);
    this.#inFlight = rest && rest.length > 0 ? rest : undefined;
    if (!this.#inFlight) return this.#continueWriting();
    // EAGAIN: a full non-blocking pipe. Any other error (disk full, reader gone) is retried too: the bound in `write`
    // turns a sink that stays broken into "blocked", which the listener reports to clients.
    if (error) setTimeout(this.#writeInFlight, RETRY_DELAY_MS).unref();
    else this.#writeInFlight();
  };

  /** After a write. Lines that came meanwhile wait for more: at once, they would leave in small writes for as long as there is load. */
  #continueWriting(): void {
    if (this.#drained || this.waiting.chars >= FLUSH_CHARS) this.flush();
    else if (this.waiting.chars > 0) this.#schedule();
  }

  readonly #flushAtExit = (code: number): void => {
    const sinceMs = this.#writingSinceMs;
    if (sinceMs !== undefined && performance.now() - sinceMs > STUCK_MS) return endStuck(code);
    // The thread pool finishes a write that it has begun before the process ends.
    const unsent = sinceMs === undefined && this.#inFlight ? this.#inFlight : Buffer.alloc(0);
    const rest = Buffer.concat([unsent, this.waiting.takeAll()]);
    try {
      if (rest.length > 0) writeSync(this.#fd, rest);
    } catch {
      // The process is ending and its reader is gone: no one is left to read an error.
    }
  };
}

/**
 * Ends the process with `code` while one of its writes hangs. An exit would wait for the thread pool, and so for the
 * reader, without limit; execve() waits for nothing.
 */
function endStuck(code: number): void {
  process.execve?.(process.execPath, [process.execPath, '-e', `process.exit(${code})`], {});
}

// A few lines at a time: a text that waits longer would be copied by the collections of the young generation.
const ENCODED_CHARS = 8 * 1024;

/** Lines that wait to be written, encoded into one of two pages while the other is written: a buffer for each write would cost more. */
export class LinePages {
  /** The encoded lines; `#lines` come behind them. */
  #page: Buffer | undefined;
  #pageBytes = 0;
  #lines: string[] = [];
  #linesChars = 0;
  #isFull = false;
  /** What was taken last. */
  #taken: Buffer | undefined;
  /** How much waits. */
  chars = 0;

  add(line: string): void {
    this.#lines.push(line);
    this.#linesChars += line.length;
    this.chars += line.length;
    if (this.#linesChars >= ENCODED_CHARS && !this.#isFull) this.#encode();
  }

  /** Removes the first of what waits. The bytes are valid until the next call. */
  take(): Buffer | undefined {
    if (this.chars === 0) return undefined;
    if (!this.#isFull) this.#encode();
    this.#isFull = false;
    const page = this.#page;
    if (!page || this.#pageBytes === 0) return this.takeAll();
    const taken = page.subarray(0, this.#pageBytes);
    this.chars = this.#linesChars;
    this.#page = this.#taken;
    this.#taken = page;
    this.#pageBytes = 0;
    return taken;
  }

  /** Also more than a page can hold. */
  takeAll(): Buffer {
    const encoded = this.#page?.subarray(0, this.#pageBytes) ?? Buffer.alloc(0);
    const taken = Buffer.concat([encoded, Buffer.from(this.#lines.join(''), 'utf8')]);
    this.#pageBytes = 0;
    this.chars = 0;
    this.#clearLines();
    return taken;
  }

  #encode(): void {
    this.#lines = [this.#lines.join('')];
    const [text = ''] = this.#lines;
    this.#isFull = this.#pageBytes + Buffer.byteLength(text) > PAGE_BYTES;
    if (this.#isFull) return;
    this.#page ??= Buffer.allocUnsafeSlow(PAGE_BYTES);
    this.#pageBytes += this.#page.write(text, this.#pageBytes, 'utf8');
    this.#clearLines();
  }

  #clearLines(): void {
    this.#lines = [];
    this.#linesChars = 0;
  }
}

/** A logger that writes JSON lines (`time` ISO 8601, `level` by name) into the sink. */
export function createLog(level: LogLevel, sink: Pick<LogSink, 'write'>): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => sink.write(line) },
  );
}

const INFO = '{"level":"info",';
const WARN = '{"level":"warn",';

/** Writes one JSON line, as the logger would. */
export type LineWriter<Fields extends object> = (fields: Fields, msg: string) => void;

/** The fields as members of a JSON object, without its braces. */
export type MembersOf<Fields extends object> = (fields: Fields) => string;

/**
 * For lines that every request writes: without the logger, a line costs a sixth of the time. `isWarning`: which of them
 * have level warn, so that an alert on levels finds them.
 */
export function createLineWriter<Fields extends object>(
  sink: Pick<LogSink, 'write'>,
  membersOf: MembersOf<Fields> = (fields) => JSON.stringify(fields).slice(1, -1),
  isWarning: (fields: Fields) => boolean = () => false,
): LineWriter<Fields> {
  const stamp = createStamp(membersOf, INFO);
  return (fields, msg) => {
    const line = stamp(fields);
    sink.write(`${isWarning(fields) ? WARN + line.slice(INFO.length) : line},"msg":"${msg}"}\n`);
  };
}

/** The time and the fields, as members of a JSON object without its braces, behind `opening`. */
export function createStamp<Fields extends object>(
  membersOf: MembersOf<Fields>,
  opening = '',
): MembersOf<Fields> {
  let atMs = 0;
  let time = '';
  return (fields) => {
    const now = Date.now();
    if (now !== atMs) {
      atMs = now;
      time = `${opening}"time":"${new Date(now).toISOString()}",`;
    }
    return time + membersOf(fields);
  };
}

/** Writes a line with fields that createStamp() formatted. */
export function writeStamped(
  sink: Pick<LogSink, 'write'>,
  stamped: string,
  msg: string,
  isWarning = false,
): void {
  sink.write(`${isWarning ? WARN : INFO}${stamped},"msg":"${msg}"}\n`);
}

/** An unexpected error for the log: its class and its stack. Its message may quote input, so it is omitted. */
export function describeBug(error: unknown): {
  readonly error: string;
  readonly code?: string;
  readonly at: readonly string[];
} {
  const code = errorCode(error);
  const coded = code === undefined ? {} : { code };
  // Some libraries report an error as a copy of its members.
  const { name, stack } = typeof error === 'object' && error !== null ? (error as Partial<Error>) : {};
  if (typeof stack !== 'string') return { error: typeof error, ...coded, at: [] };
  const frames = stack.split('\n').filter((line) => line.startsWith('    at '));
  return { error: name ?? 'object', ...coded, at: frames.slice(0, 8).map((frame) => frame.trim()) };
}

/** The code of a system or database error, from the error itself or from its cause. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return [code, cause?.code].find((one) => typeof one === 'string' && /^[A-Z0-9_]{1,48}$/.test(one)) as
    | string
    | undefined;
}
