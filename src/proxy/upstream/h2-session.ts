// One HTTP/2 session with an upstream. It serves the streams of one client connection at a time: an upstream that reacts to
// one client (resets, floods) ends only what it shares with that client.
import type { ClientHttp2Session, ClientHttp2Stream, SecureClientSessionOptions } from 'node:http2';
import type { Socket } from 'node:net';
import { LINGER_MS, type Limits, MAX_STREAM_WINDOW_BYTES, SESSION_WINDOW_BYTES } from '../limits.ts';
import type { Refusal } from '../refusal.ts';
import { refuseClosed } from './client-certificate.ts';

// Before the SETTINGS of the upstream arrive, one stream may be opened: the first request need not wait for them, and no
// burst exceeds the limit in them.
const STREAMS_BEFORE_SETTINGS = 1;
const SETTINGS_MS = 1_000;
const STREAMS_WITHOUT_SETTINGS = 100;
/** HTTP/2 servers send GOAWAY before they close, so a request that crosses it is known to be unprocessed. */
const IDLE_MS = 30_000;

/** Name, value, name, value, … as node:http2 gives and takes them. */
export type HeaderList = readonly string[];

/** The right to one stream of a session. */
export type StreamSlot = {
  readonly session: UpstreamSession;
  /** Whether the session carried a request before. */
  readonly isReused: boolean;
  /** Returns the slot: the stream has ended or never began. */
  discard(): void;
};

export class UpstreamSession {
  readonly http2: ClientHttp2Session;
  readonly key: string;
  /** Id of the client connection that it serves; 0 while it serves none. */
  clientId = 0;
  streams = 0;
  uses = 0;
  idleSinceMs: number = performance.now();
  /** Its credentials are bound to the connection: it is not reused after its stream. */
  isPrivate = false;
  /** Streams above this id were not processed (GOAWAY). */
  lastReadId: number | undefined;
  /** Resolves when the stream limit of the upstream is known or its deadline has passed. */
  readonly settled: Promise<void>;
  isSettled = false;
  /** The upstream has sent its last byte. */
  hasEnded = false;
  readonly #running: Set<ClientHttp2Stream> = new Set();
  readonly #socket: Socket;
  #maxStreams = STREAMS_BEFORE_SETTINGS;

  constructor(http2: ClientHttp2Session, socket: Socket, key: string) {
    this.http2 = http2;
    this.#socket = socket;
    this.key = key;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.settled = promise;
    const settle = (): void => {
      clearTimeout(timer);
      this.isSettled = true;
      resolve();
    };
    const timer = setTimeout(() => {
      this.#maxStreams = STREAMS_WITHOUT_SETTINGS;
      settle();
    }, SETTINGS_MS);
    http2.on('remoteSettings', ({ maxConcurrentStreams }) => {
      this.#maxStreams = maxConcurrentStreams ?? Number.POSITIVE_INFINITY;
      settle();
    });
    http2.on('goaway', (_code: number, lastStreamId: number) => {
      this.lastReadId = lastStreamId;
    });
    // Streams report it; this listener only prevents an unhandled 'error'.
    http2.on('error', () => undefined);
    http2.once('close', settle);
    socket.once('end', () => this.#onEnd());
  }

  get isOpen(): boolean {
    return !this.http2.closed && !this.http2.destroyed && !this.#socket.destroyed && !this.hasEnded;
  }

  get hasCapacity(): boolean {
    return this.isOpen && this.streams < this.#maxStreams;
  }

  get isIdle(): boolean {
    return this.streams === 0;
  }

  isStale(nowMs: number): boolean {
    // A session that the upstream is closing may still have running streams.
    return this.isIdle && (!this.isOpen || nowMs - this.idleSinceMs >= IDLE_MS);
  }

  /** Whether the upstream has declared stream `id` unprocessed; undefined: it was never sent. */
  hasSkipped(id: number | undefined): boolean {
    return id === undefined || (this.lastReadId !== undefined && id > this.lastReadId);
  }

  /** Why a request that was sent on it got no response: the session was lost. */
  refuseLost(): Refusal {
    return refuseClosed({ socket: this.#socket, uses: this.uses }, 'session_lost');
  }

  /** The caller must `forget` the stream when it is closed. */
  request(list: HeaderList, options: { readonly endStream: boolean }): ClientHttp2Stream {
    const stream = this.http2.request(list, options);
    this.#running.add(stream);
    return stream;
  }

  forget(stream: ClientHttp2Stream): void {
    this.#running.delete(stream);
  }

  /**
   * The socket allows half-open connections, which a session cannot use. Data that its streams hold for slow clients is
   * handed over before the socket is destroyed; it is at most their windows.
   */
  #onEnd(): void {
    this.hasEnded = true;
    for (const stream of this.#running) stream.resume();
    setImmediate(() => this.#socket.destroy());
  }

  destroy(): void {
    // One turn later: node:http2 cannot end a session in the turn in which it took over a socket with buffered bytes.
    setImmediate(() => this.http2.destroy());
    // An upstream that does not read would keep the socket open for unsent bytes.
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }
}

/** Starts a session on a connection whose peer has proved its name and chosen h2. */
export async function openSession(socket: Socket, key: string, limits: Limits): Promise<UpstreamSession> {
  const { connect } = await import('node:http2');
  const options: SecureClientSessionOptions & { strictSingleValueFields: boolean } = {
    createConnection: () => socket,
    maxHeaderListPairs: limits.maxFields + 1,
    // The proxy does not decide which fields may be repeated.
    strictSingleValueFields: false,
    settings: {
      enablePush: false,
      initialWindowSize: MAX_STREAM_WINDOW_BYTES,
      maxHeaderListSize: limits.maxResponseHeadBytes,
    },
  };
  const http2 = connect(`https://${key.slice(key.indexOf('//') + 2)}`, options);
  // Buffered data is bounded by the windows of the streams; the session window would only limit their common speed.
  http2.once('connect', () => http2.setLocalWindowSize(SESSION_WINDOW_BYTES));
  return new UpstreamSession(http2, socket, key);
}
