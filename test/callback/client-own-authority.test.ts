// An endpoint that shows a leaf of ours is a loop or a thief, also where a root that everybody trusts has signed our CA.
import { createSecureContext } from 'node:tls';
import { expect, it } from 'vitest';
import type { CallbackTrust } from '../../src/callback/client.ts';
import type { CallbackReply } from '../../src/callback/reply.ts';
import { createTrustSet } from '../../src/tls/trust.ts';
import { createSubordinate } from '../support/subordinate-authority.ts';
import { compiledCallback } from './compiled-callback.ts';
import { callOnce, good, originOf, withSecret } from './single-call.ts';

it('an endpoint with a leaf of our own CA is rejected below a trusted root too, before the request', async () => {
  const { ca, rootPem } = await createSubordinate();
  const authority = {
    certificatePem: rootPem,
    contextFor: (host: string) => {
      const { chainPem, keyPem } = ca.issueLeaf({ host, kind: 'name' }, new Date());
      return createSecureContext({ cert: chainPem, key: keyPem });
    },
  };
  await using origin = await originOf(good, { authority, names: ['cb.test'] });
  const ask = (trust: CallbackTrust): Promise<CallbackReply> =>
    callOnce(compiledCallback(`https://cb.test:${origin.port}/`, withSecret), { trust });

  const unaware = createTrustSet({ rootsPem: [rootPem] });
  expect((await ask(unaware)).ok).toBe(true);
  expect(origin.requests).toHaveLength(1);

  const trust = createTrustSet({ rootsPem: [rootPem], without: ca });
  expect(await ask(trust)).toEqual({ ok: false, reason: 'refused: its certificate is of our own authority' });
  expect(origin.requests).toHaveLength(1);
});
