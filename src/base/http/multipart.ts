// The adapter of @fastify/busboy: the parts of a multipart/form-data body (RFC 7578) one after the other, each a stream. The
// next piece of the body is asked for when the parts of the last one are consumed, so that no part is ever held as a whole.
import { Dicer } from '@fastify/busboy';
import { nextTurn } from '../steps.ts';
import { BodyError } from './body-error.ts';
import { HEADER_FIELDS, type HeaderLimits, type PartHeader, readPartHeader } from './multipart-header.ts';

export type MultipartLimits = HeaderLimits & { readonly parts: number };

/** A part that is not consumed when the next one is asked for is discarded. */
export type Part = PartHeader & {
  /** May be iterated once. */
  readonly body: AsyncIterable<Uint8Array>;
};

/** Throws a BodyError for what is not multipart or exceeds a limit, and what `content` throws. */
export async function* readMultipart(
  content: AsyncIterable<Uint8Array>,
  boundary: string,
  limits: MultipartLimits,
): AsyncGenerator<Part, void, undefined> {
  const pieces: AsyncIterator<Uint8Array, void> = content[Symbol.asyncIterator]();
  const parser = new PartParser(pieces, boundary, limits);
  try {
    for (let part = await parser.next(); part !== undefined; part = await parser.next()) {
      yield { ...readPartHeader(part.header, limits), body: parser.read(part.stream) };
      await parser.skip(part.stream);
    }
  } finally {
    await pieces.return?.();
  }
}

type Header = Readonly<Record<string, readonly string[]>>;
type Found = { readonly stream: Dicer.PartStream; header: Header | undefined };

/** A piece may be thousands of empty parts, all of which are found in one turn. */
const SLICE_BYTES = 16 * 1024;

/** Dicer is given one slice at a time; what it finds in it waits here until it is consumed. */
class PartParser {
  readonly #pieces: AsyncIterator<Uint8Array, void>;
  /** Of the last piece. */
  #rest: Uint8Array | undefined;
  readonly #limits: MultipartLimits;
  readonly #dicer: Dicer;
  readonly #found: Found[] = [];
  #count = 0;
  #isEnded = false;
  #error: BodyError | undefined;

  constructor(pieces: AsyncIterator<Uint8Array, void>, boundary: string, limits: MultipartLimits) {
    this.#pieces = pieces;
    this.#limits = limits;
    const options = {
      boundary,
      maxHeaderPairs: HEADER_FIELDS + 1,
      // Dicer cuts off what is longer without a word: a field that begins before and ends behind our limit must be whole.
      maxHeaderSize: 2 * limits.headerBytes,
      // It must never wait for a stream to be read: one piece is held at most.
      partHwm: Number.MAX_SAFE_INTEGER,
    };
    this.#dicer = new Dicer(options);
    this.#dicer.on('part', (stream: Dicer.PartStream) => {
      const found: Found = { stream, header: undefined };
      stream.on('header', (header) => (found.header = header as Header));
      // The parser reports it too.
      stream.on('error', () => undefined);
      this.#found.push(found);
    });
    this.#dicer.on('error', () => (this.#error ??= malformed('The body ends before its last boundary')));
  }

  /** Undefined at the end of the body. */
  async next(): Promise<{ readonly stream: Dicer.PartStream; readonly header: Header } | undefined> {
    while (this.#found.length === 0 && !this.#isEnded) await this.#advance();
    const found = this.#found.shift();
    if (found === undefined) return undefined;
    this.#count += 1;
    if (this.#count > this.#limits.parts)
      throw new BodyError('too_large', `The body has more than ${this.#limits.parts} parts`);
    const { stream } = found;
    while (found.header === undefined) {
      if (await hasEnded(stream)) throw malformed('A part ends within its header');
      await this.#advance();
    }
    return { stream, header: found.header };
  }

  async *read(stream: Dicer.PartStream): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const piece: Buffer | null = stream.read();
      if (piece !== null) yield piece;
      else if (await hasEnded(stream)) return;
      else await this.#advance();
    }
  }

  /** Discards what is left of a part. */
  async skip(stream: Dicer.PartStream): Promise<void> {
    for await (const _ of this.read(stream));
  }

  async #advance(): Promise<void> {
    const piece = this.#rest ?? (await this.#pieces.next()).value;
    this.#isEnded = piece === undefined;
    if (piece === undefined) this.#dicer.end();
    else this.#dicer.write(piece.subarray(0, SLICE_BYTES));
    // An empty rest would keep the memory of a piece that is used.
    this.#rest = piece !== undefined && piece.length > SLICE_BYTES ? piece.subarray(SLICE_BYTES) : undefined;
    // By then it has reported an error.
    if (piece === undefined) await nextTurn();
    if (this.#error !== undefined) throw this.#error;
  }
}

/** Of a stream without buffered data: its end is known one tick after it was asked for. */
async function hasEnded(stream: Dicer.PartStream): Promise<boolean> {
  stream.read(0);
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
  return stream.readableEnded;
}

function malformed(message: string): BodyError {
  return new BodyError('malformed_multipart', message);
}
