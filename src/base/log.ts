// Log lines and exchange records leave through one asynchronous, bounded sink, so that a slow reader of our
// output never slows the proxy. The door to pino. Nothing here knows what a record holds.
import { write as writeFd, writeSync } from 'node:fs';
import { type Logger, pino, stdTimeFunctions } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

export type LogSink = {
  write(line: string): void;
  /** True while so much waits to be written that new work should be refused. */
  readonly isBlocked: boolean;
  /** Lines lost because the sink was full. */
  readonly dropped: number;
  /** Resolves when all is written, or after `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>;
};

const MAX_BUFFERED_CHARS = 8 * 1024 * 1024;
const BLOCKED_CHARS = 4 * 1024 * 1024;
// One write a request costs more CPU than the request's own parsing: lines wait for company.
const FLUSH_DELAY_MS = 20;
const FLUSH_CHARS = 32 * 1024;
const RETRY_DELAY_MS = 50;
/** A write under way for longer has a reader that does not read. */
const STUCK_MS = 1000;

/** A sink over a file descriptor. Writes go to the thread pool; at most 8 Mi characters wait. */
export function createFdSink(fd: number): LogSink {
  let waiting: string[] = [];
  let waitingChars = 0;
  let inFlight: Buffer | undefined;
  /** When the write began that the thread pool has in hand. */
  let writingSinceMs: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  let dropped = 0;
  let drained: (() => void) | undefined;

  function schedule(delayMs: number): void {
    timer ??= setTimeout(flush, delayMs);
    timer.unref();
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (inFlight) return;
    if (waiting.length === 0) {
      drained?.();
      return;
    }
    inFlight = Buffer.from(waiting.join(''), 'utf8');
    waiting = [];
    waitingChars = 0;
    writeInFlight();
  }

  function writeInFlight(): void {
    if (!inFlight) return;
    writingSinceMs = performance.now();
    writeFd(fd, inFlight, onWritten);
  }

  function onWritten(error: NodeJS.ErrnoException | null, written: number): void {
    writingSinceMs = undefined;
    const rest = inFlight?.subarray(error ? 0 : written);
    inFlight = rest && rest.length > 0 ? rest : undefined;
    if (!inFlight) return continueWriting();
    // EAGAIN: a full non-blocking pipe. Anything else (disk full, reader gone) is retried just the same: the
    // bound above turns a sink that stays broken into "blocked", which the listener reports to clients.
    if (error) setTimeout(writeInFlight, RETRY_DELAY_MS).unref();
    else writeInFlight();
  }

  /**
   * After a write. Lines that came meanwhile wait for more of them, as all lines do: written at once, they would leave
   * in writes of a handful of lines each, for as long as there is load.
   */
  function continueWriting(): void {
    if (drained || waitingChars >= FLUSH_CHARS) flush();
    else if (waitingChars > 0) schedule(FLUSH_DELAY_MS);
  }

  const flushAtExit = (code: number): void => {
    if (writingSinceMs !== undefined && performance.now() - writingSinceMs > STUCK_MS) return endStuck(code);
    // What the thread pool has in hand it writes before the process ends.
    const unsent = writingSinceMs === undefined && inFlight ? inFlight : Buffer.alloc(0);
    const rest = Buffer.concat([unsent, Buffer.from(waiting.join(''), 'utf8')]);
    try {
      if (rest.length > 0) writeSync(fd, rest);
    } catch {
      // The process is ending and its reader is gone: nobody is left to be told.
    }
  };
  process.on('exit', flushAtExit);

  return {
    write(line) {
      if (waitingChars + line.length > MAX_BUFFERED_CHARS) {
        dropped += 1;
        return;
      }
      waiting.push(line);
      waitingChars += line.length;
      if (waitingChars >= FLUSH_CHARS && !inFlight) flush();
      else if (!timer) schedule(FLUSH_DELAY_MS);
    },
    get isBlocked() {
      return waitingChars >= BLOCKED_CHARS;
    },
    get dropped() {
      return dropped;
    },
    async close(timeoutMs = 2000) {
      const { promise, resolve } = Promise.withResolvers<void>();
      drained = resolve;
      const limit = setTimeout(resolve, timeoutMs);
      flush();
      await promise;
      clearTimeout(limit);
      drained = undefined;
      if (waiting.length === 0 && !inFlight) process.off('exit', flushAtExit);
    },
  };
}

/**
 * Ends the process with `code` while a write of it hangs. An exit would wait for the thread pool, and with it for the
 * reader, for ever; a process that is replaced waits for nothing.
 */
function endStuck(code: number): void {
  process.execve?.(process.execPath, [process.execPath, '-e', `process.exit(${code})`], {});
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

/** Writes one JSON line of level info, as the logger would, with the fields in their order. */
export type LineWriter = (fields: object, msg: string) => void;

/** For lines that every request has: past the logger one costs a sixth of the time. */
export function createLineWriter(sink: Pick<LogSink, 'write'>): LineWriter {
  const stamp = createStamp();
  return (fields, msg) => writeStamped(sink, stamp(fields), msg);
}

/** The time and the fields, as members of a JSON object without its braces. */
export function createStamp(): (fields: object) => string {
  let atMs = 0;
  let time = '';
  return (fields) => {
    const now = Date.now();
    if (now !== atMs) {
      atMs = now;
      time = new Date(now).toISOString();
    }
    return `"time":"${time}",${JSON.stringify(fields).slice(1, -1)}`;
  };
}

/** Writes the line of what was stamped. */
export function writeStamped(sink: Pick<LogSink, 'write'>, stamped: string, msg: string): void {
  sink.write(`{"level":"info",${stamped},"msg":"${msg}"}\n`);
}

/** An unexpected error for the log: its kind and where it came from. Its message may quote input, so it stays out. */
export function describeBug(error: unknown): {
  readonly error: string;
  readonly code?: string;
  readonly at: readonly string[];
} {
  const code = errorCode(error);
  const coded = code === undefined ? {} : { code };
  // Some libraries tell of an error by a copy of its members.
  const { name, stack } = typeof error === 'object' && error !== null ? (error as Partial<Error>) : {};
  if (typeof stack !== 'string') return { error: typeof error, ...coded, at: [] };
  const frames = stack.split('\n').filter((line) => line.startsWith('    at '));
  return { error: name ?? 'object', ...coded, at: frames.slice(0, 8).map((frame) => frame.trim()) };
}

/** The word of a system or a database for what went wrong, of the error itself or of what it was caused by. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  return [code, cause?.code].find((one) => typeof one === 'string' && /^[A-Z0-9_]{1,48}$/.test(one)) as
    | string
    | undefined;
}
