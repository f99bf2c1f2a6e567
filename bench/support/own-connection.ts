// The client of `--target`: verified TLS to the user's own host, directly or through the proxy, and one GET after the other on
// such a connection.
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { type Socket, connect } from 'node:net';
import { type SecureContext, type TLSSocket, connect as connectTls } from 'node:tls';
import { openTunnel } from './connection.ts';

export type Open = () => Promise<TLSSocket>;

/** An agent with one connection. */
export function agentOf(socket: TLSSocket): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  return agent;
}

export type Response = { readonly status: number; readonly head: IncomingHttpHeaders; readonly body: string };

/** One GET with its whole response. */
export async function exchange(url: URL, agent: Agent): Promise<Response> {
  const outgoing = request({
    agent,
    path: url.pathname + url.search,
    headers: { host: url.host, 'user-agent': 'bench/1.0', accept: '*/*' },
  });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  // Only a refusal is read as text, and a refusal is short.
  for await (const chunk of response) if (chunks.length < 4) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    head: response.headers,
    body: Buffer.concat(chunks).toString('utf8'),
  };
}

export function portOf(url: URL): number {
  return Number(url.port || 443);
}

export async function openDirect(url: URL, trust: SecureContext): Promise<TLSSocket> {
  // As the proxy: names below localhost are loopback without a lookup.
  const host = url.hostname.endsWith('.localhost') ? '127.0.0.1' : url.hostname;
  return secure(connect({ host, port: portOf(url), noDelay: true }), url, trust);
}

export async function openThrough(url: URL, port: number, trust: SecureContext): Promise<TLSSocket> {
  const raw = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(raw, 'connect');
  await openTunnel(raw, `${url.hostname}:${portOf(url)}`, undefined);
  return secure(raw, url, trust);
}

async function secure(socket: Socket, { hostname }: URL, secureContext: SecureContext): Promise<TLSSocket> {
  const ALPNProtocols = ['http/1.1'];
  const tls = connectTls({ socket, host: hostname, servername: hostname, ALPNProtocols, secureContext });
  await once(tls, 'secureConnect');
  return tls;
}
