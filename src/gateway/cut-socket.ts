// Closes a connection whose stream is incomplete.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/**
 * In plaintext a FIN means that the stream is complete (RFC 9112 §8), so the socket is reset. TLS has close_notify for that, which
 * a destroyed socket does not send; a Unix socket has no reset. While a FIN is being sent libuv refuses to reset, and node:net
 * then never emits 'close'.
 */
export function cutSocket(socket: Socket): void {
  const mayReset =
    !(socket instanceof TLSSocket) && socket.remoteFamily !== undefined && !socket.writableEnded;
  if (mayReset && !socket.destroyed) socket.resetAndDestroy();
  else socket.destroy();
}
