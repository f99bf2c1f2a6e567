// A client that sends everything at once, counts the final responses, leaves when it has them and waits until the
// connection is gone. It reads nothing else.
import { type Socket, connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { TestSidecar } from '../support/test-sidecar.ts';
import type { Entry } from './mutated-message.ts';

export type Playing = {
  readonly entry: Entry;
  /** `host:port`. */
  readonly authority: string;
  readonly bytes: Buffer;
  /** Final responses after which it leaves. */
  readonly responses: number;
  /** The proxy is the one that ends the connection. */
  readonly waitsForEnd: boolean;
};

const FINAL_STATUS = /^HTTP\/1\.1 [2-5]\d\d /gm;

/** Silence after which nothing more is waited for; the proxy's own patience ends long before. */
const PATIENCE_MS = 60_000;

/** Resolves when the connection is closed: true, or when nothing has moved for too long: false. */
export async function playBytes(proxy: TestSidecar, playing: Playing): Promise<boolean> {
  const { entry, authority, bytes, responses, waitsForEnd } = playing;
  const raw = await opened(connect({ port: proxy.port, host: '127.0.0.1', noDelay: true }));
  const socket =
    entry === 'plain' ? raw : await inTunnel(raw, authority, entry === 'tls' ? proxy.caPem : undefined);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let transcript = '';
  const look = (): void => {
    if (!waitsForEnd && (transcript.match(FINAL_STATUS)?.length ?? 0) >= responses) socket.end();
  };
  socket.on('data', (piece: Buffer) => {
    transcript += piece.toString('latin1');
    look();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => resolve(true));
  raw.setTimeout(PATIENCE_MS, () => resolve(false));
  socket.write(bytes, look);
  const isOver = await promise;
  raw.destroy();
  return isOver;
}

async function inTunnel(raw: Socket, authority: string, ca: string | undefined): Promise<Socket> {
  raw.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  // The response to CONNECT is one short write of the proxy; nothing follows it unasked.
  await new Promise((resolve) => raw.once('data', resolve));
  if (ca === undefined) return raw;
  const servername = authority.slice(0, authority.indexOf(':'));
  const secure = connectTls({ socket: raw, ca, servername, ALPNProtocols: ['http/1.1'] });
  return opened(secure, 'secureConnect');
}

function opened<S extends Socket>(socket: S, event = 'connect'): Promise<S> {
  return new Promise((resolve, reject) => {
    socket.once(event, () => resolve(socket));
    socket.once('error', reject);
  });
}
