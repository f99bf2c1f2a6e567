// Two sockets joined byte for byte, in both directions, until both ended: blind tunnels and connections after
// 101. Half-close is honoured here and nowhere else; back-pressure runs through.
//
//   client ──▶ upstream      FIN on one side becomes FIN on the other,
//   client ◀── upstream      RST or an error on either ends both at once
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { OpenConnection } from './context.ts';
import { pauseClient } from './paused-client.ts';

export type SpliceEnd = {
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly reason: 'closed' | 'idle' | 'half_closed_idle' | 'reset';
};

export type SpliceOptions = {
  readonly client: Socket;
  readonly upstream: Socket;
  /** Bytes that each side sent before the splice. */
  readonly fromClient?: Buffer | undefined;
  readonly fromUpstream?: Buffer | undefined;
  readonly idleMs: number;
  readonly halfClosedMs: number;
};

const KEEP_ALIVE_PROBE_MS = 30_000;

/** Joins two open sockets that nobody else listens to; resolves once when both are gone. */
export function splice(options: SpliceOptions): Promise<SpliceEnd> {
  const { client, upstream, idleMs, halfClosedMs } = options;
  const { promise, resolve } = Promise.withResolvers<SpliceEnd>();
  const counts = { up: options.fromClient?.length ?? 0, down: options.fromUpstream?.length ?? 0 };
  let lastActivityMs = performance.now();
  let open = 2;
  let ended = 0;
  let reason: SpliceEnd['reason'] = 'closed';

  const endBoth = (why: SpliceEnd['reason']): void => {
    if (reason === 'closed') reason = why;
    for (const socket of [client, upstream]) {
      if (why === 'reset') cut(socket);
      else socket.destroy();
    }
  };

  const join = (from: Socket, to: Socket, count: (bytes: number) => void): void => {
    from
      .on('data', (chunk: Buffer) => {
        count(chunk.length);
        lastActivityMs = performance.now();
        if (to.write(chunk)) return;
        if (from === client) pauseClient(client);
        else from.pause();
      })
      .on('end', () => {
        ended += 1;
        lastActivityMs = performance.now();
        to.end();
        client.setTimeout(halfClosedMs);
        upstream.setTimeout(halfClosedMs);
      })
      .on('error', () => endBoth('reset'))
      .on('timeout', () => {
        const limitMs = ended > 0 ? halfClosedMs : idleMs;
        const leftMs = limitMs - (performance.now() - lastActivityMs);
        // Node counts each socket's silence by itself, and its clock may run a millisecond ahead of this one. The
        // timer fires once: without another the tunnel would stay for ever.
        if (leftMs > 1) from.setTimeout(leftMs);
        else endBoth(ended > 0 ? 'half_closed_idle' : 'idle');
      })
      .on('close', () => {
        open -= 1;
        // What was to be sent here is lost.
        if (!from.writableFinished) endBoth('reset');
        if (open === 0) resolve({ bytesUp: counts.up, bytesDown: counts.down, reason });
        // Closed without having ended, or while the other side still speaks: reset by its peer or destroyed by us.
        else if (!from.readableEnded || from.errored || !to.readableEnded) endBoth('reset');
        else if (!to.writableEnded) to.end();
      });
    to.on('drain', () => from.resume());
  };

  join(client, upstream, (bytes) => {
    counts.up += bytes;
  });
  join(upstream, client, (bytes) => {
    counts.down += bytes;
  });
  for (const socket of [client, upstream]) {
    socket.setTimeout(idleMs);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.setNoDelay(true);
  }
  if (options.fromClient && options.fromClient.length > 0) upstream.write(options.fromClient);
  if (options.fromUpstream && options.fromUpstream.length > 0) client.write(options.fromUpstream);
  if (client.destroyed || upstream.destroyed) endBoth('reset');
  client.resume();
  upstream.resume();
  return promise;
}

/**
 * Ends a connection whose stream is incomplete. In plaintext a FIN means "that was all" (RFC 9112 §8), so the socket is
 * reset. TLS has close_notify for that, which a destroyed socket does not send.
 */
export function cut(socket: Socket): void {
  if (socket.destroyed || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Ends a client connection and the upstream it is spliced to at once, with whatever is still unsent. */
export function cutConnection({ socket, splicedTo }: OpenConnection): void {
  socket.destroy();
  if (splicedTo) cut(splicedTo);
}
