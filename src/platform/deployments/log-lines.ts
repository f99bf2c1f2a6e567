// The lines that a build or a deployed program prints, before they are stored: masked, cut, and no more of them than a tenant may
// write. Hostile code prints for ever: what is beyond the limits is counted and dropped here. Pure.

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

/** Public clients follow a log from the time of the last line that they have: those of one moment must fit into their smallest page. */
const LINES_PER_MS = 10;
/** A clock that is set back by more was wrong before. */
const MAX_BACK_MS = 10_000;

/** `isCut`: the text may end within a value. */
export type Mask = (text: string, isCut?: boolean) => string;

export type LineQueueOptions = {
  readonly mask: Mask;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** How much is kept, in words, where its user drops lines by a limit of its own. */
  readonly limits?: string | undefined;
};

const LINES = `at most ${MAX_LINES_PER_SECOND} a second`;

/** The lines of one build, or of one revision with all its instances. */
export class LineQueue {
  readonly #mask: Mask;
  readonly #now: () => number;
  readonly #limits: string;
  #waiting: LogLine[] = [];
  #waitingBytes = 0;
  #second = Number.NEGATIVE_INFINITY;
  #taken = 0;
  #dropped = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** Lines that have this time. */
  #atLastMs = 0;

  constructor({ mask, now, limits }: LineQueueOptions) {
    this.#mask = mask;
    this.#now = now;
    this.#limits = limits === undefined ? LINES : `${LINES} and ${limits}`;
  }

  /** Of the lines that wait. */
  get bytes(): number {
    return this.#waitingBytes;
  }

  /** The time of the line that follows: not before that of the one before. */
  timeOf(at: Date): Date {
    const backMs = this.#lastMs - at.getTime();
    let ms = backMs > 0 && backMs <= MAX_BACK_MS ? this.#lastMs : at.getTime();
    if (ms === this.#lastMs && this.#atLastMs === LINES_PER_MS) ms += 1;
    if (ms !== this.#lastMs) this.#atLastMs = 0;
    this.#lastMs = ms;
    this.#atLastMs += 1;
    return new Date(ms);
  }

  /** For a line that is not kept, whatever the reason: it is counted. */
  drop(): void {
    this.#dropped += 1;
  }

  /** `isCut`: its producer has left out the rest of it. */
  add(line: LogLine, isCut = false): void {
    if (!this.#admit()) return this.drop();
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
    const message = `${lines} dropped: ${this.#limits} are kept`;
    this.#dropped = 0;
    this.#push({ at, instance, level: 'WARNING', message });
  }

  #push(line: LogLine): void {
    this.#waiting.push({ ...line, at: this.timeOf(line.at) });
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
