// HTTP/1.1 connections to upstreams. Each belongs to one exchange at a time or is idle in the pool. Listeners are attached
// once and call the current owner, so that reuse costs nothing and no event is lost between owners. Independent of HTTP,
// except for the rule which requests may use a connection that another client opened.
import type { Socket } from 'node:net';
import { IdleWatch } from '../idle-watch.ts';
import { type Refusal, isRefusal } from '../refusal.ts';
import type { DialTarget, Dialler } from './dial.ts';
import type { ConnectionQuota } from './connection-quota.ts';
import { type IdleLimit, IdleLimits, MAX_IDLE_MS } from './idle-limits.ts';

export type UpstreamOwner = {
  onUpstreamData(chunk: Buffer): void;
  onUpstreamDrain(): void;
  onUpstreamEnd(): void;
  onUpstreamTimeout(): void;
  /** Closed or failed; `code` of the error, if there was one. */
  onUpstreamClose(code: string | undefined): void;
  /** One of the other callbacks threw. */
  onBug(error: unknown): void;
};

// After so short an idle time the upstream's timer has not fired: requests that cannot be retried may use the connection.
const FRESH_MS = 2_000;
const SWEEP_MS = 500;

export class UpstreamConnection {
  readonly socket: Socket;
  readonly key: string;
  uses = 0;
  /** Id of the client connection that used it last. */
  lastClient = 0;
  idleSinceMs = 0;
  idleLimitMs = 0;
  provenIdleMs = 0;
  /** The host has announced its limit. */
  hasAnnounced = false;
  /** Called when the host closes the connection while it is idle. */
  onIdleEnd: ((connection: UpstreamConnection) => void) | undefined;
  readonly #listeners: [event: string, listener: (...args: never[]) => void][];
  readonly #idle: IdleWatch;
  #owner: UpstreamOwner | undefined;
  #errorCode: string | undefined;

