// A host that shows a leaf of ours is a loop or a thief, also where a root that everybody trusts has signed our CA.
import { once } from 'node:events';
import { createSecureContext } from 'node:tls';
import { expect, it } from 'vitest';
import { BoundedCache } from '../../../src/base/bounded-cache.ts';
import { createDialler } from '../../../src/proxy/upstream/dial.ts';
import { createConnectionQuota } from '../../../src/proxy/upstream/connection-quota.ts';
import { isRefusal } from '../../../src/proxy/refusal.ts';
import { type TrustSet, createTrustSet } from '../../../src/tls/trust.ts';
import { closedEgress } from '../../support/closed-egress.ts';
import { createSubordinate } from '../../support/subordinate-authority.ts';
import { listenTls } from '../../tls/handshake.ts';
import { authorityOf } from '../request-head.ts';

/** `ready`, once the host has spoken and so has sent its tickets, or the code and cause of the refusal. */
async function dialled(port: number, trust: TrustSet, sessions: BoundedCache<Buffer>): Promise<string> {
  const by = createDialler({
    resolver: { resolve: async () => [{ address: '127.0.0.1', family: 4 }], forget: () => {} },
    egress: { ...closedEgress, allowLoopback: true },
    trust,
    sessions,
    connectMs: 5_000,
    quota: createConnectionQuota(100),
  });
  const authority = authorityOf(`api.test:${port}`);
  const target = {
    authority,
    scheme: 'https',
    alpn: ['http/1.1'],
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
    const { ca, rootPem } = await createSubordinate();
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
