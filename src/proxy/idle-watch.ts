// Idle timeouts of sockets. Reads and writes do nothing for them: a sweep compares what each socket has counted since the
// sweep before. The timeout of node:net refreshes a timer for each read, each write and each write that is done, and one
// more for the socket under TLS.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** A timeout is late by at most two sweeps, and never early. A pending write over TLS doubles it. */
const SWEEPS_PER_LIMIT = 16;
const MIN_SWEEP_MS = 5;
const MAX_SWEEP_MS = 5_000;

/** The watches with one limit. */
type Sweep = { readonly watches: Set<IdleWatch>; readonly timer: NodeJS.Timeout };

const sweeps = new Map<number, Sweep>();

/** Calls `onIdle` when all of `sockets` were silent for the limit, and again after each further limit, until `stop`. */
export class IdleWatch {
  readonly #activities: readonly Activity[];
  readonly #onIdle: () => void;
  #limitMs: number;
  #silentSinceMs: number = performance.now();

  constructor(sockets: readonly Socket[], limitMs: number, onIdle: () => void) {
    this.#activities = sockets.map((socket) => new Activity(socket));
    this.#onIdle = onIdle;
    this.#limitMs = limitMs;
    this.#join();
  }

  /** From now on with another limit. */
  restart(limitMs: number): void {
    this.stop();
    this.#limitMs = limitMs;
    this.#silentSinceMs = performance.now();
    this.#join();
  }

  stop(): void {
    const sweep = sweeps.get(this.#limitMs);
    if (!sweep?.watches.delete(this) || sweep.watches.size > 0) return;
    clearInterval(sweep.timer);
    sweeps.delete(this.#limitMs);
  }

  check(nowMs: number): void {
    // Its owner stops it when a socket closes, but a socket may have closed before there was an owner.
    if (this.#activities.every(({ isClosed }) => isClosed)) return this.stop();
    let isActive = false;
    for (const activity of this.#activities) if (activity.hasChanged()) isActive = true;
    if (!isActive && nowMs - this.#silentSinceMs < this.#limitInForce) return;
    this.#silentSinceMs = nowMs;
    if (!isActive) this.#onIdle();
  }

  /** A write over TLS gets a second limit, as from node:net. */
  get #limitInForce(): number {
    return this.#activities.some(({ isWritingTls }) => isWritingTls) ? 2 * this.#limitMs : this.#limitMs;
  }

  #join(): void {
    const sweep = sweeps.get(this.#limitMs) ?? startSweep(this.#limitMs);
    sweep.watches.add(this);
  }
}

function startSweep(limitMs: number): Sweep {
  const watches = new Set<IdleWatch>();
  const sweepAll = (): void => {
    const nowMs = performance.now();
    for (const watch of watches) watch.check(nowMs);
  };
  const everyMs = Math.min(MAX_SWEEP_MS, Math.max(MIN_SWEEP_MS, limitMs / SWEEPS_PER_LIMIT));
  const sweep = { watches, timer: setInterval(sweepAll, everyMs).unref() };
  sweeps.set(limitMs, sweep);
  return sweep;
}

/** What a socket has read and written. */
class Activity {
  readonly #socket: Socket;
  #read = 0;
  #written = 0;
  #unsent = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.hasChanged();
  }

  get isClosed(): boolean {
    return this.#socket.closed;
  }

  /** A large write over TLS, of which nothing shows how much the peer has read. */
  get isWritingTls(): boolean {
    return this.#socket instanceof TLSSocket && this.#socket.writableLength > 0;
  }

  /** Since the call before. */
  hasChanged(): boolean {
    const { bytesRead, bytesWritten } = this.#socket;
    const unsent = unsentBytes(this.#socket);
    const isSame = bytesRead === this.#read && bytesWritten === this.#written && unsent === this.#unsent;
    this.#read = bytesRead;
    this.#written = bytesWritten;
    this.#unsent = unsent;
    return !isSame;
  }
}

/**
 * Falls while a slow peer reads. The handle's queue, which node:net's timeout looks at too, also falls in the middle of a
 * large write in plaintext.
 */
function unsentBytes(socket: Socket): number {
  const { _handle } = socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return socket.writableLength + (_handle?.writeQueueSize ?? 0);
}