  constructor(socket: Socket, key: string, responseIdleMs: number) {
    this.socket = socket;
    this.key = key;
    this.#listeners = [
      ['data', (chunk: Buffer) => this.#onData(chunk)],
      ['drain', () => this.#owner?.onUpstreamDrain()],
      ['end', () => this.#notify((owner) => owner.onUpstreamEnd())],
      ['error', (error: NodeJS.ErrnoException) => this.#onError(error)],
      ['close', () => this.#onClose()],
    ];
    for (const [event, listener] of this.#listeners)
      socket.on(event, listener as (...args: unknown[]) => void);
    const onIdle = (): void => this.#notify((owner) => owner.onUpstreamTimeout());
    this.#idle = new IdleWatch([socket], responseIdleMs, onIdle);
  }

  /** Undefined while the connection is idle: every event ends an idle connection. */
  #ownerOrEnd(): UpstreamOwner | undefined {
    if (!this.#owner && !this.socket.destroyed) this.onIdleEnd?.(this);
    if (!this.#owner) this.socket.destroy();
    return this.#owner;
  }

  /** An error thrown by the owner is reported to the owner and does not end the process. */
  #notify(call: (owner: UpstreamOwner) => void): void {
    const owner = this.#ownerOrEnd();
    if (!owner) return;
    try {
      call(owner);
    } catch (error) {
      owner.onBug(error);
    }
  }

  /** Like `#notify`, without a closure for each chunk. */
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
    if (!this.#owner) this.onIdleEnd?.(this);
  }

  #onClose(): void {
    this.#idle.stop();
    this.#notify((owner) => owner.onUpstreamClose(this.#errorCode));
  }

  own(owner: UpstreamOwner, clientId: number): void {
    this.#owner = owner;
    this.onIdleEnd = undefined;
    this.lastClient = clientId;
    this.uses += 1;
  }

  disown(): void {
    this.#owner = undefined;
  }

  /** Destroys the connection without further callbacks. */
  discard(): void {
    this.#owner = undefined;
    this.onIdleEnd = undefined;
    this.socket.destroy();
  }

  /** Returns the paused socket without the listeners of this connection. */
  detach(): Socket {
    const { socket } = this;
    this.#idle.stop();
    socket.pause();
    for (const [event, listener] of this.#listeners)
      socket.off(event, listener as (...args: unknown[]) => void);
    return socket;
  }

  /** Honours `Keep-Alive: timeout=n` as n - 1 seconds, at most a minute. */
  allowIdle(timeoutSeconds: number | undefined): void {
    if (timeoutSeconds === undefined) return;
    this.hasAnnounced = true;
    this.idleLimitMs = Math.min(MAX_IDLE_MS, Math.max(0, (timeoutSeconds - 1) * 1000));
    this.provenIdleMs = this.idleLimitMs;
  }

  /** What was learnt about the host; what it has announced prevails. */
  limitIdle({ limitMs, provenMs }: IdleLimit): void {
    if (this.hasAnnounced) return;
    this.idleLimitMs = limitMs;
    this.provenIdleMs = provenMs;
  }

  get isUsable(): boolean {
    const { socket } = this;
    return !socket.destroyed && socket.readable && socket.writable && socket.writableLength === 0;
  }
}

export type WantedConnection = {
  readonly key: string;
  readonly clientId: number;
  readonly isIdempotent: boolean;
  /** It is sent again if the connection turns out to be closed. */
  readonly isRetryable: boolean;
};

export type PoolOptions = {
  readonly dialler: Dialler;
  readonly responseIdleMs: number;
  /** Idle connections of the whole process. */
  readonly quota: ConnectionQuota;
  /** Limits of this pool, read at each use: they may change. */
  readonly maxIdle: number;
  readonly maxIdlePerHost: number;
};

/** The idle connections of one sandbox. */
export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #idle = new Map<string, UpstreamConnection[]>();
  #idleCount = 0;
  #isClosed = false;
  #prefix = '';
  readonly #limits = new IdleLimits();
  readonly #onIdleEnd = (one: UpstreamConnection): void => {
    one.onIdleEnd = undefined;
    // Before its first request a connection has another limit, that for a request head.
    if (one.uses > 0) this.#limits.onClosed(one.key, performance.now() - one.idleSinceMs);
  };
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  get idleCount(): number {
    return this.#idleCount;
  }

  take({ key, clientId, isIdempotent, isRetryable }: WantedConnection): UpstreamConnection | undefined {
    const list = this.#idle.get(key);
    if (!list) return undefined;
    const now = performance.now();
    // Newest first: the upstream is most likely to close those that are idle longest.
    for (let i = list.length - 1; i >= 0; i -= 1) {
      const one = list[i];
      if (!one) continue;
      const idleMs = now - one.idleSinceMs;
      if (!one.isUsable || idleMs >= one.idleLimitMs) {
        list.splice(i, 1);
        this.#release(1);
        this.#retire(one);
      } else if (
        isRetryable ||
        (idleMs < one.provenIdleMs && (isIdempotent || one.lastClient === clientId || idleMs < FRESH_MS))
      ) {
        if (i === list.length - 1) list.pop();
        else list.splice(i, 1);
        this.#release(1);
        return one;
      }
    }
    return undefined;
  }

  async open(key: string, target: DialTarget, signal: AbortSignal): Promise<UpstreamConnection | Refusal> {
    const { dialler, responseIdleMs } = this.#options;
    const socket = await dialler.dial(target, signal);
    return isRefusal(socket) ? socket : new UpstreamConnection(socket, key, responseIdleMs);
  }

  /** Pools a connection that was just opened. */
  adopt(key: string, socket: Socket): void {
    this.give(new UpstreamConnection(socket, key, this.#options.responseIdleMs));
  }

  /** Returns a connection whose exchange ended cleanly. */
  give(connection: UpstreamConnection, nowMs: number = performance.now()): void {
    connection.disown();
    const list = this.#idle.get(connection.key);
    const isWanted = !this.#isClosed && connection.key.startsWith(this.#prefix);
    if (!isWanted || this.#isFull(list?.length ?? 0) || !connection.isUsable) {
      connection.socket.destroy();
      return;
    }
    connection.idleSinceMs = nowMs;
    connection.limitIdle(this.#limits.of(connection.key));
    connection.onIdleEnd = this.#onIdleEnd;
    this.#idleCount += 1;
    this.#options.quota.take();
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    if (list) list.push(connection);
    else this.#idle.set(connection.key, [connection]);
  }

  /** From now on only connections whose key has this prefix are pooled: the others belong to an older revision. */
  keepOnly(prefix: string): void {
    this.#prefix = prefix;
    this.#drop((key) => !key.startsWith(prefix));
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    this.#drop(() => true);
  }

  #isFull(idleToHost: number): boolean {
    const { quota, maxIdle, maxIdlePerHost } = this.#options;
    return quota.isExhausted || this.#idleCount >= maxIdle || idleToHost >= maxIdlePerHost;
  }

  #release(count: number): void {
    this.#idleCount -= count;
    this.#options.quota.release(count);
  }

  /** Destroys a connection that is unusable, or was idle for as long as it may be. */
  #retire(one: UpstreamConnection): void {
    if (one.isUsable && !one.hasAnnounced && one.uses > 0) this.#limits.onOutlived(one.key, one.idleLimitMs);
    one.onIdleEnd = undefined;
    one.socket.destroy();
  }

  #sweep(): void {
    const now = performance.now();
    for (const [key, list] of this.#idle) {
      const isUsable = (one: UpstreamConnection): boolean =>
        one.isUsable && now - one.idleSinceMs < one.idleLimitMs;
      const usable = list.filter(isUsable);
      for (const one of list) if (!isUsable(one)) this.#retire(one);
      this.#release(list.length - usable.length);
      if (usable.length === 0) this.#idle.delete(key);
      else this.#idle.set(key, usable);
    }
    // Hundreds of idle sandboxes must not wake the process.
    if (this.#idle.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #drop(isDropped: (key: string) => boolean): void {
    for (const [key, list] of this.#idle) {
      if (!isDropped(key)) continue;
      for (const one of list) one.socket.destroy();
      this.#release(list.length);
      this.#idle.delete(key);
    }
  }
}
