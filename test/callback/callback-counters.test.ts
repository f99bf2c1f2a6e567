import { expect, it } from 'vitest';
import { CallbackCounters } from '../../src/callback/callback-counters.ts';
import { createCallbackResolver } from '../../src/callback/resolver.ts';
import { createCallbackEndpoint } from '../support/callback-endpoint.ts';
import { authorityOf, compiledCallback, vetLoopback } from './compiled-callback.ts';

it('calls are counted by name and result, and what the cache had is no call', async () => {
  await using endpoint = await createCallbackEndpoint({ headers: { Authorization: 'Bearer token' } });
  const counters = new CallbackCounters();
  const resolver = createCallbackResolver({
    ...{ sandbox: 'default', vet: vetLoopback, trust: undefined, maxInFlight: 1, counters },
  });
  const ask = (name: string, host: string) =>
    resolver.resolve(compiledCallback(endpoint.url, { name }), authorityOf(host));
  // Two that join one call, and one that is one call too many.
  await Promise.all([ask('good', 'a.test:443'), ask('good', 'a.test:443'), ask('late', 'b.test:443')]);
  await ask('good', 'a.test:443');
  endpoint.respondWith({ headers: 'none' });
  await ask('bad', 'c.test:443');
  expect(counters.calls.rows()).toEqual([
    { name: 'late', values: [0, 0, 1] },
    { name: 'good', values: [1, 0, 0] },
    { name: 'bad', values: [0, 1, 0] },
  ]);
  expect([counters.cacheHits, counters.cacheMisses, resolver.cached]).toEqual([1, 4, 1]);
  const seconds = counters.seconds.rows().map(({ name, count, sum }) => [name, count, sum > 0]);
  expect(seconds).toEqual([
    ['good', 1, true],
    ['bad', 1, true],
  ]);
  await resolver.close();
});
