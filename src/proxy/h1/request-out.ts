// The request on its way to the host: head, then body, held for `100 Continue` where the client waits for it and
// slowed to the pace of the host.
import type { Socket } from 'node:net';
import type { HeadError } from '../../http1/head-error.ts';
import { pauseClient } from '../paused-client.ts';
import { RequestBody } from './request-body.ts';
import type { RequestPlan } from '../gate/request-plan.ts';

/** A body may wait this much for its host before the client is made to wait. */
const MAX_HELD_BYTES = 65_536;

export class RequestOut {
  /** Bytes written towards the host. */
  bytes = 0;
  readonly #client: Socket;
  readonly #body: RequestBody;
  readonly #expectsContinue: boolean;
  #host: Socket | undefined;
  #continueTimer: NodeJS.Timeout | undefined;

  constructor(plan: RequestPlan, client: Socket) {
    this.#client = client;
    this.#body = new RequestBody(plan.framing);
    this.#expectsContinue = plan.expectsContinue;
  }

  get isComplete(): boolean {
    return this.#body.isComplete;
  }

  /** False also for a body that is still held for `100 Continue`: the host waits for it, or has declined it. */
  get isPassedOn(): boolean {
    return this.#body.isPassedOn;
  }

  get error(): HeadError | undefined {
    return this.#body.error;
  }

  /** Takes what belongs to the body and answers how many bytes of `chunk` that was. */
  push(chunk: Buffer): number {
    // A body of many small pieces must not cost a record and a system call for each.
    const host = this.#host;
    host?.cork();
    const taken = this.#body.push(chunk);
    host?.uncork();
    if (this.#body.heldBytes > MAX_HELD_BYTES) pauseClient(this.#client);
    return taken;
  }

  /** Sends the head and, unless the client waits for a word of the host first, the body. */
  send(head: Buffer, host: Socket, continueMs: number): void {
    this.#host = host;
    this.bytes += head.length;
    // Nearly every request ends with its head: no body to send with it, and none to come.
    if (this.#body.isPassedOn) {
      host.write(head);
      if (!host.writableNeedDrain) this.#client.resume();
      return;
    }
    host.cork();
    host.write(head);
    // RFC 9110 §10.1.1: a host that never says 100 gets the body after a moment.
    if (this.#expectsContinue) this.#continueTimer = setTimeout(() => this.openBody(), continueMs);
    else this.openBody();
    host.uncork();
  }

  openBody(): void {
    clearTimeout(this.#continueTimer);
    const host = this.#host;
    if (!host) return;
    host.cork();
    this.#body.openTo((piece) => {
      this.bytes += piece.length;
      if (!host.write(piece)) pauseClient(this.#client);
    });
    host.uncork();
    if (!host.writableNeedDrain) this.#client.resume();
  }

  /** Nothing more of it will leave: what the client still sends is read and thrown away. */
  stop(): void {
    clearTimeout(this.#continueTimer);
    this.#host = undefined;
    this.#body.discard();
    this.#client.resume();
  }
}
