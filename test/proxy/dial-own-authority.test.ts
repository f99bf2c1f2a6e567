// A host that shows a leaf of ours is a loop or a thief, also where a root that everybody trusts has signed our CA.
import { once } from 'node:events';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { expect, it } from 'vitest';
import { BoundedCache } from '../../src/base/bounded-cache.ts';
import { createDialler } from '../../src/proxy/dial.ts';
import { isRefusal } from '../../src/proxy/refusal.ts';
import { type CertificateAuthority, loadCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { type TrustSet, createTrustSet } from '../../src/tls/trust.ts';
import { createScratch, type Scratch } from '../support/scratch.ts';
import { runProgram } from '../tls/external-program.ts';
import { listenTls } from '../tls/handshake.ts';
import { authorityOf } from './request-head.ts';

/** A CA that a root has signed, as a company's may be, with that root's certificate. */
async function createSubordinate(scratch: Scratch): Promise<{ ca: CertificateAuthority; rootPem: string }> {
  const at = (name: string): string => join(scratch.path, name);
  const curve = ['-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const asCa = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'];
  const issuers = { root: [], ca: ['-CA', at('root.pem'), '-CAkey', at('root.key')] };
  for (const [name, issuer] of Object.entries(issuers)) {
    const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)];
    await runProgram('openssl', [
      'req',
      '-x509',
      '-subj',
      `/CN=${name}`,
      ...curve,
      ...asCa,
      ...issuer,
      ...files,
    ]);
  }
  await chmod(at('ca.key'), 0o600);
  const ca = await loadCertificateAuthority({ certificateFile: at('ca.pem'), keyFile: at('ca.key') });
  return { ca, rootPem: await readFile(at('root.pem'), 'utf8') };
}

/** `ready`, once the host has spoken and so has sent its tickets, or the code and cause of the refusal. */
async function dialled(port: number, trust: TrustSet, sessions: BoundedCache<Buffer>): Promise<string> {
  const by = createDialler({
    resolver: { resolve: async () => [{ address: '127.0.0.1', family: 4 }] },
    egress: {
      allowAllPrivate: false,
      allowLoopback: true,
      allowCidrs: [],
      privateByRule: 'tls',
      ports: new Set([443]),
      injectCleartext: [],
      isOwnListener: () => false,
    },
    trust,
    sessions,
    connectMs: 5_000,
  });
  const authority = authorityOf(`api.test:${port}`);
  const target = {
    authority,
    scheme: 'https',
    named: 'exact',
    isPortListed: false,
    denies: () => false,
  } as const;
  const result = await by.dial(target, new AbortController().signal);
  if (isRefusal(result)) return `${result.refused}: ${result.cause}`;
  await once(result, 'data');
  result.destroy();
  return 'ready';
}

// In TLS 1.2 the ticket comes within the handshake, so before the peer is judged; in 1.3 behind it.
it.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a host that our own CA vouches for is refused below a trusted root too, each time (%s)',
  async (maxVersion) => {
    await using scratch = await createScratch();
    const { ca, rootPem } = await createSubordinate(scratch);
    const { chainPem, keyPem } = ca.issueLeaf({ host: 'api.test', kind: 'name' }, new Date());
    const context = createSecureContext({ cert: chainPem, key: keyPem, maxVersion });
    await using host = await listenTls(() => context);
    const unaware = createTrustSet({ rootsPem: [rootPem] });
    expect(await dialled(host.port, unaware, new BoundedCache({ max: 1 }))).toBe('ready');

    const trust = createTrustSet({ rootsPem: [rootPem], without: ca });
    const sessions = new BoundedCache<Buffer>({ max: 10 });
    for (const attempt of [1, 2]) {
      const end = await dialled(host.port, trust, sessions);
      expect([attempt, end]).toEqual([attempt, 'upstream_untrusted: own_authority']);
    }
  },
);
