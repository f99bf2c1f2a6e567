// The obvious design as a separate program: what a competent engineer writes in a day from well-known parts. CONNECT is
// intercepted with a minted leaf for the hosts of rules, node:http parses the requests inside (strict by default), http-proxy-3
// forwards them over keep-alive agents that verify TLS, and `proxyReq` sets the credential and replaces any field of that name.
// The upstream is the CONNECT authority, never the Host field; credentials are sent in plaintext only to listed destinations;
// the proxy's own token is removed. It is the second target of the attack rows.
import { type IncomingMessage, type ServerResponse, Agent, createServer } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { type AddressInfo, type LookupFunction, type Socket, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket, createSecureContext } from 'node:tls';
import { createProxyServer } from 'http-proxy-3';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { type FindHeaders, type ObviousRule, compileObvious } from './obvious-policy.ts';

export type ObviousStart = {
  readonly upstreamCa: string;
  readonly names: Readonly<Record<string, readonly string[]>>;
  readonly cleartext: readonly string[];
  readonly secrets: Record<string, string>;
};
export type ObviousCommand =
  | { readonly start: ObviousStart }
  | { readonly rules: readonly ObviousRule[] }
  | { readonly settle: true };
export type ObviousReply = { readonly port?: number; readonly caPem?: string };

type Request = IncomingMessage & { socket: Socket & { authority?: string } };

let findHeaders: FindHeaders = () => [];
let secrets: Record<string, string> = {};
let upstream: readonly Agent[] = [];
const authority = createCertificateAuthority({ commonName: 'The obvious CA' });

function start({ upstreamCa, names, cleartext, secrets: values }: ObviousStart): void {
  secrets = values;
  const lookup: LookupFunction = (name, _, done) => {
    done(
      null,
      (names[name] ?? ['127.0.0.1']).map((address) => ({ address, family: 4 })),
    );
  };
  const clear = new Agent({ keepAlive: true, lookup });
  const secure = new SecureAgent({ keepAlive: true, ca: upstreamCa, lookup });
  upstream = [clear, secure];
  const proxy = createProxyServer({ proxyTimeout: 5_000 });
  const mayInject = (request: Request): boolean =>
    request.socket instanceof TLSSocket ||
    cleartext.includes((request.headers.host ?? '').toLowerCase().replace(/\.(?=:|$)/, ''));

  proxy.on('proxyReq', (outgoing, request) => {
    outgoing.removeHeader('proxy-authorization');
    if (!mayInject(request as Request)) return;
    for (const { name, value } of findHeaders(request.headers.host, request.url))
      outgoing.setHeader(name, value);
  });
  proxy.on('proxyReqWs', (outgoing, request) => {
    if (!mayInject(request as Request)) return;
    for (const { name, value } of findHeaders(request.headers.host, request.url))
      outgoing.setHeader(name, value);
  });
  proxy.on('error', (_, __, response) => fail(response as ServerResponse | Socket));

  const inside = createServer((request, response) => {
    const target = `https://${(request as Request).socket.authority ?? ''}`;
    proxy.web(request, response, { target, agent: secure });
  });
  inside.on('upgrade', (request, socket: Socket, head) => {
    const target = `https://${(request as Request).socket.authority ?? ''}`;
    proxy.ws(request, socket, head, { target, agent: secure });
  });
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '');
    if (url?.protocol !== 'http:') return void response.writeHead(400).end();
    request.url = url.pathname + url.search;
    proxy.web(request, response, { target: url.origin, agent: clear });
  });
  server.on('upgrade', (request, socket: Socket, head) => {
    const url = URL.parse(request.url ?? '');
    if (url?.protocol !== 'http:') return void socket.destroy();
    request.url = url.pathname + url.search;
    proxy.ws(request, socket, head, { target: url.origin, agent: clear });
  });
  server.on('connect', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const wanted = request.url ?? '';
    socket.on('error', () => socket.destroy());
    if (findHeaders(wanted, '/').length === 0 && !isCovered(wanted))
      return join(wanted, socket, head, lookup);
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    if (head.length > 0) socket.unshift(head);
    const host = wanted.replace(/:\d+$/, '').toLowerCase();
    const leaf = authority.issueLeaf({ host, kind: 'name' }, new Date());
    const secureContext = createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem });
    const tls = new TLSSocket(socket as Socket, {
      isServer: true,
      secureContext,
      ALPNProtocols: ['http/1.1'],
    });
    tls.on('error', () => tls.destroy());
    inside.emit('connection', Object.assign(tls, { authority: wanted }));
  });
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    reply({ port, caPem: authority.certificatePem });
  });
}

/** Whether a rule names the host, with any paths. */
let isCovered: (host: string) => boolean = () => false;

function join(wanted: string, socket: Duplex, head: Buffer, lookup: LookupFunction): void {
  const { hostname, port } = new URL(`http://${wanted}`);
  const host = connect({ host: hostname, port: Number(port || 443), lookup }, () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    host.write(head);
    host.pipe(socket).pipe(host);
  });
  host.on('error', () => socket.destroy());
}

function fail(response: ServerResponse | Socket): void {
  if (!('writeHead' in response)) return void response.destroy();
  if (!response.headersSent) response.writeHead(502);
  response.end();
}

function reply(message: ObviousReply): void {
  process.send?.(message);
}

process.on('message', (command: ObviousCommand) => {
  if ('start' in command) start(command.start);
  else if ('rules' in command) {
    findHeaders = compileObvious(command.rules, secrets);
    const hosts = command.rules.map(({ match_hosts, headers }) => ({ match_hosts, headers }));
    const covering = compileObvious(hosts, {});
    isCovered = (host) => covering(host, '/').length > 0;
    reply({});
  } else {
    // Between two rows: nothing of the last row may still be in progress during the next.
    for (const agent of upstream) agent.destroy();
    reply({});
  }
});
