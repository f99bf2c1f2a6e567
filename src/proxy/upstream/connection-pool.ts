// Connections to hosts: each belongs to one exchange at a time or lies idle in the pool. Listeners are attached
// once and speak to the owner of the moment, so that reuse costs nothing and no event is lost between owners.
// It knows nothing of HTTP but which requests may use a connection that another client warmed.
import type { Socket } from 'node:net';
import { type Refusal, isRefusal } from '../refusal.ts';
import type { DialTarget, Dialler } from './dial.ts';
import type { Places } from './connection-quota.ts';

export type UpstreamOwner = {
  onUpstreamData(chunk: Buffer): void;
  onUpstreamDrain(): void;
  onUpstreamEnd(): void;
  onUpstreamTimeout(): void;
  /** Closed or broken; `code` of the error if there was one. */
  onUpstreamClose(code: string | undefined): void;
  /** Something that it was told made it throw. */
  onBug(error: unknown): void;
};

// node:http origins close after 5 s; a request that meets the closing is lost if it may not be repeated.
const IDLE_MS = 4_000;
const MAX_IDLE_MS = 60_000;
// Idle this briefly, a connection has not met its origin's timer: requests that may not be repeated may use it.
const FRESH_MS = 2_000;
const SWEEP_MS = 500;

export class UpstreamConnection {
  readonly socket: Socket;
  readonly key: string;
  uses = 0;
  /** The client connection that used it last. */
  lastClient = 0;
  idleSinceMs = 0;
  idleLimitMs: number = IDLE_MS;
  readonly #listeners: [event: string, listener: (...args: never[]) => void][];
  #owner: UpstreamOwner | undefined;
  #errorCode: string | undefined;

