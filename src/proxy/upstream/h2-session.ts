// One HTTP/2 session with a host. It serves the streams of one client connection at a time: a host that is angered by
// one client (resets, floods) ends what it shares with that client, and nobody else's requests. It knows of no request.
import type { ClientHttp2Session, ClientHttp2Stream, SecureClientSessionOptions } from 'node:http2';
import type { Socket } from 'node:net';
import { LINGER_MS, type Limits, MAX_STREAM_WINDOW_BYTES, SESSION_WINDOW_BYTES } from '../limits.ts';

// A host that grants more than our clients may open grants enough; what it grants before its SETTINGS are there is one
// stream, so that the first request need not wait for them and no burst goes beyond them.
const STREAMS_BEFORE_SETTINGS = 1;
const SETTINGS_MS = 1_000;
const STREAMS_WITHOUT_SETTINGS = 100;
/** HTTP/2 hosts say GOAWAY before they leave, so that a request which crosses it is known to be unread. */
const IDLE_MS = 30_000;

/** Name, value, name, value, … as node:http2 gives and takes them. */
export type HeaderList = readonly string[];

/** The right to one stream of a session. */
export type StreamPlace = {
  readonly session: UpstreamSession;
  /** Whether the session carried a request before. */
  readonly isReused: boolean;
  /** Gives the place back: the stream is over, or never began. */
  discard(): void;
};

export class UpstreamSession {
  readonly http2: ClientHttp2Session;
  readonly key: string;
  /** The client connection that it serves; 0 while it serves none. */
  clientId = 0;
  streams = 0;
  uses = 0;
  idleSinceMs: number = performance.now();
  /** Its credentials are bound to the connection: nobody uses it after its stream. */
  isPrivate = false;
  /** Streams above it were never looked at (GOAWAY). */
  lastReadId: number | undefined;
  /** The host's limit of streams is known, or it has not said one in time. */
  readonly settled: Promise<void>;
  isSettled = false;
  /** The host has sent its last byte. */
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
    // Its streams tell their owners; here it must only not be nobody's.
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
    // One that its host is leaving still has streams to end.
    return this.isIdle && (!this.isOpen || nowMs - this.idleSinceMs >= IDLE_MS);
  }

  /** Whether the host has said that it will not have looked at stream `id`; one that was never sent has none. */
  hasSkipped(id: number | undefined): boolean {
    return id === undefined || (this.lastReadId !== undefined && id > this.lastReadId);
  }

  request(list: HeaderList, options: { readonly endStream: boolean }): ClientHttp2Stream {
    const stream = this.http2.request(list, options);
    this.#running.add(stream);
    stream.once('close', () => this.#running.delete(stream));
    return stream;
  }

  /**
   * The socket allows half-open connections; a session has no use for the other half. With it would go what its streams
   * hold for clients that read slowly, so that is handed over first: it is no more than their windows.
   */
  #onEnd(): void {
    this.hasEnded = true;
    for (const stream of this.#running) stream.resume();
    setImmediate(() => this.#socket.destroy());
  }

  destroy(): void {
    // A turn later: node:http2 cannot end a session in the turn in which it took over a socket that holds bytes.
    setImmediate(() => this.http2.destroy());
    // A host that reads no more would keep the socket open for what is left to be written.
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }
}

/** Begins a session on a connection whose peer has proved its name and chosen h2. */
export async function openSession(socket: Socket, key: string, limits: Limits): Promise<UpstreamSession> {
  const { connect } = await import('node:http2');
  const options: SecureClientSessionOptions & { strictSingleValueFields: boolean } = {
    createConnection: () => socket,
    maxHeaderListPairs: limits.maxFields + 1,
    // Which fields may stand twice is not ours to say.
    strictSingleValueFields: false,
    settings: {
      enablePush: false,
      initialWindowSize: MAX_STREAM_WINDOW_BYTES,
      maxHeaderListSize: limits.maxResponseHeadBytes,
    },
  };
  const http2 = connect(`https://${key.slice(key.indexOf('//') + 2)}`, options);
  // What waits here is bounded by the streams' windows; this one would only bound how fast all of them are together.
  http2.once('connect', () => http2.setLocalWindowSize(SESSION_WINDOW_BYTES));
  return new UpstreamSession(http2, socket, key);
}
