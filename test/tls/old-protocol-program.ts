// Run by a test under flags that make Node speak TLS 1.1. Prints how each handshake ended: between two plain
// contexts, with a leaf context as the server, with a trust set as the client.
import { createSecureContext } from 'node:tls';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { createLeafCache } from '../../src/tls/leaf-cache.ts';
import { createTrustSet } from '../../src/tls/trust.ts';
import { listenTls, shakeHands } from './handshake.ts';

const subject = { host: 'good.test', kind: 'name' } as const;
const ca = createCertificateAuthority();
const leaf = ca.issueLeaf(subject, new Date());
const plainServer = createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem, maxVersion: 'TLSv1.1' });
const plainClient = createSecureContext({ ca: ca.certificatePem, maxVersion: 'TLSv1.1' });
const leafServer = createLeafCache(ca).contextFor(subject);
const trustingClient = createTrustSet({ rootsPem: [ca.certificatePem] }).context;

const pairs = [
  { server: plainServer, client: plainClient },
  { server: leafServer, client: plainClient },
  { server: plainServer, client: trustingClient },
];
for (const { server, client } of pairs) {
  await using listener = await listenTls(() => server);
  const { error } = await shakeHands(listener.port, { servername: subject.host, secureContext: client });
  console.log(error ?? 'done');
}
