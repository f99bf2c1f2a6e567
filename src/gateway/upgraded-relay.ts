// A client and a target joined byte for byte after a 101, until both sides have ended. Back-pressure and half-close pass through.
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { cutSocket } from './cut-socket.ts';
import type { Exchange } from './exchange.ts';
import { FrameBoundary } from './frame-boundary.ts';
import { type GatewayLimits, KEEP_ALIVE_PROBE_MS } from './limits.ts';
import type { GatewayRecord } from './record.ts';

type Ends = {
  readonly client: Socket;
  readonly target: Duplex;
  readonly limits: GatewayLimits;
  readonly exchange: Exchange;
};

export class UpgradedRelay {
  readonly #ends: Ends;
  #end: GatewayRecord['end'] = 'complete';
  #isHalfClosed = false;
  readonly #frames = new FrameBoundary();
  #isLeaving = false;
  #hasLeft = false;
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
    if (target instanceof Socket) target.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    client.resume();
    target.resume();
  }

  /**
   * The gateway ends: the client is asked to connect again, and the target goes on to get what the client sends, which is the
   * end of the WebSocket.
   */
  leave(): void {
    this.#isLeaving = true;
    if (this.#frames.isReached) this.#sendGoingAway();
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

  #join(from: Duplex, to: Duplex, whenLost: GatewayRecord['end']): void {
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

  #pass(from: Duplex, to: Duplex, chunk: Buffer): void {
    const { client, exchange } = this.#ends;
    if (from === client) {
      exchange.bytesUp += chunk.length;
      if (!to.write(chunk)) from.pause();
    } else this.#passDown(chunk);
  }

  #passDown(chunk: Buffer): void {
    if (this.#hasLeft) return;
    const { client, target, exchange } = this.#ends;
    const taken = this.#frames.push(chunk, this.#isLeaving);
    exchange.bytesDown += taken;
    if (taken > 0 && !client.write(taken < chunk.length ? chunk.subarray(0, taken) : chunk)) target.pause();
    if (this.#isLeaving && this.#frames.isReached) this.#sendGoingAway();
  }

  #sendGoingAway(): void {
    const { client } = this.#ends;
    if (this.#hasLeft || client.writableEnded) return;
    this.#hasLeft = true;
    client.write(GOING_AWAY);
  }

  /** A FIN would mean that the stream is complete. */
  #close(end: GatewayRecord['end']): void {
    if (this.#end === 'complete') this.#end = end;
    cutSocket(this.#ends.client);
    cutSocket(this.#ends.target);
  }
}

/** A close frame with the code 1001 (RFC 6455 §7.4.1). */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);
