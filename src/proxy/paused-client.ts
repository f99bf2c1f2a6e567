// Clients that are made to wait while their host is slow. A socket that is not read says nothing of its peer: a
// client that has left with a reset would keep its tunnel for as long as the host keeps it waiting. So each second
// an empty write asks the kernel. It puts nothing on the wire and fails if the connection is gone.
import type { Socket } from 'node:net';

const PROBE_MS = 1_000;
// A client that left with a FIN behind unread bytes looks alive until its own system has forgotten it and answers
// such a probe with a reset.
const KEEP_ALIVE_MS = 10_000;

const held = new Set<Socket>();
const transports = new WeakMap<Socket, Socket>();
let timer: NodeJS.Timeout | undefined;

/** Stops reading until somebody resumes the socket; it is destroyed within about a second of its peer's reset. */
export function pauseClient(socket: Socket): void {
  socket.pause();
  held.add(socket);
  timer ??= setInterval(probe, PROBE_MS).unref();
}

/** Names the socket under a TLS one: TLS keeps an empty write to itself. Its errors end both. */
export function setTransport(secure: Socket, raw: Socket): void {
  transports.set(secure, raw);
  raw.on('error', () => secure.destroy());
}

function probe(): void {
  for (const socket of held) {
    if (socket.destroyed || !socket.isPaused()) held.delete(socket);
    else ask(socket, transports.get(socket) ?? socket);
  }
  if (held.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

function ask(socket: Socket, transport: Socket): void {
  transport.setKeepAlive(true, KEEP_ALIVE_MS);
  // Behind our FIN nothing can be written: the attempt would cut off a client that still uploads. Keep-alive is left.
  if (socket.writableEnded || transport.writableEnded) return;
  // Bytes that wait to be written ask the same question.
  if (transport.writableLength === 0) transport.write('');
}
