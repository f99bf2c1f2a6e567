// Two sockets joined byte for byte in both directions until both are closed: blind tunnels, and connections after a 101.
// Half-close is supported here and nowhere else. Back-pressure passes through.
//
//   client ──▶ upstream      FIN on one side becomes FIN on the other,
//   client ◀── upstream      RST or an error on either closes both at once
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { OpenConnection } from './context.ts';
import { type ProxyCounters, Total } from './counters.ts';
import { countForwarded } from './forwarded-pieces.ts';
import { IdleWatch } from './idle-watch.ts';
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
  /** Which of them counts it: a tunnel, or a connection after a 101. */
  readonly counted?: { readonly by: ProxyCounters; readonly as: 'tunnel' | 'upgrade' };
};

/** Joins two open sockets without other listeners. Resolves when both are closed. */
export function splice(options: SpliceOptions): Promise<SpliceEnd> {
  const { counted } = options;
  const ended = new Splice(options).run();
  if (counted === undefined) return ended;
  const isTunnel = counted.as === 'tunnel';
  counted.by.add(isTunnel ? Total.tunnelsOpened : Total.upgradesOpened);
  return ended.finally(() => counted.by.add(isTunnel ? Total.tunnelsEnded : Total.upgradesEnded));
}

class Splice {
  readonly #options: SpliceOptions;
  readonly #result: PromiseWithResolvers<SpliceEnd> = Promise.withResolvers();
  #bytesUp: number;
  #bytesDown: number;
  #idle: IdleWatch | undefined;
  #open = 2;
  /** One side has sent its FIN. */
  #isHalfClosed = false;
  #reason: SpliceEnd['reason'] = 'closed';

  constructor(options: SpliceOptions) {
    this.#options = options;
    this.#bytesUp = options.fromClient?.length ?? 0;
    this.#bytesDown = options.fromUpstream?.length ?? 0;
  }

  run(): Promise<SpliceEnd> {
    const { client, upstream, fromClient, fromUpstream, idleMs } = this.#options;
    this.#join(client, upstream);
    this.#join(upstream, client);
    if (fromClient && fromClient.length > 0) upstream.write(fromClient);
    if (fromUpstream && fromUpstream.length > 0) client.write(fromUpstream);
    this.#idle = new IdleWatch([client, upstream], idleMs, () => this.#onIdle());
    if (client.destroyed || upstream.destroyed) this.#endBoth('reset');
    client.resume();
    upstream.resume();
    return this.#result.promise;
  }

  #join(from: Socket, to: Socket): void {
    from
      .on('data', (chunk: Buffer) => this.#onData(from, to, chunk))
      .on('end', () => this.#onEnd(to))
      .on('error', () => this.#endBoth('reset'))
      .on('close', () => this.#onClose(from, to));
    to.on('drain', () => from.resume());
  }

  #onData(from: Socket, to: Socket, chunk: Buffer): void {
    countForwarded(chunk.length);
    const isUp = from === this.#options.client;
    if (isUp) this.#bytesUp += chunk.length;
    else this.#bytesDown += chunk.length;
    if (to.write(chunk)) return;
    if (isUp) pauseClient(from);
    else from.pause();
  }

  #onEnd(to: Socket): void {
    this.#isHalfClosed = true;
    to.end();
    this.#idle?.restart(this.#options.halfClosedMs);
  }

  #onIdle(): void {
    this.#endBoth(this.#isHalfClosed ? 'half_closed_idle' : 'idle');
  }

  #onClose(from: Socket, to: Socket): void {
    this.#open -= 1;
    if (this.#open === 0) this.#idle?.stop();
    // What was still to be written to `from` is lost.
    if (!from.writableFinished) this.#endBoth('reset');
    if (this.#open === 0)
      this.#result.resolve({ bytesUp: this.#bytesUp, bytesDown: this.#bytesDown, reason: this.#reason });
    // Closed without a FIN, or while the other side still sends: reset by its peer, or destroyed by us.
    else if (!from.readableEnded || from.errored || !to.readableEnded) this.#endBoth('reset');
    else if (!to.writableEnded) to.end();
  }

  #endBoth(reason: SpliceEnd['reason']): void {
    if (this.#reason === 'closed') this.#reason = reason;
    for (const socket of [this.#options.client, this.#options.upstream]) {
      if (reason === 'reset') closeIncomplete(socket);
      else socket.destroy();
    }
  }
}

/**
 * Closes a connection whose stream is incomplete. In plaintext a FIN means that the stream is complete (RFC 9112 §8), so
 * the socket is reset. TLS has close_notify for that, which a destroyed socket does not send.
 */
export function closeIncomplete(socket: Socket): void {
  if (socket.destroyed || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Closes a client connection, and the upstream it is spliced to, at once; unsent bytes are lost. */
export function closeAtOnce({ socket, splicedTo }: OpenConnection): void {
  socket.destroy();
  if (splicedTo) closeIncomplete(splicedTo);
}
