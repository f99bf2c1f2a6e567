// The way to end a connection whose stream is not whole. A FIN is how cleartext says "that was all" (RFC 9112 §8): a
// cut must not look like one. TLS tells the two apart by its close_notify, which a destroyed socket does not send.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { OpenConnection } from './context.ts';

/** Destroys the socket, with a reset where it carries cleartext. */
export function cut(socket: Socket): void {
  if (socket.destroyed || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Ends a client's connection now, and what it was joined to, whatever is still to be sent. */
export function cutConnection({ socket, joinedTo }: OpenConnection): void {
  socket.destroy();
  if (joinedTo) cut(joinedTo);
}
