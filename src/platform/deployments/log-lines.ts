// The lines that a build or a deployed program prints, before they are stored: masked, cut, and no more of them than a tenant may
// write. Hostile code prints for ever: what is beyond the limits is counted and dropped here. Pure.
import type { Secret } from '../../base/secret.ts';

export type LogKind = 'build' | 'deploy';
export const logLevels = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogLine = {
  readonly at: Date;
  readonly level: LogLevel;
  readonly message: string;
  readonly instance?: string | undefined;
};

export const MAX_LINE_BYTES = 16 * 1024;
export const MAX_LINES_PER_SECOND = 1_000;
/** Lines that the database has not taken yet. */
const MAX_WAITING = 4_000;
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

const MASK = '***';
/** A shorter value would be found in texts that have nothing to do with it. */
const MIN_SECRET_BYTES = 8;

/** `isCut`: the text may end within a value. */
export type Mask = (text: string, isCut?: boolean) => string;

/** Finds each value as it is, line by line, and as JSON, base64, base64url and percent-encoding write it. */
export function createMask(secrets: Iterable<Secret>): Mask {
  const forms = new Set([...secrets].flatMap((secret) => formsOf(secret.reveal())));
  const found = [...forms].filter((form) => Buffer.byteLength(form) >= MIN_SECRET_BYTES);
  if (found.length === 0) return (text) => text;
  // The longest first: a value may contain another one.
  const sorted = found.toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(sorted.map((form) => RegExp.escape(form)).join('|'), 'g');
  return (text, isCut = false) => {
    const masked = text.replaceAll(pattern, MASK);
    const start = isCut ? startOfPart(masked, sorted) : masked.length;
    return start === masked.length ? masked : `${masked.slice(0, start)}${MASK}`;
  };
}

/** Where the beginning of a value stands at the end of a text that was cut. */
function startOfPart(text: string, forms: readonly string[]): number {
  const starts = forms.map((form) => {
    for (let length = Math.min(form.length - 1, text.length); length > 0; length -= 1)
      if (text.endsWith(form.slice(0, length))) return text.length - length;
    return text.length;
  });
  return Math.min(...starts);
}

function formsOf(value: string): readonly string[] {
  if (Buffer.byteLength(value) < MIN_SECRET_BYTES) return [];
  const bytes = Buffer.from(value);
  // The last characters of base64 depend on what follows the value.
  const base64 = [bytes.toString('base64'), bytes.toString('base64url')];
  const open = base64.map((text) => text.replace(/=+$/, '').slice(0, -1));
  const lines = value.split(/\r?\n/);
  return [value, JSON.stringify(value).slice(1, -1), percentEncoded(value), ...open, ...lines];
}

/** A lone surrogate has no UTF-8. */
function percentEncoded(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

export type LineQueueOptions = {
  readonly mask: Mask;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
};

/** The lines of one build, or of one revision with all its instances. */
export class LineQueue {
  readonly #mask: Mask;
  readonly #now: () => number;
  #waiting: LogLine[] = [];
  #waitingBytes = 0;
  #second = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #dropped = 0;

  constructor({ mask, now }: LineQueueOptions) {
    this.#mask = mask;
    this.#now = now;
  }

  /** `isCut`: its producer has left out the rest of it. */
  add(line: LogLine, isCut = false): void {
    if (!this.#admit()) {
      this.#dropped += 1;
      return;
    }
    this.#noteDropped(line);
    const message = cut(this.#mask(printable(line.message), isCut), isCut);
    this.#push({ ...line, message });
  }

  /** The lines to store next, in their order, at most this many; none: an empty list. */
  take(limit = 500): readonly LogLine[] {
    if (this.#waiting.length === 0) this.#noteDropped({ at: new Date(), level: 'WARNING', message: '' });
    const lines = this.#waiting.splice(0, limit);
    for (const { message } of lines) this.#waitingBytes -= Buffer.byteLength(message);
    return lines;
  }

  /** Lines that wait for `take`; a dropped one counts, because it is reported. */
  get size(): number {
    return this.#waiting.length + (this.#dropped > 0 ? 1 : 0);
  }

  #admit(): boolean {
    const second = Math.floor(this.#now() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#taken = 0;
    }
    this.#taken += 1;
    if (this.#taken > MAX_LINES_PER_SECOND) return false;
    return this.#waiting.length < MAX_WAITING && this.#waitingBytes < MAX_WAITING_BYTES;
  }

  #noteDropped({ at, instance }: LogLine): void {
    if (this.#dropped === 0) return;
    const lines = this.#dropped === 1 ? '1 line was' : `${this.#dropped} lines were`;
    const message = `${lines} dropped: at most ${MAX_LINES_PER_SECOND} a second are kept`;
    this.#dropped = 0;
    this.#push({ at, instance, level: 'WARNING', message });
  }

  #push(line: LogLine): void {
    this.#waiting.push(line);
    this.#waitingBytes += Buffer.byteLength(line.message);
  }
}

/** PostgreSQL stores no U+0000, and JSON no lone surrogate. */
function printable(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD').toWellFormed();
}

function cut(text: string, isCut: boolean): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_LINE_BYTES && !isCut) return text;
  const note = ' … (cut)';
  let end = Math.min(bytes.length, MAX_LINE_BYTES - Buffer.byteLength(note));
  // Not within a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.toString('utf8', 0, end)}${note}`;
}
