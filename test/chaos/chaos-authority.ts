// The CAs for the hosts of a scene: one CA, its successor, and certificates that have expired. Independent of the proxy.
import { createSecureContext, type SecureContext } from 'node:tls';
import { createCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { createTestAuthority, type TestAuthority } from '../support/test-authority.ts';

export type ChaosAuthority = TestAuthority & {
  /** Trusted as well. */
  readonly successor: TestAuthority;
  /** PEM of both, for a file of trusted roots. */
  readonly rootsPem: string;
  expiredContextFor(name: string): SecureContext;
};

/** Longer ago than the lifetime of a leaf. */
const LONG_AGO_MS = 80 * 3_600_000;
/** A leaf cannot outlive its authority. */
const LONGER_AGO_MS = 2 * LONG_AGO_MS;

export function createChaosAuthority(): ChaosAuthority {
  const first = createTestAuthority('Chaos');
  const successor = createTestAuthority('Chaos successor');
  const past = createCertificateAuthority({
    commonName: 'Chaos expired',
    now: new Date(Date.now() - LONGER_AGO_MS),
  });
  return {
    ...first,
    successor,
    rootsPem: [first, successor, past].map(({ certificatePem }) => certificatePem).join('\n'),
    expiredContextFor(name) {
      const leaf = past.issueLeaf({ host: name, kind: 'name' }, new Date(Date.now() - LONG_AGO_MS));
      return createSecureContext({ cert: leaf.chainPem, key: leaf.keyPem });
    },
  };
}
