// The obvious design: CONNECT is intercepted with a minted leaf, node:http parses the requests inside, http-proxy-3 forwards
// them over a keep-alive agent that verifies TLS, and its proxyReq event sets the credential.
import { createServer } from 'node:http';
import { Agent } from 'node:https';
import { readFileSync } from 'node:fs';
import { TLSSocket, createSecureContext } from 'node:tls';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { lookup, options, publishCa, requirePeer } from './loopback.mjs';

const { createProxyServer } = requirePeer('http-proxy-3');
const authority = createCertificateAuthority({ commonName: 'CA of the obvious design' });
const agent = new Agent({ keepAlive: true, maxFreeSockets: 512, ca: readFileSync(options.caFile), lookup });
const contexts = new Map();
const proxy = createProxyServer({});
proxy.on('proxyReq', (outgoing) => outgoing.setHeader('Authorization', options.credential));
proxy.on('error', (_error, _request, response) => response.destroy());

const inside = createServer((request, response) =>
  proxy.web(request, response, { target: `https://${request.socket.authority}`, agent }),
);
inside.keepAliveTimeout = 600_000;

function contextFor(host) {
  const known = contexts.get(host);
  if (known) return known;
  const { chainPem, keyPem } = authority.issueLeaf({ host, kind: 'name' }, new Date());
  const context = createSecureContext({ cert: chainPem, key: keyPem });
  contexts.set(host, context);
  return context;
}

const server = createServer((_request, response) => response.writeHead(400).end());
server.on('connect', (request, socket) => {
  socket.on('error', () => socket.destroy());
  socket.setNoDelay(true);
  socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  const secureContext = contextFor(request.url.replace(/:\d+$/, ''));
  const tls = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
  tls.on('error', () => tls.destroy());
  inside.emit('connection', Object.assign(tls, { authority: request.url }));
});
server.listen(options.port, '127.0.0.1', () => publishCa(authority.certificatePem));
