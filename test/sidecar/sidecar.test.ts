// What the sidecar prepares after its start. Nothing catches an exception there: it would end the process.
import { expect, it, vi } from 'vitest';
import { createOrigin } from '../support/recording-origin.ts';
import { createTestAuthority } from '../support/test-authority.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { watchUncaught } from '../support/uncaught-exception.ts';
import { WireClient } from '../support/wire-client.ts';

vi.mock('../../src/tls/system-roots.ts', () => ({
  systemRoots(): never {
    throw new TypeError('the roots cannot be loaded');
  },
}));

it('roots that cannot be loaded are logged; each request fails, and the process continues', async () => {
  const origins = createTestAuthority();
  await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
  await using proxy = await createTestSidecar({
    origins,
    proxyConfig: {
      rules: [{ match_hosts: ['api.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'v' }] }],
    },
  });
  using uncaught = watchUncaught();
  proxy.sidecar.prepareUpstreams();
  await Promise.race([new Promise((resolve) => setImmediate(resolve)), uncaught.thrown]);
  expect(proxy.lines).toContainEqual(
    expect.objectContaining({ error: 'TypeError', msg: 'the trusted roots cannot be loaded' }),
  );
  const authority = `api.test:${origin.port}`;
  for (const _ of [1, 2]) {
    await using client = await WireClient.connectThrough(proxy.port, authority, {
      ca: proxy.caPem,
      name: 'api.test',
    });
    await client.send(`GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    expect((await client.readResponse()).head.status).toBe(500);
  }
  expect(origin.connections).toBe(0);
});
