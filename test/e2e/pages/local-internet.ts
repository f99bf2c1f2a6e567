// The internet of the pages: `node local-internet.ts CA-FILE LOG-FILE` serves every name over TLS on port 443, writes its CA
// certificate, prints a line when it listens, and appends one line for each request.
import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createCertificateAuthority } from '../../../src/tls/certificate-authority.ts';
import { createLeafCache } from '../../../src/tls/leaf-cache.ts';

const [caFile = '', logFile = ''] = process.argv.slice(2);
const ca = createCertificateAuthority({ commonName: 'Test internet' });
const leaves = createLeafCache(ca);
const { chainPem: cert, keyPem: key } = ca.issueLeaf({ host: 'localhost', kind: 'name' }, new Date());
const server = createServer(
  { cert, key, SNICallback: (name, found) => found(null, leaves.contextFor({ host: name, kind: 'name' })) },
  (request, response) => {
    const { host = '', authorization = 'none' } = request.headers;
    appendFileSync(logFile, `${host}${request.url ?? ''} ${authorization}\n`);
    request.resume();
    response.setHeader('Content-Type', 'application/json');
    response.end(`${JSON.stringify({ host, path: request.url })}\n`);
  },
);
writeFileSync(caFile, ca.certificatePem);
writeFileSync(logFile, '');
server.listen(443, '127.0.0.1', () => console.log('listening'));
// It ends with the test.
process.stdin.resume().on('end', () => process.exit(0));
