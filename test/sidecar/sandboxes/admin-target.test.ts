// What the admin API shows of a running sidecar: what is true now, and never a value.
import { describe, expect, it } from 'vitest';
import { createTestSidecar } from '../../support/test-sidecar.ts';
import { WireClient } from '../../support/wire-client.ts';
import { createSandboxScene, keyRules, portOf, showing } from './sandbox-scene.ts';

const TOKEN = 'a-sandbox-token-of-enough-length';

describe('what is shown', () => {
  it('of default is the main listener and the limits of the config', async () => {
    await using proxy = await createTestSidecar({ admin: true, config: { limits: { max_lookups: 3 } } });
    expect((await proxy.admin('GET', '/v1/sandboxes')).body).toEqual({
      sandboxes: [
        {
          id: 'default',
          proxy: `http://127.0.0.1:${proxy.port}`,
          has_token: false,
          revision: 0,
          limits: {
            max_connections: 10_000,
            max_lookups: 3,
            max_idle_upstream: 1_024,
            max_idle_per_host: 256,
          },
          connections: 0,
          created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        },
      ],
    });
  });

  it('of a sandbox counts its own clients, once each, and only while they are there', async () => {
    await using scene = await createSandboxScene();
    const proxy = await scene.start();
    await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN, proxy_config: keyRules('box') });
    const counts = async (): Promise<unknown> => {
      const { body } = await proxy.admin('GET', '/v1/sandboxes');
      const all = body['sandboxes'] as readonly { readonly id: string; readonly connections: number }[];
      return all.map(({ id, connections }) => `${id} ${connections}`);
    };
    const clients = [await scene.tunnel(proxy.port, TOKEN), await scene.tunnel(proxy.port, TOKEN)];
    await using other = await WireClient.connect(proxy.port);
    expect((await other.openTunnel(`127.0.0.1:${scene.origin.port}`)).status).toBe(200);
    for (const client of clients) expect(await scene.keyBy(client)).toBe('box');
    expect(await counts()).toEqual(['default 1', 'box 2']);
    for (const client of clients) await client[Symbol.asyncDispose]();
    await expect.poll(counts).toEqual(['default 1', 'box 0']);
  });

  it('of a document is what was written: the template, not its result', async () => {
    await using proxy = await createTestSidecar({ admin: true, secrets: { T: 'canary-of-the-operator' } });
    const headers = [
      { name: 'A', type: 'workspace_secret', value: 'Bearer {T}' },
      { name: 'B', type: 'plaintext', value: 'plain' },
      { name: 'C', type: 'opaque', value: 'canary-opaque' },
    ];
    const callbacks = [
      {
        match_hosts: ['c.test'],
        url: 'https://auth.test/token',
        ttl_seconds: 60,
        request_headers: [{ name: 'D', type: 'opaque', value: 'canary-request' }],
      },
    ];
    const document = { rules: [{ match_hosts: ['a.test'], headers }], callbacks };
    expect((await proxy.admin('PUT', '/v1/proxy_config', document)).status).toBe(200);
    const shown = await proxy.admin('GET', '/v1/proxy_config');
    expect(shown.text).not.toContain('canary');
    expect(shown.body).toEqual({
      revision: 1,
      etag: shown.etag,
      proxy_config: {
        rules: [
          {
            match_hosts: ['a.test'],
            headers: [headers[0], headers[1], { name: 'C', type: 'opaque', is_set: true }],
          },
        ],
        callbacks: [{ ...callbacks[0], request_headers: [{ name: 'D', type: 'opaque', is_set: true }] }],
      },
    });
    // What is shown may be put back as it is.
    expect((await proxy.admin('PUT', '/v1/proxy_config', shown.body)).status).toBe(200);
    const again = await proxy.admin('GET', '/v1/proxy_config');
    expect(again.body).toEqual({ ...shown.body, revision: 2, etag: again.etag });
    // Once: the tag that it brings is that of the first reading.
    expect((await proxy.admin('PUT', '/v1/proxy_config', shown.body)).status).toBe(412);
  });

  it('of secrets is their names', async () => {
    await using proxy = await createTestSidecar({ admin: true, secrets: { OPERATORS: 'canary-1' } });
    const put = await proxy.admin('PUT', '/v1/workspace_secrets', { B: 'canary-2', A: 'canary-3' });
    const got = await proxy.admin('GET', '/v1/workspace_secrets');
    expect([put.body, got.body]).toEqual([
      { workspace_secrets: [{ key: 'A' }, { key: 'B' }], warnings: [] },
      { workspace_secrets: [{ key: 'A' }, { key: 'B' }] },
    ]);
  });
});

it('the sandbox in a path is the one that is used', async () => {
  await using scene = await createSandboxScene();
  const proxy = await scene.start();
  const made = await proxy.admin('POST', '/v1/sandboxes', { id: 'box', listen: '127.0.0.1:0' });
  await proxy.admin('PUT', '/v1/sandboxes/box/proxy_config', keyRules('of box'));
  await proxy.admin('PUT', '/v1/sandboxes/default/proxy_config', keyRules('of default'));
  expect(await scene.keyAt(portOf(made.body['proxy']))).toBe('of box');
  expect(await scene.keyAt(proxy.port)).toBe('of default');
  const [byName, short] = [
    await proxy.admin('GET', '/v1/sandboxes/default/proxy_config'),
    await proxy.admin('GET', '/v1/proxy_config'),
  ];
  expect(short).toEqual(byName);
});

it('readiness is that of default: with require_config, once rules are active', async () => {
  await using proxy = await createTestSidecar({ admin: true, config: { require_config: true } });
  await proxy.admin('POST', '/v1/sandboxes', { listen: '127.0.0.1:0', proxy_config: keyRules('x') });
  const ready = async (): Promise<number> => (await proxy.admin('GET', '/readyz')).status;
  expect([await ready(), (await proxy.admin('GET', '/healthz')).status]).toEqual([503, 200]);
  await proxy.admin('PUT', '/v1/proxy_config', { rules: [] });
  expect(await ready()).toBe(200);
});

it('the CA is the one that clients must trust', async () => {
  await using proxy = await createTestSidecar({ admin: true });
  expect((await proxy.admin('GET', '/v1/ca.pem')).text).toBe(proxy.caPem);
});

it('the token of a sandbox works for its clients only', async () => {
  await using proxy = await createTestSidecar({ admin: true });
  await proxy.admin('POST', '/v1/sandboxes', { id: 'box', token: TOKEN });
  await using client = await WireClient.connect(proxy.port);
  await client.openTunnel('127.0.0.1:9', [showing(TOKEN)]);
  const shown = [await proxy.admin('GET', '/v1/sandboxes'), await proxy.admin('GET', '/v1/sandboxes/box')];
  expect(JSON.stringify([shown, proxy.lines, client.transcript])).not.toContain(TOKEN);
});
