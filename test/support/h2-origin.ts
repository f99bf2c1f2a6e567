// An origin on loopback that speaks HTTP/2 and HTTP/1.1, as ALPN chooses, stores everything that it receives over
// HTTP/2 and responds by a script that writes frames itself. Independent of the proxy.
//
//   await using origin = await createH2Origin({ tls: { authority, names: ['api.test'] }, respond });
//   origin.streams[0]: .headers .fields .neverIndexed .body .trailers .reset     await origin.stream(n), .ended()
//   origin.offer(['http/1.1'])       the protocols from the next connection on; [] is TLS without ALPN
//   origin.connections[0]: .offered (the client's list) .protocol .peer (frames, counts) .goaway(..) .destroy()
//   origin.http1                     the RecordingOrigin for connections without HTTP/2 (`respondHttp1`)
//   respond(exchange)                see h2-exchange.ts; by default each stream gets its request as JSON
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { H2Connection, type OriginProtocol, type OriginTls } from './h2-connection.ts';
import {
  createH2Exchange,
  createH2Request,
  echoStream,
  type H2Exchange,
  type H2Request,
} from './h2-exchange.ts';
import { PREFACE, settingsFrame } from './h2-frames.ts';
import { H2Peer, type PeerOptions } from './h2-peer.ts';
import type { H2Stream } from './h2-stream.ts';
import { ByteReader } from './message-reader.ts';
import { createOrigin, type Exchange, type RecordingOrigin } from './recording-origin.ts';

/** Of PeerOptions `settings` is the first SETTINGS: `max_concurrent_streams`, `initial_window_size` and so on. */
export type H2OriginOptions = PeerOptions & {
  /** A certificate for the requested one of these names; the first one without SNI. */
  readonly tls: OriginTls;
  /** The protocols in order of preference; both, h2 first, by default. */
  readonly protocols?: readonly OriginProtocol[];
  readonly respond?: (exchange: H2Exchange) => void | Promise<void>;
  /** The script for HTTP/1.1. */
  readonly respondHttp1?: (exchange: Exchange) => void | Promise<void>;
  /** Called before the handshake of a connection begins. */
  readonly onAccept?: () => void;
  /** Sends the first bytes on an HTTP/2 connection instead of SETTINGS. */
  readonly greet?: (connection: H2Connection) => void | Promise<void>;
};
export type H2Origin = AsyncDisposable & {
  readonly port: number;
  /** Every stream that any connection opened, in order. */
  readonly streams: readonly H2Request[];
  readonly connections: readonly H2Connection[];
  readonly openConnections: number;
  readonly http1: RecordingOrigin;
  /** Errors of scripts, and errors of reading. */
  readonly failures: readonly unknown[];
  /** The nth stream, counted from 0, when its head has arrived. */
  stream(index: number): Promise<H2Request>;
  /** The nth connection, when its handshake is done. */
  connection(index: number): Promise<H2Connection>;
  offer(protocols: readonly OriginProtocol[]): void;
  close(): Promise<void>;
};

export async function createH2Origin(options: H2OriginOptions): Promise<H2Origin> {
  const respond = options.respond ?? echoStream;
  const http1 = await createOrigin(options.respondHttp1 ? { respond: options.respondHttp1 } : {});
  const streams: H2Request[] = [];
  const connections: H2Connection[] = [];
  const failures: unknown[] = [];
  const open = new Set<Socket>();
  const waiting = new Set<() => void>();
  let protocols = options.protocols ?? ['h2', 'http/1.1'];

  const server = createServer({ allowHalfOpen: true }, (raw) => {
    // With Nagle's algorithm a small frame after another would wait 40 ms for an acknowledgement.
    raw.setNoDelay(true);
    open.add(raw);
    const connection = new H2Connection(connections.length, raw);
    connections.push(connection);
    options.onAccept?.();
    raw.on('error', () => raw.destroy());
    raw.on('close', () => open.delete(raw));
    serve(raw, connection).catch((error: unknown) => {
      failures.push(error);
      raw.destroy();
    });
  });

  async function serve(raw: Socket, connection: H2Connection): Promise<void> {
    const socket = await connection.secure(options.tls, protocols);
    if (socket === undefined) return;
    notify();
    if (connection.protocol === 'h2') await serveH2(socket, connection);
    else join(socket, connect({ port: http1.port, host: '127.0.0.1', allowHalfOpen: true }), raw);
  }

  async function serveH2(socket: TLSSocket, connection: H2Connection): Promise<void> {
    const reader = new ByteReader(socket);
    connection.transcript = () => reader.transcript;
    const preface = await reader.read(PREFACE.length).catch(() => undefined);
    if (preface === undefined) return;
    if (preface.toString('latin1') !== PREFACE)
      throw new Error('the received bytes are not the HTTP/2 preface');
    const onStream = (stream: H2Stream): void => take(stream, connection);
    const peer = new H2Peer(reader, socket, { ...options, onStream });
    connection.peer = peer;
    if (options.greet === undefined) await peer.send(settingsFrame(options.settings));
    else await options.greet(connection);
    await peer.closed;
    if (peer.failure !== undefined) throw peer.failure;
    socket.end();
  }

  function take(stream: H2Stream, connection: H2Connection): void {
    const request = createH2Request(stream, connection.index);
    streams.push(request);
    connection.countStream(stream);
    notify();
    const script = async (): Promise<void> => respond(createH2Exchange(request, stream, connection));
    script().catch((error: unknown) => failures.push(error));
  }

  function notify(): void {
    for (const wake of waiting) wake();
  }

  async function when<T>(read: () => T | undefined): Promise<T> {
    for (let found = read(); ; found = read()) {
      if (found !== undefined) return found;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      await promise;
      waiting.delete(resolve);
    }
  }

  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    // A listening TCP server's address is never a string: that form is for pipes.
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
  const close = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of open) socket.destroy();
    });
    await http1.close();
  };
  return {
    port,
    streams,
    connections,
    get openConnections() {
      return open.size;
    },
    http1,
    failures,
    stream: (index) => when(() => streams[index]),
    connection: (index) => when(() => connections.filter(({ protocol }) => protocol !== undefined)[index]),
    offer(next) {
      protocols = next;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Connects two sockets in both directions, including a reset of the inner one. */
function join(outer: TLSSocket, inner: Socket, raw: Socket): void {
  inner.setNoDelay(true);
  outer.pipe(inner).pipe(outer);
  inner.on('error', () => raw.resetAndDestroy());
  outer.on('error', () => inner.destroy());
  outer.on('close', () => inner.destroy());
}
