// One connection of a client: TCP, CONNECT if there is a proxy, verified TLS, then one request after the other. Used by the
// load client and by the measurement of the start time.
import { type Socket, connect as connectTcp } from 'node:net';
import { type TLSSocket, connect as connectTls } from 'node:tls';
import type { Line } from './arrivals.ts';
import { createResponseReader } from './response-reader.ts';

export type Target = {
  readonly port: number;
  /** The target of CONNECT; undefined: TLS to the port directly. */
  readonly connectTo?: string;
  readonly host: string;
  readonly caPem: string;
  /** An HTTP/1.1 head; over HTTP/2 the same as fields. */
  readonly request: string;
};

export type Connection = Line & {
  /** As negotiated: `TLSv1.3 TLS_AES_256_GCM_SHA384`. */
  readonly suite: string;
  close(): void;
};

const OPEN_DEADLINE_MS = 10_000;

export async function openConnection(
  target: Target,
  onError: (error: Error) => void,
  onFirstByte?: () => void,
): Promise<Connection> {
  const { socket, suite } = await openTls(target, ['http/1.1']);
  const read = createResponseReader();
  const request = Buffer.from(target.request);
  let responded: (() => void) | undefined;
  let hasBytes = false;
  socket.on('data', (chunk: Buffer) => {
    if (!hasBytes) onFirstByte?.();
    hasBytes = true;
    try {
      if (!read(chunk)) return;
    } catch (error) {
      return onError(error as Error);
    }
    const done = responded;
    responded = undefined;
    if (done === undefined) onError(new Error('received a response without a request'));
    else done();
  });
  const onEnd = (): void => onError(new Error('a connection was closed'));
  socket.on('error', onError).on('close', onEnd);
  return {
    suite,
    exchange(onResponse) {
      responded = onResponse;
      socket.write(request);
    },
    close() {
      socket.off('close', onEnd).destroy();
    },
  };
}

/** Connects to the proxy, if there is one, and through it to the origin. */
export async function openTls(
  target: Target,
  protocols: readonly string[],
): Promise<{ readonly socket: TLSSocket; readonly suite: string }> {
  const raw = await connectTo(target.port);
  const deadline = setTimeout(() => raw.destroy(new Error('no connection in time')), OPEN_DEADLINE_MS);
  if (target.connectTo !== undefined) await openTunnel(raw, target.connectTo);
  const socket = connectTls({
    socket: raw,
    host: target.host,
    servername: target.host,
    ca: target.caPem,
    ALPNProtocols: [...protocols],
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

async function openTunnel(socket: Socket, authority: string): Promise<void> {
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    await settled(socket, 'readable');
    head += (socket.read() as Buffer | null)?.toString('latin1') ?? '';
  }
  if (!/^HTTP\/1\.1 200 [^\r]*\r\n(?:[^\r]+\r\n)*\r\n$/.test(head)) throw new Error(`CONNECT gave ${head}`);
}

function settled(socket: Socket, event: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = (): void => reject(new Error(`closed before ${event}`));
  socket.once(event, resolve).once('error', reject).once('close', onClose);
  return promise.finally(() => socket.off(event, resolve).off('error', reject).off('close', onClose));
}
