// A raw HTTP/2 client: sends exactly the given frames, stores every received frame, and never retries. It handles windows
// and acknowledgements by default.
//
//   const client = await H2WireClient.connectThrough(proxyPort, 'api.test:443', { ca, name: 'api.test' });
//   const { status, headers, text, trailers, reset } = await client.request(client.fields('/path', [['x', 'y']]));
//   const stream = await client.open(fields);  stream.data(..)  stream.reset(..)  client.response(stream)
//   client.send(frames...)  client.frame(isIt)  client.goaway()  client.closed  client.peer (everything received)
import { TLSSocket } from 'node:tls';
import type { ErrorName, Frame, Goaway } from './h2-frames.ts';
import { PREFACE, settingsFrame } from './h2-frames.ts';
import { H2Peer, type PeerOptions } from './h2-peer.ts';
import type { H2Stream, HeaderBlock } from './h2-stream.ts';
import type { SentField } from './hpack.ts';
import type { HeaderList } from './message-reader.ts';
import { type TlsOptions, WireClient } from './wire-client.ts';

export type H2ClientOptions = PeerOptions & {
  /** Sends the preface and SETTINGS at once; true by default. */
  readonly hasPreface?: boolean;
};
export type H2Head = { readonly status: number; readonly headers: HeaderList };
export type H2Response = H2Head & {
  /** The 1xx heads before it. */
  readonly interim: readonly H2Head[];
  /** Names of the fields that arrived as never indexed. */
  readonly neverIndexed: readonly string[];
  /** The content, limited to 1 MiB; `length` and `sha256` cover all of it. */
  readonly body: Buffer;
  readonly text: string;
  readonly length: number;
  readonly sha256: string;
  readonly trailers: HeaderList | undefined;
  /** The code of the RST_STREAM that ended it. */
  readonly reset: ErrorName | number | undefined;
};
export type H2RequestOptions = {
  readonly body?: string | Buffer;
  readonly trailers?: readonly SentField[];
  /** False leaves the request open after its head and body. */
  readonly isEnd?: boolean;
};

export class H2WireClient {
  readonly wire: WireClient;
  readonly peer: H2Peer;
  /** The default of `:authority`. */
  readonly authority: string;
  #nextId = 1;

  private constructor(wire: WireClient, authority: string, options: PeerOptions) {
    this.wire = wire;
    this.authority = authority;
    this.peer = new H2Peer(wire, wire.socket, options);
  }

  /** CONNECT, TLS with ALPN h2, preface and SETTINGS. */
  static async connectThrough(
    proxyPort: number,
    authority: string,
    tls: TlsOptions,
    options: H2ClientOptions = {},
  ): Promise<H2WireClient> {
    const wire = await WireClient.connectThrough(proxyPort, authority, { alpn: ['h2'], ...tls });
    return H2WireClient.over(wire, authority, options);
  }

  /** Connects to a server without a proxy. */
  static async connect(port: number, tls: TlsOptions, options: H2ClientOptions = {}): Promise<H2WireClient> {
    const wire = await WireClient.connect(port);
    await wire.startTls({ alpn: ['h2'], ...tls });
    return H2WireClient.over(wire, `${tls.name}:${port}`, options);
  }

  /** Uses a connection whose TLS handshake is done. */
  static async over(
    wire: WireClient,
    authority: string,
    options: H2ClientOptions = {},
  ): Promise<H2WireClient> {
    const chosen = wire.socket instanceof TLSSocket ? wire.socket.alpnProtocol : undefined;
    if (chosen !== 'h2') throw new Error(`ALPN chose ${String(chosen)}, not h2`);
    const client = new H2WireClient(wire, authority, options);
    if (options.hasPreface !== false) await client.send(PREFACE, settingsFrame(options.settings));
    return client;
  }

  get frames(): readonly Frame[] {
    return this.peer.frames;
  }

  /** Resolves with 'end' after a FIN of the server, otherwise with the error code. */
  get closed(): Promise<string> {
    return this.peer.closed;
  }

  /** True when the bytes were written, false when the connection is closed. */
  send(...frames: readonly (Buffer | string)[]): Promise<boolean> {
    return this.peer.send(...frames);
  }

  frame(isIt: (frame: Frame) => boolean, what?: string): Promise<Frame> {
    return this.peer.frame(isIt, what);
  }

  /** The first GOAWAY, already received or future. */
  goaway(): Promise<Goaway> {
    return this.peer.until(() => this.peer.goaways[0], 'GOAWAY');
  }

