// One connection of a client: TCP, CONNECT if there is a proxy, verified TLS, then one request after the other, in turn over
// the heads of its target. Used by the load client and by the measurement of the start time.
import { type Socket, connect as connectTcp } from 'node:net';
import { type TLSSocket, connect as connectTls } from 'node:tls';
import type { Line } from './arrivals.ts';
import { idOf } from './heads.ts';
import { createResponseReader } from './response-reader.ts';

export type Target = {
  readonly port: number;
  /** The target of CONNECT; undefined: TLS to the port directly. */
  readonly connectTo?: string;
  /** Sent with CONNECT: the token of a sandbox. */
  readonly proxyAuthorization?: string;
  readonly host: string;
  readonly caPem: string;
  /** HTTP/1.1 heads, sent in turn; over HTTP/2 the same as fields. */
  readonly heads: readonly string[];
};

export type TlsOptions = {
  /** The key exchange that is offered; by default X25519 only, so that all subjects do the same work. */
  readonly groups?: string;
  /** A session to resume. */
  readonly session?: Buffer | undefined;
};

export type Connection = Line & {
  /** As negotiated: `TLSv1.3 TLS_AES_256_GCM_SHA384`. */
  readonly suite: string;
  readonly socket: TLSSocket;
  close(): void;
};

const OPEN_DEADLINE_MS = 20_000;
/** One suite and one group for everybody: a comparison of proxies, not of ciphers. */
const SUITE = 'TLS_AES_256_GCM_SHA384';
const GROUP = 'X25519';

type Requests = { readonly bytes: readonly Buffer[]; readonly ids: readonly (string | undefined)[] };
const prepared = new WeakMap<readonly string[], Requests>();
let opened = 0;

export async function openConnection(
  target: Target,
  onError: (error: Error) => void,
  options: TlsOptions & { readonly onFirstByte?: () => void } = {},
): Promise<Connection> {
  const { socket, suite } = await openTls(target, ['http/1.1'], options);
  const { bytes, ids } = requestsOf(target.heads);
  const read = createResponseReader(ids);
  // Connections start at different heads, so that the requests of one moment differ.
  let turn = (opened++ * 7) % bytes.length;
  let responded: (() => void) | undefined;
  let hasBytes = false;
  socket.on('data', (chunk: Buffer) => {
    if (!hasBytes) options.onFirstByte?.();
    hasBytes = true;
    try {
      if (!read(chunk, turn)) return;
    } catch (error) {
      return onError(error as Error);
    }
    turn = (turn + 1) % bytes.length;
    const done = responded;
    responded = undefined;
    if (done === undefined) onError(new Error('received a response without a request'));
    else done();
  });
  const onEnd = (): void => onError(new Error('a connection was closed'));
  socket.on('error', onError).on('close', onEnd);
  return {
    suite,
    socket,
    exchange(onResponse) {
      responded = onResponse;
      socket.write(bytes[turn] ?? '');
    },
    close() {
      // With close_notify and FIN, as a client that is done.
      socket.off('close', onEnd).off('error', onError).on('error', ignore).destroySoon();
    },
  };
}

function ignore(): void {}

function requestsOf(heads: readonly string[]): Requests {
  const found = prepared.get(heads);
  if (found) return found;
  const requests = { bytes: heads.map((head) => Buffer.from(head)), ids: heads.map(idOf) };
  prepared.set(heads, requests);
  return requests;
}

/** Connects to the proxy, if there is one, and through it to the origin. */
export async function openTls(
  target: Target,
  protocols: readonly string[],
  options: TlsOptions = {},
): Promise<{ readonly socket: TLSSocket; readonly suite: string }> {
  const raw = await connectTo(target.port);
  const deadline = setTimeout(() => raw.destroy(new Error('no connection in time')), OPEN_DEADLINE_MS);
  if (target.connectTo !== undefined) await openTunnel(raw, target.connectTo, target.proxyAuthorization);
  const socket = connectTls({
    socket: raw,
    host: target.host,
    servername: target.host,
    ca: target.caPem,
    ALPNProtocols: [...protocols],
    ciphers: SUITE,
    ecdhCurve: options.groups ?? GROUP,
    ...(options.session === undefined ? {} : { session: options.session }),
  });
  await settled(socket, 'secureConnect');
  clearTimeout(deadline);
  return { socket, suite: `${socket.getProtocol()} ${socket.getCipher().standardName}` };
}

export async function connectTo(port: number): Promise<Socket> {
  const socket = connectTcp({ port, host: '127.0.0.1', noDelay: true });
  await settled(socket, 'connect');
  return socket;
}

/** Sends CONNECT and waits for its 200. */
export async function openTunnel(
  socket: Socket,
  authority: string,
  token: string | undefined,
): Promise<void> {
  const field = token === undefined ? '' : `Proxy-Authorization: ${token}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${field}\r\n`);
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    await settled(socket, 'readable');
    head += (socket.read() as Buffer | null)?.toString('latin1') ?? '';
  }
  if (!/^HTTP\/1\.[01] 200[ \r][^]*?\r\n\r\n$/.test(head)) throw new Error(`CONNECT gave ${head}`);
}

function settled(socket: Socket, event: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = (): void => reject(new Error(`closed before ${event}`));
  socket.once(event, resolve).once('error', reject).once('close', onClose);
  return promise.finally(() => socket.off(event, resolve).off('error', reject).off('close', onClose));
}
