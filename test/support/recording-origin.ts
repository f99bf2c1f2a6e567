// An origin on loopback that stores the exact bytes of every request and responds by a script. It works on raw sockets, so
// that a test can check the order and case of every field and can send invalid responses. Independent of the proxy.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { TLSSocket, type SecureContext } from 'node:tls';
import {
  ByteReader,
  headerValues,
  readMessageBody,
  readMessageHead,
  type HeaderList,
  type MessageBody,
  type MessageHead,
} from './message-reader.ts';
import type { TestAuthority } from './test-authority.ts';

export type OriginRequest = {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly headers: HeaderList;
  /** The head as it arrived, blank line included. */
  readonly head: string;
  /** The number of its connection, counted from 0. */
  readonly connection: number;
  /** The SNI of the TLS handshake; undefined in plaintext or without SNI. */
  readonly serverName: string | undefined;
  /** Undefined until it was read. */
  body: MessageBody | undefined;
};

/** The functions of a script for one request. When the script returns, an unread body is read and the next request follows. */
export type Exchange = {
  readonly request: OriginRequest;
  readonly socket: Socket;
  readonly reader: ByteReader;
  readBody(): Promise<MessageBody>;
  /** Resolves when the bytes were written, so that a script waits as a real server does. */
  send(bytes: string | Buffer): Promise<void>;
  /** Closes the connection after everything was sent. */
  end(): void;
  reset(): void;
};

export type OriginOptions = {
  /** Uses TLS with a certificate for the requested one of these names; the first one without SNI. */
  readonly tls?: {
    readonly authority: TestAuthority;
    readonly names: readonly string[];
    /** Ends the handshake of a client without a certificate. */
    readonly requiresCertificate?: boolean;
  };
  readonly respond?: (exchange: Exchange) => void | Promise<void>;
  /** Another loopback address than 127.0.0.1. */
  readonly address?: string;
};

export type RecordingOrigin = AsyncDisposable & {
  readonly port: number;
  readonly requests: readonly OriginRequest[];
  /** The bytes of each connection, decrypted, up to 1 MiB. */
  readonly transcripts: readonly string[];
  /** The number of TCP connections accepted so far, and of those still open. */
  readonly connections: number;
  readonly openConnections: number;
  /** The nth request, counted from 0, when its head has arrived. */
  request(index: number): Promise<OriginRequest>;
  close(): Promise<void>;
};

export async function createOrigin(options: OriginOptions = {}): Promise<RecordingOrigin> {
  const respond = options.respond ?? echo;
  const requests: OriginRequest[] = [];
  const readers: ByteReader[] = [];
  const open = new Set<Socket>();
  const waiting: { readonly index: number; readonly resolve: (request: OriginRequest) => void }[] = [];
  let connections = 0;

  const server = createServer({ allowHalfOpen: true }, (raw) => {
    const connection = connections++;
    open.add(raw);
    raw.on('close', () => open.delete(raw));
    raw.on('error', () => raw.destroy());
    serve(raw, connection).catch(() => raw.destroy());
  });

  async function serve(raw: Socket, connection: number): Promise<void> {
    const socket = options.tls === undefined ? raw : await secure(raw, options.tls);
    const reader = new ByteReader(socket);
    readers.push(reader);
    for (;;) {
      const head = await readMessageHead(reader);
      if (head === undefined) break;
      const request = toRequest(head, connection, socket);
      requests.push(request);
      for (const waiter of waiting) if (waiter.index === requests.length - 1) waiter.resolve(request);
      const exchange = createExchange(request, head, { socket, raw, reader });
      await respond(exchange);
      if (socket.destroyed || socket.writableEnded) break;
      await exchange.readBody();
    }
    socket.end();
  }

  const port = await listen(server, options.address ?? '127.0.0.1');
  const close = (): Promise<void> => closeServer(server, open);
  return {
    port,
    requests,
    get transcripts() {
      return readers.map((reader) => reader.transcript);
    },
    get connections() {
      return connections;
    },
    get openConnections() {
      return open.size;
    },
    request(index) {
      const there = requests[index];
      if (there !== undefined) return Promise.resolve(there);
      return new Promise((resolve) => waiting.push({ index, resolve }));
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The bytes of a response with a fixed length. */
export function response(status: number, headers: HeaderList, body: string | Buffer = ''): Buffer {
  const content = Buffer.from(body);
  const lines = [`HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Scripted'}`];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  lines.push(`Content-Length: ${content.length}`, '', '');
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), content]);
}

export function jsonResponse(value: unknown, status = 200): Buffer {
  return response(status, [['Content-Type', 'application/json']], JSON.stringify(value));
}

/** The default script: responds with the received request as JSON. */
export async function echo(exchange: Exchange): Promise<void> {
  if (headerValues(exchange.request, 'expect').some((value) => value.toLowerCase() === '100-continue')) {
    await exchange.send('HTTP/1.1 100 Continue\r\n\r\n');
  }
  const { method, target, headers } = exchange.request;
  const { length, sha256 } = await exchange.readBody();
  const response = jsonResponse({ method, target, headers, body: { length, sha256 } });
  await exchange.send(method === 'HEAD' ? response.subarray(0, response.indexOf('\r\n\r\n') + 4) : response);
}

function createExchange(
  request: OriginRequest,
  head: MessageHead,
  { socket, raw, reader }: { readonly socket: Socket; readonly raw: Socket; readonly reader: ByteReader },
): Exchange {
  let body: Promise<MessageBody> | undefined;
  return {
    request,
    socket,
    reader,
    readBody() {
      body ??= readMessageBody(reader, head, 'absence_means_none').then((read) => {
        request.body = read;
        return read;
      });
      return body;
    },
    send(bytes) {
      return new Promise((resolve, reject) => {
        socket.write(bytes, (error) => (error ? reject(error) : resolve()));
      });
    },
    end: () => void socket.end(),
    // RST is sent by TCP: the TLS layer above it has no reset.
    reset: () => void raw.resetAndDestroy(),
  };
}

function toRequest(head: MessageHead, connection: number, socket: Socket): OriginRequest {
  const [method = '', target = '', version = ''] = head.startLine.split(' ');
  const asked = socket instanceof TLSSocket ? socket.servername : undefined;
  const serverName = typeof asked === 'string' && asked !== '' ? asked : undefined;
  return {
    method,
    target,
    version,
    headers: head.headers,
    head: head.text,
    connection,
    serverName,
    body: undefined,
  };
}

function secure(raw: Socket, tls: NonNullable<OriginOptions['tls']>): Promise<Socket> {
  const [first = 'localhost'] = tls.names;
  const contextFor = (name: string): SecureContext =>
    tls.authority.contextFor(tls.names.includes(name) ? name : first);
  return new Promise((resolve, reject) => {
    const socket = new TLSSocket(raw, {
      isServer: true,
      secureContext: contextFor(first),
      SNICallback: (name, done) => done(null, contextFor(name)),
      ALPNProtocols: ['http/1.1'],
      ...(tls.requiresCertificate && { requestCert: true, rejectUnauthorized: true }),
    });
    socket.once('secure', () => resolve(socket));
    socket.once('error', reject);
    // A FIN before the handshake ended is only an 'end': nothing else would close the socket.
    socket.once('end', () => reject(new Error('FIN before the end of the handshake')));
    socket.once('close', () => reject(new Error('closed before the handshake ended')));
  });
}

function listen(server: Server, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // A listening TCP server's address is never a string: that form is for pipes.
    server.listen(0, address, () => resolve((server.address() as AddressInfo).port));
  });
}

function closeServer(server: Server, open: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const socket of open) socket.destroy();
  });
}
