// A request body over HTTP/2 from the client's stream to the upstream's, with back-pressure. Its beginning is buffered until
// the upstream has responded: a request that the upstream did not process is sent again with it.
import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { TurnWriter, writeAll } from './turn-writer.ts';

/** Longer bodies are sent only once. Most requests to models fit. */
const MAX_REPEATED_BYTES = 65_536;
/** Each piece has a cost, however small it is. */
const MAX_REPEATED_PIECES = 64;

export class StreamBody {
  /** Bytes that the client has sent. */
  bytes = 0;
  /** The client has ended its body. */
  isWhole = false;
  readonly #stream: ServerHttp2Stream;
  #upstream: ClientHttp2Stream | undefined;
  #sent: Buffer[] | undefined = [];
  #hasBegun = false;
  readonly #writer = new TurnWriter((pieces) => this.#pass(pieces));

  /** `onPiece` gets the length of each piece when it arrives, which may be long before the upstream takes it. */
  constructor(stream: ServerHttp2Stream, onPiece: (bytes: number) => void) {
    this.#stream = stream;
    const push = stream.push.bind(stream);
    stream.push = (piece: Buffer | null, encoding?: BufferEncoding): boolean => {
      if (piece) onPiece(piece.length);
      return push(piece, encoding);
    };
    // From the first turn on: an empty body ends without being read.
    stream.on('end', () => this.#onEnd());
    // After a reset without an error node:http2 waits for 'end', which a stream that is not read never emits.
    stream.on('aborted', () => stream.resume());
  }

  /** Everything that was sent is still buffered. */
  get isRepeatable(): boolean {
    return this.#sent !== undefined && this.bytes <= MAX_REPEATED_BYTES;
  }

  /** Sends the buffered bytes and all later ones to `upstream`; also what was sent to an earlier one. */
  sendTo(upstream: ClientHttp2Stream): void {
    this.#upstream = upstream;
    upstream.on('drain', () => this.#stream.resume());
    upstream.once('close', () => this.#hold(upstream));
    for (const piece of this.#sent ?? []) upstream.write(piece);
    if (this.#hasBegun) this.#stream.resume();
    else this.#begin();
    if (this.isWhole) upstream.end();
  }

  /** The upstream has processed the request: it is not sent again. */
  keepNothing(): void {
    this.#sent = undefined;
  }

  /** Sends nothing more. Further bytes are read and dropped, because a stream that is not read does not close. */
  stop(): void {
    this.#upstream = undefined;
    this.keepNothing();
    this.#stream.resume();
  }

  #begin(): void {
    this.#hasBegun = true;
    this.#stream.on('data', (piece: Buffer) => {
      this.bytes += piece.length;
      this.#writer.add(piece);
    });
  }

  #pass(pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.#keep(piece);
    if (this.#upstream && !writeAll(this.#upstream, pieces)) this.#stream.pause();
  }

  #onEnd(): void {
    // A stream that was reset emits 'end' too: half a body must not pass for a complete one.
    if (this.#stream.closed || this.#stream.aborted) return;
    this.#writer.flush();
    this.isWhole = true;
    this.#upstream?.end();
  }

  /** Bytes that arrive before the next upstream stream exists must not evict those that it needs first. */
  #hold(upstream: ClientHttp2Stream): void {
    if (this.#upstream !== upstream) return;
    this.#upstream = undefined;
    this.#stream.pause();
  }

  #keep(piece: Buffer): void {
    this.#sent?.push(piece);
    const isTooMuch = this.bytes > MAX_REPEATED_BYTES || (this.#sent?.length ?? 0) > MAX_REPEATED_PIECES;
    if (isTooMuch) this.#sent = undefined;
  }
}
