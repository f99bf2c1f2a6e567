// Reads HTTP/1.1 messages from a socket for the test peers. It shares no code with src/http1, so that it cannot repeat a
// mistake there, and it is lenient on purpose: it must be able to read what a broken proxy sends.
import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';

export type HeaderList = readonly (readonly [string, string])[];
export type MessageHead = {
  /** The head as it arrived, blank line included. */
  readonly text: string;
  readonly startLine: string;
  /** In the order and case on the wire. */
  readonly headers: HeaderList;
};
export type MessageBody = {
  readonly framing: 'none' | 'length' | 'chunked' | 'until_close';
  /** The number of content bytes, without chunk heads. */
  readonly length: number;
  readonly sha256: string;
  /** The content, limited to 1 MiB. */
  readonly content: Buffer;
};

const STORED_BYTES = 1 << 20;
// Above this the socket is paused, so that a test peer causes back-pressure as a real one does.
const BUFFERED_BYTES = 1 << 20;

/** Reads bytes from a socket; pending reads are rejected when the stream ends too early. */
export class ByteReader {
  readonly #socket: Duplex;
  #buffered: Buffer = Buffer.alloc(0);
  #total = 0;
  #ended = false;
  #error: Error | undefined;
  #transcript: Buffer[] = [];
  #wake: () => void = () => undefined;
  /** Resolves when the peer sends nothing more: 'end' after a FIN, otherwise the error code. */
  readonly finished: Promise<string>;

  constructor(socket: Duplex) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.finished = promise;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#error = error;
      resolve(error.code ?? error.message);
      this.#onEnd();
    });
    socket.on('end', () => resolve('end'));
    socket.on('close', () => {
      resolve('end');
      this.#onEnd();
    });
  }

  /** Every byte so far, up to 1 MiB, as latin1. */
  get transcript(): string {
    return Buffer.concat(this.#transcript).toString('latin1');
  }

  get buffered(): number {
    return this.#buffered.length;
  }

  /** All bytes up to and including `mark`; undefined when the stream ends before the first byte. */
  async readThrough(mark: string): Promise<Buffer | undefined> {
    for (;;) {
      const at = this.#buffered.indexOf(mark, 0, 'latin1');
      if (at !== -1) return this.#take(at + mark.length);
      if (this.#ended) {
        if (this.#buffered.length === 0) return undefined;
        throw this.#cut(JSON.stringify(mark));
      }
      await this.#more();
    }
  }

  async read(count: number): Promise<Buffer> {
    while (this.#buffered.length < count) {
      if (this.#ended) throw this.#cut(`${count} bytes`);
      await this.#more();
    }
    return this.#take(count);
  }

  /** The available bytes, at most `most`; undefined at the end. */
  async readSome(most: number = Number.POSITIVE_INFINITY): Promise<Buffer | undefined> {
    while (this.#buffered.length === 0) {
      if (this.#ended) return undefined;
      await this.#more();
    }
    return this.#take(Math.min(most, this.#buffered.length));
  }

  async readToEnd(): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let piece = await this.readSome(); piece !== undefined; piece = await this.readSome())
      pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** Releases the socket for the next reader; bytes already read are pushed back into it. */
  detach(): void {
    this.#socket.off('data', this.#onData);
    this.#socket.off('end', this.#onEnd);
    this.#socket.pause();
    if (this.#buffered.length > 0) this.#socket.unshift(this.#take(this.#buffered.length));
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#total < STORED_BYTES) this.#transcript.push(bytes.subarray(0, STORED_BYTES - this.#total));
    this.#total += bytes.length;
    this.#buffered = this.#buffered.length === 0 ? bytes : Buffer.concat([this.#buffered, bytes]);
    if (this.#buffered.length > BUFFERED_BYTES) this.#socket.pause();
    this.#wake();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    this.#wake();
  };

  #take(count: number): Buffer {
    const taken = this.#buffered.subarray(0, count);
    this.#buffered = this.#buffered.subarray(count);
    return taken;
  }

  async #more(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    this.#socket.resume();
    await promise;
  }

  #cut(wanted: string): Error {
    const why = this.#error === undefined ? 'the stream ended' : `the stream broke (${this.#error.message})`;
    return new Error(`${why} before ${wanted}; unread: ${JSON.stringify(this.#buffered.toString('latin1'))}`);
  }
}

/** Undefined when the connection closes between two messages. */
export async function readMessageHead(reader: ByteReader): Promise<MessageHead | undefined> {
  const bytes = await reader.readThrough('\r\n\r\n');
  if (bytes === undefined) return undefined;
  const text = bytes.toString('latin1');
  const [startLine = '', ...lines] = text.slice(0, -4).split('\r\n');
  return { text, startLine, headers: lines.map(splitField) };
}

export function headerValues(head: { readonly headers: HeaderList }, name: string): readonly string[] {
  return head.headers.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
}

/** Reads the body that the head announces; `absence` is the meaning of a head without framing. */
export async function readMessageBody(
  reader: ByteReader,
  head: MessageHead,
  absence: 'absence_means_none' | 'absence_means_until_close',
): Promise<MessageBody> {
  const content = new BodyRecord();
  const [length] = headerValues(head, 'content-length');
  const coding = headerValues(head, 'transfer-encoding').join(',').toLowerCase();
  if (coding.endsWith('chunked')) {
    await readChunks(reader, content);
    return content.finish('chunked');
  }
  if (length !== undefined) {
    await readLength(reader, Number(length), content);
    return content.finish('length');
  }
  if (absence === 'absence_means_none') return content.finish('none');
  for (let piece = await reader.readSome(); piece !== undefined; piece = await reader.readSome())
    content.add(piece);
  return content.finish('until_close');
}

async function readChunks(reader: ByteReader, content: BodyRecord): Promise<void> {
  for (;;) {
    const line = await reader.readThrough('\r\n');
    if (line === undefined) throw new Error('the stream ended before a chunk');
    const size = Number.parseInt(line.toString('latin1'), 16);
    if (Number.isNaN(size)) throw new Error(`not a chunk head: ${JSON.stringify(line.toString('latin1'))}`);
    if (size === 0) break;
    await readLength(reader, size, content);
    await reader.read(2);
  }
  for (let line = ''; line !== '\r\n'; )
    line = (await reader.readThrough('\r\n'))?.toString('latin1') ?? '\r\n';
}

async function readLength(reader: ByteReader, length: number, content: BodyRecord): Promise<void> {
  for (let left = length; left > 0; ) {
    const piece = await reader.readSome(left);
    if (piece === undefined) throw new Error(`the stream ended ${left} bytes before the end of a body`);
    content.add(piece);
    left -= piece.length;
  }
}

class BodyRecord {
  readonly #hash = createHash('sha256');
  readonly #stored: Buffer[] = [];
  #length = 0;

  add(piece: Buffer): void {
    if (this.#length < STORED_BYTES)
      this.#stored.push(Buffer.from(piece.subarray(0, STORED_BYTES - this.#length)));
    this.#length += piece.length;
    this.#hash.update(piece);
  }

  finish(framing: MessageBody['framing']): MessageBody {
    const content = Buffer.concat(this.#stored);
    return { framing, length: this.#length, sha256: this.#hash.digest('hex'), content };
  }
}

function splitField(line: string): readonly [string, string] {
  const colon = line.indexOf(':');
  return colon === -1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
}
