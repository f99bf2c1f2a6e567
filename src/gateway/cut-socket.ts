// Closes a connection: one whose stream is incomplete is cut, any other is ended so that its last bytes arrive.
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { LINGER_MS } from './limits.ts';

/**
 * In plaintext a FIN means that the stream is complete (RFC 9112 §8), so the socket is reset. TLS has close_notify for that, which
 * a destroyed socket does not send; a Unix socket has no reset. While a FIN is being sent libuv refuses to reset, and node:net
 * then never emits 'close'.
 */
export function cutSocket(socket: Duplex): void {
  if (socket instanceof Socket && !socket.destroyed && mayReset(socket)) socket.resetAndDestroy();
  else socket.destroy();
}

function mayReset(socket: Socket): boolean {
  return !(socket instanceof TLSSocket) && socket.remoteFamily !== undefined && !socket.writableEnded;
}

/** Sends our FIN, then waits a moment for that of the peer: a reset would destroy our last response before it is read. */
export function endSocket(socket: Socket): void {
  socket.end(() => {
    if (socket.readableEnded) socket.destroy();
    else setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
  socket.resume();
}