  /** The four pseudo-header fields of a GET with overrides (undefined omits one), then `extra`. */
  fields(
    path: string,
    extra: readonly SentField[] = [],
    pseudo: Readonly<Record<string, string | undefined>> = {},
  ): SentField[] {
    const first = {
      ':method': 'GET',
      ':scheme': 'https',
      ':authority': this.authority,
      ':path': path,
      ...pseudo,
    };
    const fields: SentField[] = [];
    for (const [name, value] of Object.entries(first)) if (value !== undefined) fields.push([name, value]);
    return [...fields, ...extra];
  }

  /** Returns the id of the next stream and reserves it. */
  nextId(): number {
    const id = this.#nextId;
    this.#nextId += 2;
    return id;
  }

  /** Sends a request head on a new stream. */
  async open(
    fields: readonly SentField[],
    options: { readonly isEnd?: boolean; readonly split?: number } = {},
  ): Promise<H2Stream> {
    const stream = this.peer.stream(this.nextId());
    await stream.headers(fields, options);
    return stream;
  }

  /** Sends a complete request and reads its complete response. */
  async request(fields: readonly SentField[], options: H2RequestOptions = {}): Promise<H2Response> {
    const { body, trailers, isEnd = true } = options;
    const stream = await this.open(fields, { isEnd: isEnd && body === undefined && trailers === undefined });
    // Not awaited: the response may arrive before the body was read, or instead of that.
    void this.#sendRest(stream, options);
    return this.response(stream);
  }

  async #sendRest(stream: H2Stream, { body, trailers, isEnd = true }: H2RequestOptions): Promise<void> {
    if (body !== undefined) await stream.data(body, { isEnd: isEnd && trailers === undefined });
    if (trailers !== undefined) await stream.headers(trailers, { isEnd });
  }

  /** The response head of a stream, once it has arrived. */
  async head(stream: H2Stream): Promise<H2Head> {
    const block = await this.peer.until(() => {
      this.#throwIfLost(stream);
      if (stream.resetCode !== undefined) throw new Error(`stream ${stream.id}: reset ${stream.resetCode}`);
      return stream.blocks.find((block) => statusOf(block) >= 200);
    }, `the head of stream ${stream.id}`);
    return headOf(block);
  }

  /** The response of a stream when it has ended or was reset; rejects when the connection ended before. */
  async response(stream: H2Stream): Promise<H2Response> {
    await this.peer.until(() => {
      if (stream.isEnded || stream.resetCode !== undefined) return true;
      this.#throwIfLost(stream);
      return undefined;
    }, `the response on stream ${stream.id}`);
    const final = stream.blocks.findIndex((block) => statusOf(block) >= 200);
    const head = stream.blocks[final];
    const trailers = final === -1 ? undefined : stream.blocks[final + 1];
    const body = stream.content;
    return {
      ...(head === undefined ? { status: 0, headers: [] } : headOf(head)),
      interim: stream.blocks.slice(0, final === -1 ? undefined : final).map(headOf),
      neverIndexed: neverIndexedOf(head),
      body,
      text: body.toString('utf8'),
      length: stream.length,
      sha256: stream.sha256,
      trailers: trailers?.fields.map(({ name, value }) => [name, value] as const),
      reset: stream.resetCode,
    };
  }

  /** Stops reading until `resume`, which causes back-pressure at the server. */
  pause(): void {
    this.wire.socket.pause();
  }

  resume(): void {
    this.wire.socket.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.wire[Symbol.asyncDispose]();
  }

  #throwIfLost(stream: H2Stream): void {
    const goaway = this.peer.goaways.find(({ lastStream }) => lastStream < stream.id);
    if (goaway !== undefined && stream.blocks.length === 0)
      throw new Error(`stream ${stream.id} is lost: GOAWAY ${goaway.code} ${goaway.debug}`);
  }
}

/** The first field of this name. */
export function fieldOf(head: H2Head, name: string): string | undefined {
  return head.headers.find(([field]) => field === name)?.[1];
}

/** The code of a refusal as the client reads it. */
export function refusalOf(head: H2Head): string | undefined {
  return fieldOf(head, 'x-sallyport-error');
}

function headOf(block: HeaderBlock): H2Head {
  const headers = block.fields.map(({ name, value }) => [name, value] as const);
  return { status: statusOf(block), headers: headers.filter(([name]) => !name.startsWith(':')) };
}

function neverIndexedOf(block: HeaderBlock | undefined): readonly string[] {
  return block?.fields.filter(({ isNeverIndexed }) => isNeverIndexed).map(({ name }) => name) ?? [];
}

function statusOf(block: HeaderBlock): number {
  return Number(block.fields.find(({ name }) => name === ':status')?.value ?? 0);
}
