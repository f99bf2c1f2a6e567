import { expect, it } from 'vitest';
import { createTestAuthority } from '../support/test-authority.ts';
import { createOrigin } from '../support/recording-origin.ts';
import { createTestSidecar } from '../support/test-sidecar.ts';
import { WireClient } from '../support/wire-client.ts';

const origins = createTestAuthority();
const proxyConfig = {
  rules: [
    {
      name: 'api',
      match_hosts: ['api.test'],
      headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' }],
    },
  ],
};

it('injects the credential into a request inside an intercepted tunnel', async () => {
  await using origin = await createOrigin({ tls: { authority: origins, names: ['api.test'] } });
  await using proxy = await createTestSidecar({
    proxyConfig,
    origins,
    secrets: { TOKEN: 'sesame-open-now' },
  });
  await using client = await WireClient.connectThrough(proxy.port, `api.test:${origin.port}`, {
    ca: proxy.caPem,
    name: 'api.test',
  });
  await client.send(`GET /v1/x HTTP/1.1\r\nHost: api.test:${origin.port}\r\nAuthorization: mine\r\n\r\n`);
  const answer = await client.readResponse();
  expect(answer.head.status).toBe(200);
  expect(origin.requests[0]?.headers).toEqual([
    ['Host', `api.test:${origin.port}`],
    ['Authorization', 'Bearer sesame-open-now'],
  ]);
  expect(await proxy.record(0)).toMatchObject({
    rule: 'api',
    outcome: 'injected',
    injected: ['Authorization'],
  });
});
