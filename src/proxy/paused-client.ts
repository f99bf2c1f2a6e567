// Clients whose sockets are not read while their upstream is slow. A socket that is not read does not report that its peer
// has reset the connection, so a client that left would keep its tunnel open for as long as the upstream is slow. An empty
// write each second detects it: it sends nothing, and fails if the connection is gone.
import type { Socket } from 'node:net';

const PROBE_MS = 1_000;
// A client that left with a FIN behind unread bytes seems connected until its own system has forgotten the connection.
// Then TCP keep-alive is replied to with a reset.
const KEEP_ALIVE_MS = 10_000;

const paused = new Set<Socket>();
const TRANSPORT = Symbol('transport');
type Secured = Socket & { [TRANSPORT]?: Socket };
let timer: NodeJS.Timeout | undefined;

/** Stops reading until the socket is resumed. It is destroyed within about a second of its peer's reset. */
export function pauseClient(socket: Socket): void {
  socket.pause();
  paused.add(socket);
  timer ??= setInterval(probeAll, PROBE_MS).unref();
}

/** Sets the socket under a TLS socket, which does not pass on an empty write. An error of it closes both. */
export function setTransport(secure: Socket, raw: Socket): void {
  (secure as Secured)[TRANSPORT] = raw;
  raw.on('error', () => secure.destroy());
}

function probeAll(): void {
  for (const socket of paused) {
    if (socket.destroyed || !socket.isPaused()) paused.delete(socket);
    else probe(socket, (socket as Secured)[TRANSPORT] ?? socket);
  }
  if (paused.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

function probe(socket: Socket, transport: Socket): void {
  transport.setKeepAlive(true, KEEP_ALIVE_MS);
  // After our FIN nothing can be written: the attempt would cut off a client that still uploads. Keep-alive remains.
  if (socket.writableEnded || transport.writableEnded) return;
  // Bytes that wait to be written have the same effect.
  if (transport.writableLength === 0) transport.write('');
}
