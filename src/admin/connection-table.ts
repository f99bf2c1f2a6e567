// The connections of the admin API, and which of them to end. A process that shares its loopback can use up every one, so
// the oldest one that has not shown the token is ended for a new one: the operator can always connect.
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { PacedSocket } from '../base/http/paced-socket.ts';

export type ConnectionLimits = {
  readonly connections: number;
  /** Of these, connections that have not shown the token. */
  readonly unauthenticated: number;
};

const UNAUTHENTICATED_BYTES = 1024;
const AUTHENTICATED_BYTES = 16 * 1024;

export class ConnectionTable {
  /** Authenticated ones in the order of their latest requests. */
  readonly #sockets: Map<Duplex, PacedSocket> = new Map();
  readonly #authenticated: WeakSet<Duplex> = new WeakSet();
  readonly #limits: ConnectionLimits;
  readonly #isBusy: (socket: Duplex) => boolean;

  /** `isBusy`: a request on the connection has no complete response yet. */
  constructor(limits: ConnectionLimits, isBusy: (socket: Duplex) => boolean) {
    this.#limits = limits;
    this.#isBusy = isBusy;
  }

  /** Undefined when no connection can be ended for this one, which is destroyed then. */
  add(raw: Socket): PacedSocket | undefined {
    if (!this.#evict()) {
      raw.destroy();
      return undefined;
    }
    const socket = new PacedSocket(raw, UNAUTHENTICATED_BYTES);
    this.#sockets.set(socket, socket);
    socket.once('close', () => this.#sockets.delete(socket));
    return socket;
  }

  /** The connection has shown the token: it may send faster, and is the last to be ended. */
  authenticate(socket: Duplex): void {
    const paced = this.#sockets.get(socket);
    if (paced === undefined) return;
    this.#authenticated.add(socket);
    paced.pieceBytes = AUTHENTICATED_BYTES;
    this.#sockets.delete(socket);
    this.#sockets.set(socket, paced);
  }

  #evict(): boolean {
    const all = [...this.#sockets.keys()];
    const unauthenticated = all.filter((socket) => !this.#authenticated.has(socket));
    if (unauthenticated.length < this.#limits.unauthenticated && all.length < this.#limits.connections)
      return true;
    const evicted = unauthenticated[0] ?? all.find((socket) => !this.#isBusy(socket));
    if (evicted === undefined) return false;
    this.#sockets.delete(evicted);
    evicted.destroy();
    return true;
  }
}
