// The connections of the admin API and which of them to give up. Whoever shares its loopback can fill every place, so the
// oldest connection that has not shown the token makes room for a new one: the operator always gets in.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { PacedSocket } from './paced-socket.ts';
import type { RequestBody } from './request-body.ts';

export type Connection = {
  readonly socket: PacedSocket;
  /** It has shown the token. */
  isTrusted: boolean;
  /** Requests that are not answered yet. */
  running: number;
  /** The body of the latest request, and its answer. */
  body: RequestBody | undefined;
  response: ServerResponse | undefined;
};

export type Places = {
  readonly connections: number;
  /** Of these, for connections that have not shown the token. */
  readonly outsiders: number;
};

export class ConnectionTable {
  /** Those with the token in the order of their latest requests. */
  readonly #connections: Map<Duplex, Connection> = new Map();
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
  }

  /** Undefined when there is no place; the connection is ended then. */
  add(raw: Socket): PacedSocket | undefined {
    if (!this.#makeSpace()) {
      raw.destroy();
      return undefined;
    }
    const socket = new PacedSocket(raw);
    const connection = { socket, isTrusted: false, running: 0, body: undefined, response: undefined };
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    return socket;
  }

  get(socket: Duplex): Connection | undefined {
    return this.#connections.get(socket);
  }

  trust(connection: Connection): void {
    const { socket } = connection;
    connection.isTrusted = true;
    socket.trust();
    if (this.#connections.delete(socket)) this.#connections.set(socket, connection);
  }

  destroyIdle(): void {
    for (const [socket, { running }] of this.#connections) if (running === 0) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #makeSpace(): boolean {
    const all = [...this.#connections.values()];
    const outsiders = all.filter(({ isTrusted }) => !isTrusted);
    if (outsiders.length < this.#places.outsiders && all.length < this.#places.connections) return true;
    const leaver = outsiders[0] ?? all.find(({ running }) => running === 0);
    if (leaver === undefined) return false;
    this.#connections.delete(leaver.socket);
    leaver.socket.destroy();
    return true;
  }
}
