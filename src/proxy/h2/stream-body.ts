// A request body over HTTP/2 on its way from the client's stream to the host's, at the pace of the host. Its beginning
// is kept until the host has answered: a request that the host never looked at is sent again with it.
import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { TurnWriter, writeAll } from './turn-writer.ts';

/** Longer bodies are sent once. Most that models get fit in here. */
const MAX_REPEATED_BYTES = 65_536;
/** Each costs something, however small it is. */
const MAX_REPEATED_PIECES = 64;

export class StreamBody {
  /** Bytes that the client has sent. */
  bytes = 0;
  /** The client has said that this was all. */
  isWhole = false;
  readonly #stream: ServerHttp2Stream;
  #upstream: ClientHttp2Stream | undefined;
  #sent: Buffer[] | undefined = [];
  #hasBegun = false;
  readonly #writer = new TurnWriter((pieces) => this.#pass(pieces));

  /** `onPiece` hears of each piece's length as it comes, which may be long before its host takes it. */
  constructor(stream: ServerHttp2Stream, onPiece: (bytes: number) => void) {
    this.#stream = stream;
    const push = stream.push.bind(stream);
    stream.push = (piece: Buffer | null, encoding?: BufferEncoding): boolean => {
      if (piece) onPiece(piece.length);
      return push(piece, encoding);
    };
    // From the first turn on: an empty body ends without being read.
    stream.on('end', () => this.#onEnd());
    // After a reset without an error node:http2 waits for the end, which nobody sees of a stream that is not read.
    stream.on('aborted', () => stream.resume());
  }

  /** All of what has left is still here. */
  get isRepeatable(): boolean {
    return this.#sent !== undefined && this.bytes <= MAX_REPEATED_BYTES;
  }

  /** Sends what there is, and what comes, to `upstream`; what went to an earlier one again. */
  sendTo(upstream: ClientHttp2Stream): void {
    this.#upstream = upstream;
    upstream.on('drain', () => this.#stream.resume());
    upstream.once('close', () => this.#hold(upstream));
    for (const piece of this.#sent ?? []) upstream.write(piece);
    if (this.#hasBegun) this.#stream.resume();
    else this.#begin();
    if (this.isWhole) upstream.end();
  }

  /** The host has looked at the request: it is not sent again. */
  keepNothing(): void {
    this.#sent = undefined;
  }

  /** Nothing more of it leaves; what still comes is thrown away, for a stream that is not read does not close. */
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
    // A stream that was reset ends too: half a body must not pass for a whole one.
    if (this.#stream.closed || this.#stream.aborted) return;
    this.#writer.flush();
    this.isWhole = true;
    this.#upstream?.end();
  }

  /** What comes before the next upstream is there must not push out what that has to get first. */
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
