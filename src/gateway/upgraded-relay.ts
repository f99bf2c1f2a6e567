// A client and a target joined byte for byte after a 101, until both sides have ended. Back-pressure and half-close pass through.
import type { Socket } from 'node:net';
import { cutSocket } from './cut-socket.ts';
import type { Exchange } from './exchange.ts';
import { type GatewayLimits, KEEP_ALIVE_PROBE_MS } from './limits.ts';
import type { GatewayRecord } from './record.ts';

type Ends = {
  readonly client: Socket;
  readonly target: Socket;
  readonly limits: GatewayLimits;
  readonly exchange: Exchange;
};

export class UpgradedRelay {
  readonly #ends: Ends;
  #end: GatewayRecord['end'] = 'complete';
  #isHalfClosed = false;
  #activity = 0;
  #silentSinceMs: number = performance.now();

  constructor(ends: Ends) {
    this.#ends = ends;
  }

  get end(): GatewayRecord['end'] {
    return this.#end;
  }

  /** `fromClient` and `fromTarget` came before the sockets were joined. */
  start(fromClient: Buffer | undefined, fromTarget: Buffer): void {
    const { client, target } = this.#ends;
    this.#join(client, target, 'left');
    this.#join(target, client, 'cut');
    if (fromClient && fromClient.length > 0) this.#pass(client, target, fromClient);
    if (fromTarget.length > 0) this.#pass(target, client, fromTarget);
    target.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    client.resume();
    target.resume();
  }

  checkIdle(nowMs: number): void {
    const { client, target, limits, exchange } = this.#ends;
    const unsent = client.writableLength + target.writableLength;
    const activity = exchange.bytesUp + exchange.bytesDown - unsent;
    if (activity !== this.#activity) {
      this.#activity = activity;
      this.#silentSinceMs = nowMs;
    } else if (
      nowMs - this.#silentSinceMs >=
      (this.#isHalfClosed ? limits.halfClosedMs : limits.upgradedIdleMs)
    )
      this.#close('cut');
  }

  #join(from: Socket, to: Socket, whenLost: GatewayRecord['end']): void {
    from
      .on('data', (chunk: Buffer) => this.#pass(from, to, chunk))
      .on('end', () => {
        this.#isHalfClosed = true;
        to.end();
      })
      .on('error', () => this.#close(whenLost))
      .on('close', () => {
        // Closed without a FIN, or before everything was written to it.
        if (!from.readableEnded || !from.writableFinished) this.#close(whenLost);
      });
    to.on('drain', () => from.resume());
  }

  #pass(from: Socket, to: Socket, chunk: Buffer): void {
    const { client, exchange } = this.#ends;
    if (from === client) exchange.bytesUp += chunk.length;
    else exchange.bytesDown += chunk.length;
    if (!to.write(chunk)) from.pause();
  }

  /** A FIN would mean that the stream is complete. */
  #close(end: GatewayRecord['end']): void {
    if (this.#end === 'complete') this.#end = end;
    cutSocket(this.#ends.client);
    cutSocket(this.#ends.target);
  }
}
