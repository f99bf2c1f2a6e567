// A client that sends exactly the given bytes and reads responses piece by piece, so that a test follows the protocol: send,
// expect, send. It never adds a field, follows a redirect or retries.
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import {
  ByteReader,
  readMessageBody,
  readMessageHead,
  type HeaderList,
  type MessageBody,
  type MessageHead,
} from './message-reader.ts';
import { offerAnywhere } from './raw-session.ts';

export type WireHead = {
  readonly status: number;
  readonly reason: string;
  readonly version: string;
  readonly headers: HeaderList;
  /** The head as it arrived, blank line included. */
  readonly text: string;
};
export type WireResponse = { readonly head: WireHead; readonly body: MessageBody; readonly text: string };
export type TlsOptions = {
  /** PEM of the CA to trust: that of the proxy for an intercepted host. */
  readonly ca: string;
  /** The name to verify; also sent as SNI unless it is an address. */
  readonly name: string;
  /** Another SNI than the name, or '' for none. */
  readonly serverName?: string;
  readonly alpn?: readonly string[];
  /** A session of an earlier connection, offered to this server whatever its name; nothing is verified then. */
  readonly session?: Buffer;
  /** The only version that is offered; by default those of Node. */
  readonly version?: 'TLSv1.2' | 'TLSv1.3';
};

export class WireClient {
  readonly #raw: Socket;
  #socket: Socket;
  #reader: ByteReader;
  #lastHead: MessageHead | undefined;

  private constructor(socket: Socket) {
    this.#raw = socket;
    this.#socket = socket;
    this.#reader = new ByteReader(socket);
  }

  static async connect(port: number, options: { readonly localAddress?: string } = {}): Promise<WireClient> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, ...options });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    socket.setNoDelay(true);
    return new WireClient(socket);
  }

  /** CONNECT, its 200, then TLS, as every HTTPS client does. */
  static async connectThrough(proxyPort: number, authority: string, tls: TlsOptions): Promise<WireClient> {
    const client = await WireClient.connect(proxyPort);
    const head = await client.openTunnel(authority);
    if (head.status !== 200) throw new Error(`CONNECT ${authority} got status ${head.status}: ${head.text}`);
    await client.startTls(tls);
    return client;
  }

  get socket(): Socket {
    return this.#socket;
  }

  /** Every byte received since the connection, or its TLS, began. */
  get transcript(): string {
    return this.#reader.transcript;
  }

  /** Resolves with 'end' after a FIN of the peer, otherwise with the error code. */
  get finished(): Promise<string> {
    return this.#reader.finished;
  }

  send(bytes: string | Buffer): Promise<void> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes, (error) =>
        error ? reject(error) : resolve(),
      );
    });
  }

  async openTunnel(authority: string, fields: readonly string[] = []): Promise<WireHead> {
    await this.send([`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, ...fields, '', ''].join('\r\n'));
    return this.readHead();
  }

  /** Wraps the connection in TLS and waits for the handshake; a second call gives TLS in TLS. */
  async startTls(options: TlsOptions): Promise<TLSSocket> {
    this.#reader.detach();
    const serverName = options.serverName ?? (isAddress(options.name) ? '' : options.name);
    const secure = connectTls({
      socket: this.#socket,
      host: options.name,
      ca: options.ca,
      ALPNProtocols: [...(options.alpn ?? ['http/1.1'])],
      ...(serverName === '' ? {} : { servername: serverName }),
      ...(options.session && offerAnywhere(options.session)),
      ...(options.version && { minVersion: options.version, maxVersion: options.version }),
    });
    this.#socket = secure;
    await new Promise<void>((resolve, reject) => {
      secure.once('secureConnect', resolve);
      secure.once('error', reject);
      secure.once('close', () => reject(new Error('closed during the TLS handshake')));
    });
    this.#reader = new ByteReader(secure);
    return secure;
  }

  async readHead(): Promise<WireHead> {
    const head = await readMessageHead(this.#reader);
    if (head === undefined) throw new Error('the connection ended before a response');
    this.#lastHead = head;
    const [, version = '', status = '', reason = ''] = /^(\S+) (\S+) ?(.*)$/.exec(head.startLine) ?? [];
    return { status: Number(status), reason, version, headers: head.headers, text: head.text };
  }

  /** Reads the body of the last head. */
  async readBody(): Promise<MessageBody> {
    if (this.#lastHead === undefined) throw new Error('readBody before readHead');
    const isBodiless = /^\S+ (?:1\d\d|204|304)\b/.test(this.#lastHead.startLine);
    return readMessageBody(
      this.#reader,
      this.#lastHead,
      isBodiless ? 'absence_means_none' : 'absence_means_until_close',
    );
  }

  async readResponse(): Promise<WireResponse> {
    const head = await this.readHead();
    const body = await this.readBody();
    return { head, body, text: body.content.toString('utf8') };
  }

  /** One chunk as received; undefined at the end. */
  readSome(): Promise<Buffer | undefined> {
    return this.#reader.readSome();
  }

  async readThrough(mark: string): Promise<string | undefined> {
    return (await this.#reader.readThrough(mark))?.toString('latin1');
  }

  async readToEnd(): Promise<string> {
    return (await this.#reader.readToEnd()).toString('latin1');
  }

  /** Sends FIN and keeps reading. */
  end(): void {
    this.#socket.end();
  }

  /** Resets the TCP connection, also below TLS. */
  reset(): void {
    this.#raw.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#socket.closed) return;
    const closed = new Promise((resolve) => this.#socket.once('close', resolve));
    this.#socket.destroy();
    await closed;
  }
}

function isAddress(name: string): boolean {
  return name.includes(':') || /^[0-9.]+$/.test(name);
}
