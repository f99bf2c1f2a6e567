// Parses what an upstream sends into interim heads, the final head and its body, and finds the end of the response. Bytes
// behind the end are counted and never forwarded: the next request would get them as its response (a poisoned queue).
import { ChunkWalker } from '../../http1/chunk-walker.ts';
import { type ConnectionFields, readConnectionFields } from '../../http1/connection-fields.ts';
import { isHeadError } from '../../http1/head-error.ts';
import { type Framing, responseFraming } from '../../http1/framing.ts';
import { type HeadLimits, type ResponseHead, parseResponseHead } from '../../http1/head-parser.ts';
import { HeadBuffer } from '../../http1/head-buffer.ts';
import { MAX_INTERIM_BYTES, MAX_INTERIM_RESPONSES } from '../limits.ts';

export type ResponseSink = {
  onInterim(head: ResponseHead, connection: ConnectionFields): void;
  /** The final head (101 too). */
  onHead(head: ResponseHead, framing: Framing, connection: ConnectionFields): Taken;
  onBody(piece: Buffer): void;
  /** `rest`: number of bytes behind the end of the response. */
  onDone(rest: number): void;
  onError(code: string): void;
};

/**
 * What the sink took with a head: only the head; the whole message, if `holdsWholeMessage`; or the connection, from which the reader
 * reads nothing more.
 */
export type Taken = 'head' | 'message' | 'connection';

/** True if the bytes of the head are the head, its complete body, and nothing else. */
export function holdsWholeMessage({ bytes, start, end }: ResponseHead, framing: Framing): boolean {
  const bodyBytes = framing.kind === 'length' ? framing.length : framing.kind === 'none' ? 0 : undefined;
  return start === 0 && bytes.length - end === bodyBytes;
}

export class ResponseReader {
  /** Bytes behind a 101. */
  rest: Buffer | undefined;
  /** The sink gets the data of chunks without their framing. Must be set in `onHead` at the latest. */
  isBare = false;
  #hasStarted = false;
  readonly #method: string;
  readonly #limits: HeadLimits;
  readonly #sink: ResponseSink;
  /** Set only while a head is incomplete. */
  #pending: HeadBuffer | undefined;
  #framing: Framing | undefined;
  #remaining = 0;
  #walker: ChunkWalker | undefined;
  #interims = 0;
  #interimBytes = 0;
  #hasEnded = false;

  constructor(method: string, limits: HeadLimits, sink: ResponseSink) {
    this.#method = method;
    this.#limits = limits;
    this.#sink = sink;
  }

  /** A new reader for the same request on another connection. */
  restarted(): ResponseReader {
    return new ResponseReader(this.#method, this.#limits, this.#sink);
  }

  /** True after the first byte of the response. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  push(chunk: Buffer): void {
    if (this.#hasEnded) return;
    this.#hasStarted = true;
    if (this.#framing) return this.#pushBody(chunk);
    if (!this.#pending) return this.#pushHeads(chunk);
    this.#pending.push(chunk);
    const bytes = this.#pending.takeForParsing();
    if (bytes) this.#pushHeads(bytes);
  }

  /** The upstream sent a FIN: the end of an unframed body, a truncation anywhere else. */
  end(): void {
    if (this.#hasEnded) return;
    if (this.#framing?.kind === 'until_close') this.#done(0);
    else this.#error(this.#framing ? 'truncated' : 'no_response');
  }

  #pushHeads(bytes: Buffer): void {
    let at = 0;
    while (!this.#hasEnded) {
      const head = parseResponseHead(bytes, at, this.#limits);
      if (head === undefined) {
        if (this.#pending) return;
        this.#pending = new HeadBuffer(this.#limits.maxHeadBytes);
        return this.#pending.restart(at === 0 ? bytes : bytes.subarray(at));
      }
      this.#pending = undefined;
      if (isHeadError(head)) return this.#error(head.code);
      const connection = readConnectionFields(head);
      if (isHeadError(connection)) return this.#error(connection.code);
      if (head.status >= 200 || head.status === 101) return this.#finalHead(head, connection);
      this.#interim(head, connection);
      at = head.end;
      if (at === bytes.length) return;
    }
  }

  #interim(head: ResponseHead, connection: ConnectionFields): void {
    const framing = responseFraming(head, this.#method);
    if (isHeadError(framing)) return this.#error(framing.code);
    this.#interims += 1;
    this.#interimBytes += head.end - head.start;
    if (this.#interims > MAX_INTERIM_RESPONSES || this.#interimBytes > MAX_INTERIM_BYTES) {
      return this.#error('too_many_interim_responses');
    }
    this.#sink.onInterim(head, connection);
  }

  #finalHead(head: ResponseHead, connection: ConnectionFields): void {
    const framing = responseFraming(head, this.#method);
    if (isHeadError(framing)) return this.#error(framing.code);
    const { bytes, end } = head;
    if (head.status === 101) this.rest = bytes.subarray(end);
    const taken = this.#sink.onHead(head, framing, connection);
    if (taken === 'message') return this.#done(0);
    if (taken === 'connection') {
      this.#hasEnded = true;
      return;
    }
    const rest = bytes.subarray(end);
    this.#framing = framing;
    if (framing.kind === 'none' || (framing.kind === 'length' && framing.length === 0))
      return this.#done(rest.length);
    if (framing.kind === 'length') this.#remaining = framing.length;
    else if (framing.kind === 'chunked') this.#walker = new ChunkWalker('response', this.isBare);
    if (rest.length > 0) this.#pushBody(rest);
  }

  #pushBody(chunk: Buffer): void {
    if (this.#walker) {
      const consumed = this.#walker.walk(chunk, 0, (piece) => this.#sink.onBody(piece));
      if (this.#walker.error) this.#error(this.#walker.error.code);
      else if (this.#walker.done) this.#done(chunk.length - consumed);
      return;
    }
    if (this.#framing?.kind === 'until_close') return this.#sink.onBody(chunk);
    const taken = Math.min(this.#remaining, chunk.length);
    this.#remaining -= taken;
    this.#sink.onBody(taken === chunk.length ? chunk : chunk.subarray(0, taken));
    if (this.#remaining === 0) this.#done(chunk.length - taken);
  }

  #done(rest: number): void {
    this.#hasEnded = true;
    this.#sink.onDone(rest);
  }

  #error(code: string): void {
    this.#hasEnded = true;
    this.#sink.onError(code);
  }
}
