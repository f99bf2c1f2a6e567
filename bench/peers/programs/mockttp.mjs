// mockttp: passes everything through with one header replaced, upstream verified, nothing recorded.
import { readFileSync } from 'node:fs';
import { options, publishCa, requirePeer } from './loopback.mjs';

const { getLocal } = requirePeer('mockttp');
const { certFile, keyFile } = options.ca;
const server = getLocal({
  https: { certPath: certFile, keyPath: keyFile },
  http2: true,
  recordTraffic: false,
});
await server.forAnyRequest().thenPassThrough({
  additionalTrustedCAs: [{ certPath: options.caFile }],
  transformRequest: { updateHeaders: { authorization: options.credential } },
});
await server.start(options.port);
publishCa(readFileSync(certFile, 'utf8'));
