// Sends a request to the upstream: the head, then the body, which waits for `100 Continue` if the client does. Applies
// back-pressure to the client.
import type { Socket } from 'node:net';
import type { HeadError } from '../../http1/head-error.ts';
import { countForwarded } from '../forwarded-pieces.ts';
import { pauseClient } from '../paused-client.ts';
import { RequestBody } from '../../http1/request-body.ts';
import type { RequestPlan } from '../gate/request-plan.ts';

/** The client is paused when more of its body than this waits for the upstream. */
const MAX_BUFFERED_BYTES = 65_536;

export class RequestOut {
  /** Bytes written to the upstream. */
  bytes = 0;
  readonly #client: Socket;
  /** Undefined for a request without a body, as most are. */
  readonly #body: RequestBody | undefined;
  readonly #expectsContinue: boolean;
  #upstream: Socket | undefined;
  #continueTimer: NodeJS.Timeout | undefined;

  constructor(plan: RequestPlan, client: Socket) {
    this.#client = client;
    this.#body = plan.framing.kind === 'none' ? undefined : new RequestBody(plan.framing);
    this.#expectsContinue = plan.expectsContinue;
  }

  get isComplete(): boolean {
    return this.#body?.isComplete ?? true;
  }

  /** False also while the body waits for `100 Continue`: the upstream expects the body, or has declined it. */
  get isForwarded(): boolean {
    return this.#body?.isForwarded ?? true;
  }

  get error(): HeadError | undefined {
    return this.#body?.error;
  }

  /** Takes the part of `chunk` that belongs to the body and returns its length. */
  push(chunk: Buffer): number {
    if (!this.#body) return 0;
    countForwarded(chunk.length);
    // A body of many small pieces must not cost a TLS record and a system call for each.
    const upstream = this.#upstream;
    upstream?.cork();
    const taken = this.#body.push(chunk);
    upstream?.uncork();
    if (this.#body.bufferedBytes > MAX_BUFFERED_BYTES) pauseClient(this.#client);
    return taken;
  }

  /** Sends the head and, unless the client waits for `100 Continue`, the body. */
  send(head: Buffer, upstream: Socket, continueMs: number): void {
    this.#upstream = upstream;
    this.bytes += head.length;
    if (this.isForwarded) {
      upstream.write(head);
      if (!upstream.writableNeedDrain) this.#client.resume();
      return;
    }
    upstream.cork();
    upstream.write(head);
    // RFC 9110 §10.1.1: an upstream that sends no 100 gets the body after a timeout.
    if (this.#expectsContinue) this.#continueTimer = setTimeout(() => this.openBody(), continueMs);
    else this.openBody();
    upstream.uncork();
  }

  openBody(): void {
    clearTimeout(this.#continueTimer);
    const upstream = this.#upstream;
    if (!upstream || !this.#body) return;
    upstream.cork();
    this.#body.openTo((piece) => {
      this.bytes += piece.length;
      if (!upstream.write(piece)) pauseClient(this.#client);
    });
    upstream.uncork();
    if (!upstream.writableNeedDrain) this.#client.resume();
  }

  /** Sends nothing more: what the client still sends is read and dropped. */
  stop(): void {
    clearTimeout(this.#continueTimer);
    this.#upstream = undefined;
    this.#body?.discard();
    this.#client.resume();
  }
}
