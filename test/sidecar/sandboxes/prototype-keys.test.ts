// Keys that are names of the prototype of every object, in each document that a sidecar takes: rejected where keys are known,
// and names like all others where a caller chooses the names. Nothing of them takes effect.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../../src/sidecar/config.ts';
import { parseSecretDocument } from '../../../src/sidecar/sandboxes/secret-document.ts';
import { createTestSidecar, type TestSidecar } from '../../support/test-sidecar.ts';

const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '__defineGetter__',
] as const;
const SANDBOXES = '/v1/sandboxes';

/** What would be accepted at the place, if the key were followed. */
const payload = { limits: { max_connections: 1 }, token: 'a-token-of-enough-length', polluted: true };

/** JSON text, because an object literal would set the prototype instead. */
function withKey(document: object, key: string): string {
  const text = JSON.stringify(document);
  const member = `${JSON.stringify(key)}:${JSON.stringify(payload)}`;
  return text === '{}' ? `{${member}}` : `${text.slice(0, -1)},${member}}`;
}

/** The document around the object that has the key; `%` stands for that object. */
type Place = readonly [what: string, method: string, path: string, around: string, inner: object];

const places: readonly Place[] = [
  ['a new sandbox', 'POST', SANDBOXES, '%', { id: 'x' }],
  ['the limits of a new sandbox', 'POST', SANDBOXES, '{"id":"x","limits":%}', { max_lookups: 1 }],
  [
    'the CA of a new sandbox',
    'POST',
    SANDBOXES,
    '{"id":"x","ca":%}',
    { certificate_pem: '', private_key_pem: '' },
  ],
  ['the rules of a new sandbox', 'POST', SANDBOXES, '{"id":"x","proxy_config":%}', { rules: [] }],
  [
    'the listener of a new sandbox',
    'POST',
    SANDBOXES,
    '{"id":"x","listen":%}',
    { handed_over: 'A'.repeat(22) },
  ],
  ['a change of a sandbox', 'PATCH', `${SANDBOXES}/box`, '%', {}],
  ['the limits of a change', 'PATCH', `${SANDBOXES}/box`, '{"limits":%}', {}],
  ['a proxy_config', 'PUT', `${SANDBOXES}/box/proxy_config`, '%', {}],
  ['a wrapped proxy_config', 'PUT', `${SANDBOXES}/box/proxy_config`, '{"proxy_config":%}', {}],
  [
    'a rule',
    'PUT',
    `${SANDBOXES}/box/proxy_config`,
    '{"rules":[%]}',
    { match_hosts: ['a.test'], headers: [] },
  ],
  [
    'a header',
    'PUT',
    `${SANDBOXES}/box/proxy_config`,
    '{"rules":[{"match_hosts":["a.test"],"headers":[%]}]}',
    { name: 'X', type: 'plaintext', value: 'x' },
  ],
  [
    'a callback',
    'PUT',
    `${SANDBOXES}/box/proxy_config`,
    '{"callbacks":[%]}',
    { match_hosts: ['a.test'], url: 'https://a.test/', ttl_seconds: 60 },
  ],
  ['the access control', 'PUT', `${SANDBOXES}/box/proxy_config`, '{"access_control":%}', { deny_list: [] }],
  ['an entry of secrets', 'PUT', `${SANDBOXES}/box/workspace_secrets`, '[%]', { key: 'A', value: 'b' }],
];

describe('a prototype key', () => {
  let proxy: TestSidecar;
  beforeAll(async () => {
    proxy = await createTestSidecar({ admin: true });
    await proxy.admin('POST', SANDBOXES, { id: 'box', listen: '127.0.0.1:0' });
  });
  afterAll(() => proxy[Symbol.asyncDispose]());
  afterEach(() => {
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  const rows = places.flatMap((place) => KEYS.map((key) => [key, place[0], place] as const));
  it.each(rows)(
    '%s in %s is rejected and changes nothing',
    async (key, _, [, method, path, around, inner]) => {
      const before = (await proxy.admin('GET', SANDBOXES)).text;
      const { status } = await proxy.admin(
        method,
        path,
        around.replace('%', () => withKey(inner, key)),
      );
      // A listener in another namespace is forbidden altogether.
      expect(status).toBe(around.includes('"listen"') ? 403 : 422);
      expect((await proxy.admin('GET', SANDBOXES)).text).toBe(before);
    },
  );

  it.each(places)(
    'without the key, %s is not rejected for its keys',
    async (_, method, path, around, inner) => {
      const { text } = await proxy.admin(
        method,
        path,
        around.replace('%', () => JSON.stringify(inner)),
      );
      expect(text).not.toContain('extra_forbidden');
      if (method === 'POST') await proxy.admin('DELETE', `${SANDBOXES}/x`);
    },
  );

  it('is a name of a secret like any other, and of a large document too', async () => {
    const path = `${SANDBOXES}/box/workspace_secrets`;
    const many = Array.from({ length: 900 }, (_, i) => `"N${i}":${JSON.stringify('x'.repeat(100))}`);
    for (const more of [[], many]) {
      const members = [...KEYS.map((key) => `"${key}":"the value of it"`), ...more].join();
      expect((await proxy.admin('PUT', path, `{${members}}`)).status).toBe(200);
      const { body } = await proxy.admin('GET', path);
      expect(body['workspace_secrets']).toEqual(expect.arrayContaining(KEYS.map((key) => ({ key }))));
    }
    const rules = [
      { match_hosts: ['a.test'], headers: [{ name: 'X', type: 'workspace_secret', value: '{__proto__}' }] },
    ];
    expect((await proxy.admin('PUT', `${SANDBOXES}/box/proxy_config`, { rules })).status).toBe(200);
    await proxy.admin('PUT', path, '{"__proto__":null}');
    expect((await proxy.admin('PUT', `${SANDBOXES}/box/proxy_config`, { rules })).status).toBe(422);
  });

  it('is rejected in a large proxy_config, which a thread parses', async () => {
    const hosts = Array.from({ length: 900 }, (_, i) => `"h${i}.a.test"`).join();
    for (const key of KEYS) {
      const rule = `{"match_hosts":[${hosts}],"headers":[],"${key}":{"enabled":false}}`;
      const { status, text } = await proxy.admin(
        'PUT',
        `${SANDBOXES}/box/proxy_config`,
        `{"rules":[${rule}]}`,
      );
      expect([status, text]).toEqual([422, expect.stringContaining('extra_forbidden')]);
    }
  });

  it.each(KEYS)('%s in the config of the process is rejected', (key) => {
    for (const text of [withKey({}, key), `{"limits":${withKey({}, key)}}`, `{"admin":${withKey({}, key)}}`])
      expect(parseConfig(JSON.parse(text), {})).toMatchObject({
        ok: false,
        issues: [{ type: 'extra_forbidden' }],
      });
  });

  it('is a name in a file of secrets', () => {
    const found = parseSecretDocument('{"__proto__":"a value","constructor":"another"}', 'file');
    expect(found.map(({ name }) => name)).toEqual(['__proto__', 'constructor']);
  });
});
