// The CA of the test origins, in place of the public CAs. It is never the proxy's own CA, whose signature on an upstream
// certificate must be refused.
import { createSecureContext, type SecureContext } from 'node:tls';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';

export type TestAuthority = {
  readonly certificatePem: string;
  /** A server context whose certificate names only this host: a DNS name, or an address as IP SAN. */
  contextFor(name: string): SecureContext;
};

export function createTestAuthority(commonName = 'Test origins'): TestAuthority {
  const authority = createCertificateAuthority({ commonName });
  const contexts = new Map<string, SecureContext>();
  return {
    certificatePem: authority.certificatePem,
    contextFor(name) {
      const made = contexts.get(name);
      if (made !== undefined) return made;
      const leaf = authority.issueLeaf({ host: name, kind: kindOf(name) }, new Date());
      const context = createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem });
      contexts.set(name, context);
      return context;
    },
  };
}

function kindOf(name: string): 'name' | 'ipv4' | 'ipv6' {
  if (name.includes(':')) return 'ipv6';
  return /^[0-9.]+$/.test(name) ? 'ipv4' : 'name';
}
