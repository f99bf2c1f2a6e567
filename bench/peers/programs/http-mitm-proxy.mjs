// http-mitm-proxy: one header replaced, upstream connections kept alive and verified. It creates its own CA.
import { Agent } from 'node:https';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lookup, options, publishCa, requirePeer } from './loopback.mjs';

const { Proxy } = requirePeer('http-mitm-proxy');
const proxy = new Proxy();
const sslCaDir = join(options.directory, 'ca');
const httpsAgent = new Agent({ keepAlive: true, ca: readFileSync(options.caFile), lookup });
proxy.onError(() => undefined);
proxy.onRequest((context, proceed) => {
  context.proxyToServerRequestOptions.headers['authorization'] = options.credential;
  proceed();
});
proxy.listen({ host: '127.0.0.1', port: options.port, sslCaDir, keepAlive: true, httpsAgent }, () =>
  publishCa(readFileSync(join(sslCaDir, 'certs', 'ca.pem'), 'utf8')),
);
