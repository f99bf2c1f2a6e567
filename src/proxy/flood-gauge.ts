// What a client's HTTP/2 session costs beside its requests: pings, settings, window updates, priorities, empty frames,
// padding. Each asks for work and brings none; node:http2 tells of some and passes over others, so that the rest is
// seen by what was read and had no purpose. It measures and tells; it ends nothing.

const TICK_MS = 250;
const TICKS_PER_SECOND = 1_000 / TICK_MS;
// Besides those that an answer earns.
const PING = { burst: 200, perSecond: 50 };
const SETTINGS = { burst: 20, perSecond: 2 };
const BYTES = { burst: 262_144, perSecond: 65_536 };
/** What one request may bring besides its body: a header block at its limit. */
const HEAD_BYTES = 16_384;
/** A frame's head, and the two window updates that a receiver may answer it with. */
const FRAME_BYTES = 9 + 2 * 13;
const PING_BYTES = 17;

export type Flood = 'pings' | 'settings' | 'frames';

const gauges = new Set<FloodGauge>();
let ticker: NodeJS.Timeout | undefined;

export class FloodGauge {
  readonly #bytesRead: () => number;
  readonly #tell: (flood: Flood) => void;
  #seen = 0;
  #pings = 0;
  #settings = 0;
  /** Bytes that may still come without a purpose. */
  #credit = BYTES.burst;

  /** `bytesRead`: how many the client has sent in all; `tell` hears of the first flood and of no other. */
  constructor(bytesRead: () => number, tell: (flood: Flood) => void) {
    this.#bytesRead = bytesRead;
    this.#tell = tell;
    gauges.add(this);
    ticker ??= setInterval(tickAll, TICK_MS).unref();
  }

  onPing(): void {
    this.#pings += 1;
    if (this.#pings > PING.burst) this.#end('pings');
  }

  onSettings(): void {
    this.#settings += 1;
    if (this.#settings > SETTINGS.burst) this.#end('settings');
  }

  onRequest(): void {
    this.#credit += HEAD_BYTES;
  }

  /** A piece of a request's body. */
  onBody(bytes: number): void {
    this.#credit += bytes + FRAME_BYTES;
  }

  /** A piece of an answer. gRPC (in Go, in Java) measures its way by a ping for each, as fast as they come. */
  onAnswer(bytes: number): void {
    this.onBody(bytes + PING_BYTES);
    this.#pings = Math.max(0, this.#pings - 1);
  }

  tick(): void {
    const read = this.#bytesRead();
    this.#credit += BYTES.perSecond / TICKS_PER_SECOND - (read - this.#seen);
    this.#seen = read;
    this.#pings = Math.max(0, this.#pings - PING.perSecond / TICKS_PER_SECOND);
    this.#settings = Math.max(0, this.#settings - SETTINGS.perSecond / TICKS_PER_SECOND);
    if (this.#credit < 0) this.#end('frames');
    this.#credit = Math.min(this.#credit, BYTES.burst);
  }

  stop(): void {
    gauges.delete(this);
    if (gauges.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  }

  #end(flood: Flood): void {
    if (!gauges.has(this)) return;
    this.stop();
    this.#tell(flood);
  }
}

function tickAll(): void {
  for (const gauge of gauges) gauge.tick();
}
