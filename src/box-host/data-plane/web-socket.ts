// The adapter of ws: accepts WebSocket connections (RFC 6455) on connections of an HTTP server. Loaded with the first one.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RawData, WebSocket, WebSocketServer } from 'ws';
import { SingleFlight } from '../../base/single-flight.ts';

export type Socket = {
  /** Sent, and not yet taken by the connection. */
  readonly bufferedBytes: number;
  /** Resolves when the client reads fast enough for more; also when it has left. `onTaken` is called when the connection took it. */
  send(text: string, onTaken: () => void): Promise<void>;
  close(code: number): void;
  /** Ends it without waiting for the client. */
  terminate(): void;
  pause(): void;
  resume(): void;
};

export type SocketEvents = {
  onText(text: string): void;
  /** Once, also for a connection that broke. */
  onClose(): void;
};

const MAX_MESSAGE_BYTES = 1024 * 1024;
const MAX_BUFFERED_BYTES = 256 * 1024;
/** One that does not respond to a ping until the next is gone. */
const PING_MS = 20_000;
/** What a client may send that does not follow the protocol: 1003 is for data of a type that is not accepted. */
const UNSUPPORTED_DATA = 1003;

const loading: SingleFlight<WebSocketServer> = new SingleFlight();
let loaded: WebSocketServer | undefined;

/** `events` gets the socket before anything can arrive on it. A request that is no handshake gets its 400. */
export async function acceptWebSocket(
  incoming: IncomingMessage,
  stream: Duplex,
  head: Buffer,
  open: (socket: Socket) => SocketEvents,
): Promise<void> {
  loaded ??= await loading.run('ws', load);
  loaded.handleUpgrade(incoming, stream, head, (socket) => serve(socket, open));
}

async function load(): Promise<WebSocketServer> {
  const { WebSocketServer } = await import('ws');
  return new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });
}

function serve(socket: WebSocket, open: (socket: Socket) => SocketEvents): void {
  const events = open({
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
    send: (text, onTaken) => send(socket, text, onTaken),
    close: (code) => socket.close(code),
    terminate: () => socket.terminate(),
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  });
  let isAlive = true;
  const pings = setInterval(() => {
    // A pong would wait behind what is not read.
    if (!isAlive && !socket.isPaused) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, PING_MS).unref();
  socket.on('pong', () => (isAlive = true));
  socket.on('message', (data: RawData, isBinary: boolean) => {
    isAlive = true;
    if (isBinary) socket.close(UNSUPPORTED_DATA);
    else events.onText(String(data));
  });
  // It closes with a code of its own.
  socket.on('error', () => undefined);
  socket.once('close', () => {
    clearInterval(pings);
    events.onClose();
  });
}

async function send(socket: WebSocket, text: string, onTaken: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.send(text, () => {
    onTaken();
    resolve();
  });
  if (socket.bufferedAmount > MAX_BUFFERED_BYTES) await promise;
}