  constructor(socket: Socket, key: string, responseIdleMs: number) {
    this.socket = socket;
    this.key = key;
    socket.setTimeout(responseIdleMs);
    this.#listeners = [
      ['data', (chunk: Buffer) => this.#onData(chunk)],
      ['drain', () => this.#owner?.onUpstreamDrain()],
      ['end', () => this.#report((owner) => owner.onUpstreamEnd())],
      ['timeout', () => this.#report((owner) => owner.onUpstreamTimeout())],
      ['error', (error: NodeJS.ErrnoException) => this.#onError(error)],
      ['close', () => this.#report((owner) => owner.onUpstreamClose(this.#errorCode))],
    ];
    for (const [event, listener] of this.#listeners)
      socket.on(event, listener as (...args: unknown[]) => void);
  }

  /** Undefined while the connection is idle: any event ends an idle connection. */
  #ownerOrEnd(): UpstreamOwner | undefined {
    if (!this.#owner) this.socket.destroy();
    return this.#owner;
  }

  /** A bug of the owner is for the owner to report, not the end of the process. */
  #report(say: (owner: UpstreamOwner) => void): void {
    const owner = this.#ownerOrEnd();
    if (!owner) return;
    try {
      say(owner);
    } catch (error) {
      owner.onBug(error);
    }
  }

  /** As `#tell`, without a function for each chunk. */
  #onData(chunk: Buffer): void {
    const owner = this.#ownerOrEnd();
    if (!owner) return;
    try {
      owner.onUpstreamData(chunk);
    } catch (error) {
      owner.onBug(error);
    }
  }

  #onError(error: NodeJS.ErrnoException): void {
    this.#errorCode = error.code ?? error.name;
  }

  own(owner: UpstreamOwner, clientId: number): void {
    this.#owner = owner;
    this.lastClient = clientId;
    this.uses += 1;
  }

  disown(): void {
    this.#owner = undefined;
  }

  /** Ends it; nobody hears of it any more. */
  discard(): void {
    this.#owner = undefined;
    this.socket.destroy();
  }

  /** Hands the paused socket over: no listener of this connection remains. */
  detach(): Socket {
    const { socket } = this;
    socket.pause();
    for (const [event, listener] of this.#listeners)
      socket.off(event, listener as (...args: unknown[]) => void);
    return socket;
  }

  /** Honours `Keep-Alive: timeout=n` as n - 1 seconds, within a minute. */
  allowIdle(timeoutSeconds: number | undefined): void {
    if (timeoutSeconds === undefined) return;
    this.idleLimitMs = Math.min(MAX_IDLE_MS, Math.max(0, (timeoutSeconds - 1) * 1000));
  }

  get isUsable(): boolean {
    const { socket } = this;
    return !socket.destroyed && socket.readable && socket.writable && socket.writableLength === 0;
  }
}

export type Wanted = {
  readonly key: string;
  readonly clientId: number;
  readonly isIdempotent: boolean;
};

export type Upstream = {
  take(wanted: Wanted): UpstreamConnection | undefined;
  open(key: string, target: DialTarget, signal: AbortSignal): Promise<UpstreamConnection | Refusal>;
  /** Keeps a connection that has just been made for whoever comes first. */
  adopt(key: string, socket: Socket): void;
  /** Returns a connection whose exchange ended cleanly. */
  give(connection: UpstreamConnection): void;
  /** From here on only connections whose key begins so are kept idle: the others belong to an older revision. */
  keepOnly(prefix: string): void;
  close(): void;
  readonly idleCount: number;
};

export function createUpstream(options: {
  dialler: Dialler;
  responseIdleMs: number;
  /** Of the process. */
  places: Places;
  readonly maxIdle: number;
  readonly maxIdlePerHost: number;
}): Upstream {
  // The bounds are asked for at each use: they may change while it runs.
  const { dialler, responseIdleMs, places } = options;
  const idle = new Map<string, UpstreamConnection[]>();
  let idleCount = 0;
  let isClosed = false;
  let prefix = '';
  let sweeper: NodeJS.Timeout | undefined;

  function leaves(count: number): void {
    idleCount -= count;
    places.give(count);
  }

  function sweep(): void {
    const now = performance.now();
    for (const [key, list] of idle) {
      const kept = list.filter((one) => {
        const isKept = one.isUsable && now - one.idleSinceMs < one.idleLimitMs;
        if (!isKept) one.socket.destroy();
        return isKept;
      });
      leaves(list.length - kept.length);
      if (kept.length === 0) idle.delete(key);
      else idle.set(key, kept);
    }
    // Hundreds of sandboxes that rest should not wake the process.
    if (idle.size > 0) return;
    clearInterval(sweeper);
    sweeper = undefined;
  }

  function drop(isDropped: (key: string) => boolean): void {
    for (const [key, list] of idle) {
      if (!isDropped(key)) continue;
      for (const one of list) one.socket.destroy();
      leaves(list.length);
      idle.delete(key);
    }
  }

  function give(connection: UpstreamConnection): void {
    connection.disown();
    const list = idle.get(connection.key);
    const isFull =
      places.areTaken || idleCount >= options.maxIdle || (list?.length ?? 0) >= options.maxIdlePerHost;
    if (isClosed || isFull || !connection.key.startsWith(prefix) || !connection.isUsable) {
      connection.socket.destroy();
      return;
    }
    connection.idleSinceMs = performance.now();
    idleCount += 1;
    places.take();
    sweeper ??= setInterval(sweep, SWEEP_MS).unref();
    if (list) list.push(connection);
    else idle.set(connection.key, [connection]);
  }

  return {
    take({ key, clientId, isIdempotent }) {
      const list = idle.get(key);
      if (!list) return undefined;
      const now = performance.now();
      // Newest first: the longest idle are the likeliest to be closing at the other end.
      for (let i = list.length - 1; i >= 0; i -= 1) {
        const one = list[i];
        if (!one) continue;
        const idleMs = now - one.idleSinceMs;
        if (!one.isUsable || idleMs >= one.idleLimitMs) {
          list.splice(i, 1);
          leaves(1);
          one.socket.destroy();
        } else if (isIdempotent || one.lastClient === clientId || idleMs < FRESH_MS) {
          if (i === list.length - 1) list.pop();
          else list.splice(i, 1);
          leaves(1);
          return one;
        }
      }
      return undefined;
    },

    async open(key, target, signal) {
      const socket = await dialler.dial(target, signal);
      if (isRefusal(socket)) return socket;
      return new UpstreamConnection(socket, key, responseIdleMs);
    },

    adopt(key, socket) {
      give(new UpstreamConnection(socket, key, responseIdleMs));
    },

    give,

    keepOnly(wanted) {
      prefix = wanted;
      drop((key) => !key.startsWith(prefix));
    },

    close() {
      isClosed = true;
      clearInterval(sweeper);
      drop(() => true);
    },

    get idleCount() {
      return idleCount;
    },
  };
}
