// What a client's HTTP/2 session costs beside its requests: pings, settings, window updates, priorities, empty frames,
// padding, bodies in crumbs. Each asks for work and brings none; node:http2 tells of some and passes over others, so
// that the rest is seen by what was read and had no purpose. It measures and tells; it ends nothing.
import { TICKS_PER_SECOND } from './session-watch.ts';

// Besides those that an answer earns.
const PING = { burst: 200, perSecond: 50 };
const SETTINGS = { burst: 20, perSecond: 2 };
const BYTES = { burst: 262_144, perSecond: 65_536 };
/** Pieces of bodies that are smaller than they should be: each costs what a large one costs. */
const PIECES = { burst: 20_000, perSecond: 20_000 };
/** So many bytes of a body earn a piece. */
const PIECE_BYTES = 64;
/** What one request may bring besides its body: a header block at its limit. */
const HEAD_BYTES = 16_384;
/** What a client may send of a body before anybody takes it: the window that node:http2 grants each stream. */
const WINDOW_BYTES = 65_535;
/** A frame's head, and the two window updates that a receiver may answer it with. */
const FRAME_BYTES = 9 + 2 * 13;
const PING_BYTES = 17;

export type Flood = 'pings' | 'settings' | 'frames' | 'pieces';

export class FloodGauge {
  readonly #bytesRead: () => number;
  readonly #report: (flood: Flood) => void;
  #isOver = false;
  #seen = 0;
  #pieces = 0;
  #pings = 0;
  #settings = 0;
  /** Bytes that may still come without a purpose. */
  #credit = BYTES.burst;
  /** Bytes that may lie unread, which are no less honest for it. */
  #unread = 0;

  /** `bytesRead`: how many the client has sent in all; `tell` hears of the first flood and of no other. */
  constructor(bytesRead: () => number, report: (flood: Flood) => void) {
    this.#bytesRead = bytesRead;
    this.#report = report;
  }

  onPing(): void {
    this.#pings += 1;
    if (this.#pings > PING.burst) this.#end('pings');
  }

  onSettings(): void {
    this.#settings += 1;
    if (this.#settings > SETTINGS.burst) this.#end('settings');
  }

  onRequest(hasBody: boolean): void {
    this.#credit += HEAD_BYTES;
    if (hasBody) this.#unread += WINDOW_BYTES;
  }

  /** What lay unread of it is gone, and is told by nobody. */
  onRequestEnd(hasBody: boolean): void {
    if (!hasBody) return;
    this.#unread -= WINDOW_BYTES;
    this.#credit += WINDOW_BYTES;
  }

  /** A piece of a request's body. */
  onBody(bytes: number): void {
    this.#credit += bytes + FRAME_BYTES;
    this.#pieces += 1 - bytes / PIECE_BYTES;
    if (this.#pieces > PIECES.burst) this.#end('pieces');
  }

  /** A piece of an answer. gRPC (in Go, in Java) measures its way by a ping for each, as fast as they come. */
  onResponse(bytes: number): void {
    this.#credit += bytes + FRAME_BYTES + PING_BYTES;
    this.#pings = Math.max(0, this.#pings - 1);
  }

  tick(): void {
    const read = this.#bytesRead();
    this.#credit += BYTES.perSecond / TICKS_PER_SECOND - (read - this.#seen);
    this.#seen = read;
    this.#pings = Math.max(0, this.#pings - PING.perSecond / TICKS_PER_SECOND);
    this.#settings = Math.max(0, this.#settings - SETTINGS.perSecond / TICKS_PER_SECOND);
    this.#pieces = Math.max(0, this.#pieces - PIECES.perSecond / TICKS_PER_SECOND);
    if (this.#credit + this.#unread < 0) this.#end('frames');
    this.#credit = Math.min(this.#credit, BYTES.burst);
  }

  #end(flood: Flood): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#report(flood);
  }
}
