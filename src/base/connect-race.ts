// Connects to the first of several addresses that responds (RFC 8305 §5). node:net's autoSelectFamily destroys an attempt after
// half a second, before the second SYN is sent, so that a host behind a slow or lossy path is never reached.
import type { Socket } from 'node:net';

/** RFC 8305 §5 recommends 250 ms between attempts. */
const ATTEMPT_DELAY_MS = 250;
/** Silence after which a peer is probed: NATs drop flows that are silent for minutes, as while a model thinks, without a word. */
export const KEEP_ALIVE_PROBE_MS = 30_000;

type RaceAddress = { readonly family: 4 | 6 };

export type RaceOptions<A extends RaceAddress, S extends Socket> = {
  /** At least one. The families alternate, beginning with that of the first address (RFC 8305 §4). */
  readonly addresses: readonly A[];
  /** Opens a connection to one address; undefined if no further connection may be opened. */
  open(address: A): S | undefined;
  onFailed(address: A): void;
  /** Called once, unless the race was stopped: with the socket while it emits `connect`, or with the first error. */
  onEnd(result: S | NodeJS.ErrnoException): void;
};

export class ConnectRace<A extends RaceAddress, S extends Socket> {
  readonly #options: RaceOptions<A, S>;
  readonly #waiting: A[];
  readonly #running = new Map<S, A>();
  #timer: NodeJS.Timeout | undefined;
  #error: NodeJS.ErrnoException | undefined;
  #hasStarted = false;

  constructor(options: RaceOptions<A, S>) {
    this.#options = options;
    this.#waiting = alternating(options.addresses);
  }

  /** Throws what `open` throws for the first address. */
  start(): void {
    this.#startNext();
    this.#hasStarted = true;
  }

  /** Destroys the attempts under way, without further calls. */
  stop(): void {
    clearTimeout(this.#timer);
    for (const socket of this.#running.keys()) socket.destroy();
    this.#running.clear();
  }

  /** The deadline has passed: stops, and reports the addresses that have not responded. */
  expire(): void {
    const silent = [...this.#running.values()];
    this.stop();
    for (const address of silent) this.#options.onFailed(address);
  }

  #startNext(): void {
    clearTimeout(this.#timer);
    const address = this.#waiting.shift();
    const socket = address && this.#open(address);
    if (!address || !socket) {
      this.#waiting.length = 0;
      if (this.#running.size === 0) this.#end(this.#error ?? new Error('no connection was opened'));
      return;
    }
    this.#running.set(socket, address);
    this.#watch(socket);
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#startNext(), ATTEMPT_DELAY_MS);
  }

  #open(address: A): S | undefined {
    try {
      return this.#options.open(address);
    } catch (error) {
      if (!this.#hasStarted) throw error;
      // Thrown out of a timer, it would end the process.
      this.#error ??= error instanceof Error ? error : new Error('open failed');
      return undefined;
    }
  }

  #watch(socket: S): void {
    const onError = (error: NodeJS.ErrnoException): void => this.#onFailed(socket, error);
    const onClose = (): void =>
      this.#onFailed(socket, Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
    const onConnect = (): void => {
      if (!this.#running.delete(socket)) return;
      // The new owner sets its own listeners in this turn. Those of a socket that lost stay: its late errors must be handled.
      socket.off('error', onError).off('close', onClose);
      socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
      this.#end(socket);
    };
    socket.on('error', onError).on('close', onClose).once('connect', onConnect);
  }

  #onFailed(socket: S, error: NodeJS.ErrnoException): void {
    const address = this.#running.get(socket);
    if (address === undefined) return;
    this.#running.delete(socket);
    socket.destroy();
    this.#error ??= error;
    this.#options.onFailed(address);
    this.#startNext();
  }

  #end(result: S | NodeJS.ErrnoException): void {
    this.stop();
    this.#options.onEnd(result);
  }
}

/** The order within each family stays. */
function alternating<A extends RaceAddress>(addresses: readonly A[]): A[] {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family);
  const second = addresses.filter(({ family }) => family !== addresses[0]?.family);
  const order: A[] = [];
  for (let i = 0; order.length < addresses.length; i += 1)
    order.push(...first.slice(i, i + 1), ...second.slice(i, i + 1));
  return order;
}
