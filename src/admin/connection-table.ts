// The connections of the admin API and which of them to give up. Whoever shares its loopback can fill every place, so the
// oldest connection that has not shown the token makes room for a new one: the operator always gets in.
import type { Socket } from 'node:net';
import type { RequestBody } from './request-body.ts';

export type Connection = {
  /** It has shown the token. */
  isTrusted: boolean;
  /** Requests that are not answered yet. */
  running: number;
  /** The body of the latest request. */
  body: RequestBody | undefined;
};

export class ConnectionTable {
  readonly #connections: Map<Socket, Connection> = new Map();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    if (this.#connections.size >= this.#max && !this.#makeRoom()) {
      socket.destroy();
      return;
    }
    this.#connections.set(socket, { isTrusted: false, running: 0, body: undefined });
    socket.once('close', () => this.#connections.delete(socket));
  }

  get(socket: Socket): Connection | undefined {
    return this.#connections.get(socket);
  }

  destroyIdle(): void {
    for (const [socket, { running }] of this.#connections) if (running === 0) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #makeRoom(): boolean {
    for (const [socket, { isTrusted }] of this.#connections) {
      if (isTrusted) continue;
      this.#connections.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }
}
