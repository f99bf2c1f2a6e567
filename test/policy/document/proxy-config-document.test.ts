// What is written of a config reads back as that config: with its opaque values, and without them over what is stored.
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import {
  type ShowOpaque,
  toProxyConfigDocument,
} from '../../../src/policy/document/proxy-config-document.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';

const reveal: ShowOpaque = (value) => ({ value: value.reveal() });
const conceal: ShowOpaque = () => ({ is_set: true });

// To toEqual any two objects without fields of their own are equal, and a Secret has none.
beforeAll(() => {
  expect.addEqualityTesters([
    (a, b) => (a instanceof Secret && b instanceof Secret ? a.equals(b.reveal()) : undefined),
  ]);
});

function parsed(input: unknown, stored?: ProxyConfig): ProxyConfig {
  const result = parseProxyConfig(input, { stored });
  if (!result.ok) throw new Error(JSON.stringify(result.issues));
  return result.value;
}

/** As it arrives: text between us and the one who sends it back. */
function sent(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document));
}

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
const value = fc.stringMatching(/^[!-z](?:[ -~]{0,30}[!-~])?$/);
const template = fc.tuple(word, word).map(([text, name]) => `${text} {${name}}`);
const path = fc.stringMatching(/^\/[a-z0-9]{1,5}(?:\/\*)?$/);
const proxyless = fc.array(
  word.map((text) => `${text}.direct.internal`),
  { maxLength: 2 },
);

const plaintext = fc.record({ type: fc.constant('plaintext'), value });
const opaque = fc.record({ type: fc.constant('opaque'), value });
const secret = fc.record({ type: fc.constant('workspace_secret'), value: template });

function headersOf(kinds: readonly fc.Arbitrary<object>[], minLength: number): fc.Arbitrary<object[]> {
  return fc
    .array(fc.oneof(...kinds), { minLength, maxLength: 4 })
    .map((headers) => headers.map((header, i) => ({ name: `X-H${i}`, ...header })));
}

const labels = {
  description: fc.string({ maxLength: 20, unit: 'grapheme' }),
  enabled: fc.boolean(),
};
const hosts = fc.record({ names: fc.uniqueArray(word, { minLength: 1, maxLength: 3 }), star: fc.boolean() });

/** Hosts of an entry's own, so that both its name and its hosts distinguish it from every other. */
function placed(entry: object, kind: string, i: number): object {
  const { at, named, ...rest } = { at: { names: ['x'], star: false }, named: false, ...entry };
  const list = at.names.map((name) => `${at.star ? '*.' : ''}${name}.${kind}${i}.test`);
  return { ...rest, ...(named ? { name: `${kind} ${i}` } : {}), match_hosts: list };
}

const rule = fc.record(
  {
    ...labels,
    named: fc.boolean(),
    at: hosts,
    env_vars: fc.dictionary(fc.stringMatching(/^[A-Z_]{1,6}$/), fc.string({ maxLength: 9 }), { maxKeys: 2 }),
    match_paths: fc.array(path, { maxLength: 3 }),
    headers: headersOf([plaintext, opaque, secret], 1),
    no_proxy: proxyless,
    refuse: word,
  },
  { requiredKeys: ['headers', 'at', 'named'] },
);
const callback = fc.record(
  {
    ...labels,
    named: fc.boolean(),
    at: hosts,
    url: path.map((text) => `https://Auth.test:443${text}`),
    ttl_seconds: fc.integer({ min: 60, max: 3600 }),
    request_headers: headersOf([plaintext, opaque], 0),
  },
  { requiredKeys: ['url', 'ttl_seconds', 'at', 'named'] },
);
const written = fc.record(
  {
    rules: fc
      .array(rule, { maxLength: 4 })
      .map((entries) => entries.map((entry, i) => placed(entry, 'r', i))),
    callbacks: fc
      .array(callback, { maxLength: 3 })
      .map((entries) => entries.map((entry, i) => placed(entry, 'c', i))),
    no_proxy: proxyless,
    access_control: fc.constantFrom({ deny_list: ['evil.internal', '192.0.2.0/24'] }, { deny_list: [] }),
  },
  { requiredKeys: [] },
);

describe('any config', () => {
  it('reads back as it is from a document that shows its opaque values', () => {
    fc.assert(
      fc.property(written, (input) => {
        const config = parsed(input);
        expect(parsed(sent(toProxyConfigDocument(config, reveal)))).toEqual(config);
      }),
    );
  });

  it('reads back as it is, over itself, from a document that does not show them', () => {
    fc.assert(
      fc.property(written, (input) => {
        const config = parsed(input);
        expect(parsed(sent(toProxyConfigDocument(config, conceal)), config)).toEqual(config);
      }),
    );
  });

  it('is written without any opaque value, unless the caller shows them', () => {
    fc.assert(
      fc.property(written, (input) => {
        const opaqueValues: string[] = [];
        toProxyConfigDocument(parsed(input), (one) => {
          opaqueValues.push(one.reveal());
          return {};
        });
        const marked = JSON.parse(JSON.stringify(input), (key, one) => {
          const isOpaque = one?.type === 'opaque' && typeof one.value === 'string';
          return isOpaque ? { ...one, value: `c4n4ry${key}` } : one;
        });
        const text = JSON.stringify(toProxyConfigDocument(parsed(marked), conceal));
        expect(text).not.toContain('c4n4ry');
        expect(text.split('"is_set":true').length - 1).toBe(opaqueValues.length);
      }),
    );
  });
});

describe('a document is written', () => {
  it('as its author would write it, without what has its default value', () => {
    const document = {
      rules: [
        {
          name: 'api',
          description: 'd',
          enabled: false,
          env_vars: { TOKEN: 'x' },
          match_hosts: ['API.test'],
          match_paths: ['/v1/*'],
          headers: [
            { name: 'Authorization', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
            { name: 'X-Plain', type: 'plaintext', value: 'p' },
          ],
          no_proxy: ['x.test'],
        },
        { match_hosts: ['b.test'], headers: [{ name: 'X-Key', type: 'plaintext', value: 'v' }] },
      ],
      callbacks: [{ match_hosts: ['cb.test'], url: 'https://A.test', ttl_seconds: 60 }],
      no_proxy: ['10.0.0.0/8'],
      access_control: { deny_list: ['evil.test'] },
    };
    expect(JSON.stringify(toProxyConfigDocument(parsed(document), conceal))).toBe(JSON.stringify(document));
    expect(toProxyConfigDocument(parsed({}), conceal)).toEqual({});
  });

  it('with what the caller shows of an opaque value', () => {
    const headers = [{ name: 'X-Key', type: 'opaque', value: 'v' }];
    const config = parsed({ rules: [{ match_hosts: ['a.test'], headers }] });
    const shown = [conceal, reveal].map((show) => toProxyConfigDocument(config, show));
    expect(shown).toEqual(
      [{ is_set: true }, { value: 'v' }].map((more) => ({
        rules: [{ match_hosts: ['a.test'], headers: [{ name: 'X-Key', type: 'opaque', ...more }] }],
      })),
    );
  });
});
