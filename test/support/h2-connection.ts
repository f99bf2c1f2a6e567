// One connection at the recording HTTP/2 origin: its TLS handshake, in which ALPN chooses the protocol, and the view and the
// controls that a test gets.
import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import { type ErrorName, goawayFrame } from './h2-frames.ts';
import type { H2Peer } from './h2-peer.ts';
import type { TestAuthority } from './test-authority.ts';

export type OriginProtocol = 'h2' | 'http/1.1';
export type OriginTls = { readonly authority: TestAuthority; readonly names: readonly string[] };

export class H2Connection {
  readonly #raw: Socket;
  readonly #open = new Set<{ readonly isOver: boolean }>();
  #socket: TLSSocket | undefined;
  readonly index: number;
  /** The client's ALPN list; undefined when it sent none, or the origin does not support ALPN. */
  offered: readonly string[] | undefined;
  serverName: string | undefined;
  /** Undefined until the handshake is done. */
  protocol: OriginProtocol | undefined;
  /** The frames and the sender of the connection; only for HTTP/2, after its preface has arrived. */
  peer: H2Peer | undefined;
  /** Every decrypted byte that arrived, up to 1 MiB; only for HTTP/2. */
  transcript: () => string = () => '';
  /** The maximum of concurrent streams. */
  mostStreams = 0;

  constructor(index: number, raw: Socket) {
    this.index = index;
    this.#raw = raw;
  }

  get isOpen(): boolean {
    return !this.#raw.closed;
  }

  goaway(lastStream: number, code: ErrorName | number = 'NO_ERROR', debug = ''): Promise<boolean> {
    return this.peer?.send(goawayFrame(lastStream, code, debug)) ?? Promise.resolve(false);
  }

  /** Closes the connection after everything was sent. */
  end(): void {
    (this.#socket ?? this.#raw).end();
  }

  /** Resets the TCP connection: TLS above it has no reset. */
  destroy(): void {
    this.#raw.resetAndDestroy();
  }

  countStream(stream: { readonly isOver: boolean }): void {
    for (const other of this.#open) if (other.isOver) this.#open.delete(other);
    this.#open.add(stream);
    this.mostStreams = Math.max(this.mostStreams, this.#open.size);
  }

  /** The TLS socket once its handshake is done; undefined when the client did not finish it. */
  async secure(tls: OriginTls, protocols: readonly OriginProtocol[]): Promise<TLSSocket | undefined> {
    const [first = 'localhost'] = tls.names;
    const contextFor = (name: string): SecureContext =>
      tls.authority.contextFor(tls.names.includes(name) ? name : first);
    const choose = (offer: { readonly protocols: readonly string[] }): string | undefined => {
      this.offered = offer.protocols;
      return protocols.find((protocol) => offer.protocols.includes(protocol));
    };
    const socket = new TLSSocket(this.#raw, {
      isServer: true,
      secureContext: contextFor(first),
      SNICallback: (name, done) => done(null, contextFor(name)),
      ...(protocols.length === 0 ? {} : { ALPNCallback: choose }),
    });
    if (!(await isSecured(socket))) return undefined;
    this.#socket = socket;
    this.protocol = socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1';
    const asked: unknown = socket.servername;
    this.serverName = typeof asked === 'string' && asked !== '' ? asked : undefined;
    return socket;
  }
}

function isSecured(socket: TLSSocket): Promise<boolean> {
  return new Promise((resolve) => {
    const fail = (): void => {
      resolve(false);
      socket.destroy();
    };
    socket.once('secure', () => {
      socket.off('end', fail);
      resolve(true);
    });
    // A client may refuse the certificate or find no protocol: the test checks that at the client.
    socket.once('error', fail);
    socket.once('end', fail);
    socket.once('close', fail);
  });
}
