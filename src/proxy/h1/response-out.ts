// Sends a response to the client, with secrets masked. What one segment of the upstream brings is sent in one write: head
// and body apart would cost two TLS records and two system calls.
import type { Socket } from 'node:net';
import type { ConnectionFields } from '../../http1/connection-fields.ts';
import type { Framing } from '../../http1/framing.ts';
import type { ResponseHead } from '../../http1/head-parser.ts';
import { countForwarded, joinPieces } from '../forwarded-pieces.ts';
import type { ResponseEnding } from '../gate/response-check.ts';
import { type Mask, maskResponseHead } from '../mask/mask.ts';
import { isUnchanged, outgoingResponseHead } from './outgoing-head.ts';
import { holdsWholeMessage } from './response-reader.ts';
import { ScrubbedBody } from './scrubbed-body.ts';

export class ResponseOut {
  /** Bytes written to the client. */
  bytes = 0;
  readonly #client: Socket;
  #scrubbed: ScrubbedBody | undefined;
  #first: Buffer | undefined;
  /** All pieces, the first included. Set only if there is more than one. */
  #pieces: Buffer[] | undefined;

  constructor(client: Socket) {
    this.#client = client;
  }

  /** How many ranges were masked in the body. */
  get maskedRanges(): number {
    return this.#scrubbed?.ranges ?? 0;
  }

  addInterim(head: ResponseHead, connection: ConnectionFields, mask: Mask | undefined): void {
    if (mask) maskResponseHead(head, mask);
    this.add(outgoingResponseHead(head, connection, 'keep'));
  }

  /** `framing` is that of the body for the client. True if the body was added too: a complete response that needs no change is sent as the bytes that came. */
  addHead(
    head: ResponseHead,
    framing: Framing,
    connection: ConnectionFields,
    ending: ResponseEnding,
    mask: Mask | undefined,
  ): boolean {
    if (mask) maskResponseHead(head, mask);
    const isComplete =
      !this.#scrubbed && holdsWholeMessage(head, framing) && isUnchanged(head, connection, ending);
    this.add(isComplete ? head.bytes : outgoingResponseHead(head, connection, ending, framing));
    return isComplete;
  }

  /** Masks secrets in the body, which must come without chunk framing. */
  scrubBody(mask: Mask, framing: Framing): void {
    this.#scrubbed = new ScrubbedBody(mask, framing, (piece) => this.add(piece));
  }

  addBody(piece: Buffer): void {
    countForwarded(piece.length);
    if (this.#scrubbed) this.#scrubbed.push(piece);
    else this.add(piece);
  }

  /** The body is complete. */
  endBody(): void {
    this.#scrubbed?.end();
  }

  add(piece: Buffer): void {
    this.bytes += piece.length;
    if (!this.#first) this.#first = piece;
    else if (this.#pieces) this.#pieces.push(piece);
    else this.#pieces = [this.#first, piece];
  }

  /** Writes what was added. */
  flush(): void {
    const first = this.#first;
    if (!first) return;
    const pieces = this.#pieces && joinPieces(this.#pieces);
    this.#first = undefined;
    this.#pieces = undefined;
    if (!pieces || pieces.length === 1) this.#client.write(pieces?.[0] ?? first);
    else this.#writeAll(pieces);
  }

  #writeAll(pieces: readonly Buffer[]): void {
    this.#client.cork();
    for (const piece of pieces) this.#client.write(piece);
    this.#client.uncork();
  }
}
