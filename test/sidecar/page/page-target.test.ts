import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { type TestSidecar, createTestSidecar } from '../../support/test-sidecar.ts';
import { PageVisitor, formTokenIn } from '../../admin/page/page-visitor.ts';
import { request, readResponse } from '../../admin/admin-scene.ts';
import { WireClient } from '../../support/wire-client.ts';

const SECRET = 'canary-value-9f86d081884c7d65';
const proxyConfig = {
  rules: [
    {
      name: 'models',
      match_hosts: ['api.test'],
      match_paths: ['/v1/*'],
      headers: [{ name: 'Authorization', type: 'workspace_secret', value: 'Bearer {KEY}' }],
    },
  ],
  callbacks: [
    {
      name: 'minter',
      match_hosts: ['minted.test'],
      url: 'https://c.test/mint?key=query-canary',
      ttl_seconds: 60,
    },
  ],
  access_control: { deny_list: ['denied.test'] },
};

function visitorOf({ adminUrl }: TestSidecar): PageVisitor {
  const port = Number(new URL(adminUrl).port);
  return new PageVisitor({
    async ask(method, path, options) {
      await using client = await WireClient.connect(port);
      await client.send(request(method, path, options));
      return await readResponse(client, method);
    },
  });
}

it('the page shows rules, decisions and state of a running sidecar, and no secret value', async () => {
  await using proxy = await createTestSidecar({ proxyConfig, secrets: { KEY: SECRET }, admin: true });
  await proxy.admin('POST', '/v1/sandboxes', { id: 'agent-7', proxy_config: { rules: [] } });
  const visitor = visitorOf(proxy);
  await visitor.signIn({ token: proxy.adminToken });
  const rules = await visitor.get('/ui/rules');
  expect(rules.text).toMatch(
    /models.*api\.test.*\/v1\/\*.*Authorization.*minter.*minted\.test.*https:\/\/c\.test\/mint</s,
  );
  expect(rules.text).toContain('<option>agent-7</option>');
  const form_token = formTokenIn(rules);
  const explain = async (url: string, more = {}): Promise<string> =>
    (await visitor.post('/ui/explain', { form_token, url, ...more })).text;
  const injected = await explain('https://api.test/v1/models?key=query-canary');
  expect(injected).toMatch(
    /GET https:\/\/api\.test(?::443)?\/v1\/models<.*injected.*rules\[0\].*Authorization/s,
  );
  expect(await explain('https://minted.test/')).toContain('callbacks[0]');
  expect(await explain('https://denied.test/')).toMatch(/class="refused".*access_denied/s);
  expect(await explain('https://api.test/v1/models', { sandbox: 'agent-7' })).toContain('tunnelled');
  expect(await explain('ftp://api.test/')).toContain('Give an absolute URL');
  const state = await visitor.get('/ui/state');
  expect(state.text).toMatch(
    /Ready<\/dt><dd><bdi>yes.*CA ends<\/dt><dd><bdi>20\d\d-.*agent-7.*max_connections<\/dt><dd><bdi>10,000/s,
  );
  const shown = [rules.text, injected.replace(/<input type="url"[^>]*>/, ''), state.text].join();
  for (const value of [SECRET, 'query-canary', proxy.adminToken]) expect(shown).not.toContain(value);
});

it('counts the requests of a rule, and shows them among the exchanges without their query', async () => {
  const origin = createServer((_, response) => void response.end('ok')).listen(0, '127.0.0.1');
  await once(origin, 'listening');
  const authority = `localhost:${(origin.address() as AddressInfo).port}`;
  const [models] = proxyConfig.rules;
  const rules = [{ ...models, match_hosts: ['localhost'] }];
  await using proxy = await createTestSidecar({
    proxyConfig: { rules },
    secrets: { KEY: SECRET },
    admin: true,
  });
  const visitor = visitorOf(proxy);
  await visitor.signIn({ token: proxy.adminToken });
  await using client = await WireClient.connect(proxy.port);
  await client.send(
    `GET http://${authority}/v1/models?key=query-canary HTTP/1.1\r\nHost: ${authority}\r\n\r\n`,
  );
  expect((await client.readResponse()).head.status).toBe(200);
  await proxy.record(0);
  expect((await visitor.get('/ui/rules')).text).toContain('1 injected');
  const page = await visitor.get('/ui?filter=MODELS');
  expect(page.text).toMatch(/GET<.*localhost:.*\/v1\/models<.*models<.*injected<.*200<.* ms</s);
  expect(page.text).not.toContain('query-canary');
  expect((await visitor.get('/ui?filter=nothing')).text).not.toContain('/v1/models<');
  origin.close();
});
