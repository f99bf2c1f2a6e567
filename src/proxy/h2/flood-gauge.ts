// Detects HTTP/2 control-frame floods: pings, settings, window updates, priorities, empty frames, padding, bodies in tiny
// pieces, and resets. node:http2 reports some of them; the others are inferred from bytes that were read without a purpose. The gauge
// only measures and reports.
import { TICKS_PER_SECOND } from './session-watch.ts';

// In addition to those that responses justify.
const PING = { burst: 200, perSecond: 50 };
const SETTINGS = { burst: 20, perSecond: 2 };
/** Resets of requests before their response was complete. */
const RESETS = { burst: 200, perSecond: 100 };
const BYTES = { burst: 262_144, perSecond: 65_536 };
/** Allowed body pieces that are smaller than necessary: each costs as much as a large one. */
const PIECES = { burst: 20_000, perSecond: 20_000 };
/** This many bytes of a body justify one piece. */
const PIECE_BYTES = 64;
/** What one request may bring besides its body: a header block at its limit. */
const HEAD_BYTES = 16_384;
/** How much body a client may send before it is read: the window that node:http2 grants each stream. */
const WINDOW_BYTES = 65_535;
/** The head of a frame, and the two window updates with which a receiver may acknowledge it. */
const FRAME_BYTES = 9 + 2 * 13;
const PING_BYTES = 17;

export type Flood = 'pings' | 'settings' | 'frames' | 'pieces' | 'resets';

export class FloodGauge {
  readonly #bytesRead: () => number;
  readonly #report: (flood: Flood) => void;
  readonly #resetBurst: number;
  #hasEnded = false;
  #seen = 0;
  #pieces = 0;
  #pings = 0;
  #settings = 0;
  #resets = 0;
  /** Bytes that may still arrive without a purpose. */
  #credit = BYTES.burst;
  /** Bytes that may be buffered unread and are legitimate. */
  #unread = 0;

  /** `bytesRead`: all bytes that the client has sent; `report` is called for the first flood only. */
  constructor(bytesRead: () => number, report: (flood: Flood) => void, resetBurst: number = RESETS.burst) {
    this.#bytesRead = bytesRead;
    this.#report = report;
    this.#resetBurst = resetBurst;
  }

  onPing(): void {
    this.#pings += 1;
    if (this.#pings > PING.burst) this.#end('pings');
  }

  onSettings(): void {
    this.#settings += 1;
    if (this.#settings > SETTINGS.burst) this.#end('settings');
  }

  /** The client reset a stream before its response was complete. */
  onReset(): void {
    this.#resets += 1;
    if (this.#resets > this.#resetBurst) this.#end('resets');
  }

  onRequest(hasBody: boolean): void {
    this.#credit += HEAD_BYTES;
    if (hasBody) this.#unread += WINDOW_BYTES;
  }

  /** Its unread bytes were discarded without an event. */
  onRequestEnd(hasBody: boolean): void {
    if (!hasBody) return;
    this.#unread -= WINDOW_BYTES;
    this.#credit += WINDOW_BYTES;
  }

  /** A piece of a request body. */
  onBody(bytes: number): void {
    this.#credit += bytes + FRAME_BYTES;
    this.#pieces += 1 - bytes / PIECE_BYTES;
    if (this.#pieces > PIECES.burst) this.#end('pieces');
  }

  /** A piece of a response. gRPC in Go and Java sends a ping for each to measure its bandwidth. */
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
    this.#resets = Math.max(0, this.#resets - RESETS.perSecond / TICKS_PER_SECOND);
    this.#pieces = Math.max(0, this.#pieces - PIECES.perSecond / TICKS_PER_SECOND);
    if (this.#credit + this.#unread < 0) this.#end('frames');
    this.#credit = Math.min(this.#credit, BYTES.burst);
  }

  #end(flood: Flood): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#report(flood);
  }
}
