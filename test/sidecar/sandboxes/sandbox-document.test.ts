// The documents that make and change a sandbox: every field, every refusal with its place, and who may be exposed.
import { describe, expect, it } from 'vitest';
import type { Issue } from '../../../src/base/schema.ts';
import { Secret } from '../../../src/base/secret.ts';
import { parseCidr } from '../../../src/base/address.ts';
import { defaultLimits } from '../../../src/proxy/limits.ts';
import {
  parseSandboxChange,
  parseSandboxDocument,
  showLimits,
  type WantedToken,
} from '../../../src/sidecar/sandboxes/sandbox-document.ts';

const closed = { auth: undefined, allowClients: undefined, limits: defaultLimits, hasNamespaces: false };
const TOKEN = 'a-sandbox-token-of-enough-length';

type Result = { readonly ok: true } | { readonly ok: false; readonly issues: readonly Issue[] };

function places(result: Result): readonly string[] {
  return result.ok ? [] : result.issues.map(({ loc, type }) => `${loc.join('.')} ${type}`).toSorted();
}

function isToken(token: WantedToken, text: string): boolean {
  return token instanceof Secret && token.equals(text);
}

describe('the document of a new sandbox', () => {
  it('may be empty: a token is generated, and nothing is limited', () => {
    expect(parseSandboxDocument({}, closed)).toEqual({
      ok: true,
      value: {
        id: undefined,
        listen: undefined,
        token: 'generate',
        limits: {},
        proxyConfig: undefined,
        workspaceSecrets: undefined,
      },
    });
  });

  it('may set everything', () => {
    const parsed = parseSandboxDocument(
      {
        id: 'box-1',
        listen: '127.0.0.1:0',
        token: TOKEN,
        limits: { max_connections: 1, max_lookups: 2, max_idle_upstream: 3, max_idle_per_host: 4 },
        proxy_config: { rules: 'not judged here' },
        workspace_secrets: 'nor this',
      },
      closed,
    );
    if (!parsed.ok) throw new Error(places(parsed).join());
    expect(parsed.value).toMatchObject({
      id: 'box-1',
      listen: { host: '127.0.0.1', port: 0 },
      limits: { maxConnections: 1, maxLookups: 2, maxIdleUpstream: 3, maxIdlePerHost: 4 },
      proxyConfig: { rules: 'not judged here' },
      workspaceSecrets: 'nor this',
    });
    expect(isToken(parsed.value.token, TOKEN)).toBe(true);
  });

  const tokens: readonly (readonly [string, object, 'generated' | 'none' | 'given'])[] = [
    ['on the main listener without the field gets a generated token', {}, 'generated'],
    ['on the main listener that requests one gets a generated token', { token: 'generate' }, 'generated'],
    ['on the main listener may set its own', { token: TOKEN }, 'given'],
    ['on its own loopback listener needs none', { listen: '127.0.0.1:0' }, 'none'],
    [
      'on its own listener that requests one gets a generated token',
      { listen: '[::1]:0', token: 'generate' },
      'generated',
    ],
    ['on an exposed listener may set its own', { listen: '0.0.0.0:0', token: TOKEN }, 'given'],
  ];
  it.each(tokens)('a sandbox %s', (_, document, wanted) => {
    const parsed = parseSandboxDocument(document, closed);
    if (!parsed.ok) throw new Error(places(parsed).join());
    const { token } = parsed.value;
    expect(token === undefined ? 'none' : token === 'generate' ? 'generated' : 'given').toBe(wanted);
  });

  it.each(['a', '7', 'box-1', 'a--b', 'x'.repeat(63)])('accepts the id %s', (id) => {
    expect(parseSandboxDocument({ id }, closed)).toMatchObject({ ok: true, value: { id } });
  });

  const refusals: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['no object', 'text', [' dict_type']],
    ['a list', [], [' dict_type']],
    ['null', null, [' dict_type']],
    ['nothing', undefined, [' missing']],
    ['an unknown key', { name: 'x' }, ['name extra_forbidden']],
    ['an id that is no string', { id: 1 }, ['id string_type']],
    ...['', 'Box', '-a', 'a-', 'a.b', 'a_b', 'a b', '../a', 'é', 'x'.repeat(64), 'a\n'].map(
      (id) => [`the id ${JSON.stringify(id)}`, { id }, ['id value_error']] as const,
    ),
    ...['', 'x', '127.0.0.1', '127.0.0.1:65536', 'unix:/tmp/s', 'off', '::1:1'].map(
      (listen) => [`the listener ${JSON.stringify(listen)}`, { listen }, ['listen value_error']] as const,
    ),
    ['a listener that is a number', { listen: 3128 }, ['listen string_type']],
    ...['', 'short', 'x'.repeat(257), `${TOKEN}\n`, `${TOKEN} `, `${TOKEN}:`, `${TOKEN}é`, `${TOKEN}@`].map(
      (token) => [`the token ${JSON.stringify(token)}`, { token }, ['token value_error']] as const,
    ),
    ['a token of null', { token: null }, ['token string_type']],
    ['limits that are no object', { limits: 1 }, ['limits dict_type']],
    ['an unknown limit', { limits: { max_fields: 1 } }, ['limits.max_fields extra_forbidden']],
    ['a limit of 0', { limits: { max_lookups: 0 } }, ['limits.max_lookups greater_than_equal']],
    [
      'a limit over a million',
      { limits: { max_connections: 1_000_001 } },
      ['limits.max_connections less_than_equal'],
    ],
    ['half a limit', { limits: { max_idle_upstream: 1.5 } }, ['limits.max_idle_upstream int_type']],
    ['a limit of null', { limits: { max_idle_per_host: null } }, ['limits.max_idle_per_host int_type']],
    [
      'several errors at once',
      { id: 'A', listen: 'x', token: 'y', limits: { max_lookups: '1' }, more: 1 },
      [
        'id value_error',
        'limits.max_lookups int_type',
        'listen value_error',
        'more extra_forbidden',
        'token value_error',
      ],
    ],
  ];
  it.each(refusals)('rejects %s, and says where', (_, document, expected) => {
    expect(places(parseSandboxDocument(document, closed))).toEqual(expected);
  });

  it('quotes nothing that was sent', () => {
    const canary = 'Canary Value:';
    const document = { id: canary, listen: canary, token: canary, limits: { max_lookups: canary } };
    expect(JSON.stringify(parseSandboxDocument(document, closed))).not.toContain('Canary');
  });
});

describe('a listener that is reachable from other machines, without a token', () => {
  const allowClients = ['10.0.0.0/8'].flatMap((text) => parseCidr(text) ?? []);
  it.each(['0.0.0.0:0', ':0', '[::]:0', '10.1.2.3:0', '169.254.1.1:0'])('%s is rejected', (listen) => {
    const parsed = parseSandboxDocument({ listen }, closed);
    expect(places(parsed)).toEqual(['listen value_error']);
    expect(JSON.stringify(parsed)).toMatch(/send a token, or .*allow_clients or auth: \\"none\\"/);
  });

  it('is an address or localhost: a name would be looked up while other writers wait', () => {
    const parsed = parseSandboxDocument({ listen: 'box.internal:0', token: TOKEN }, closed);
    expect(places(parsed)).toEqual(['listen value_error']);
    expect(JSON.stringify(parsed)).toContain('must be an IP address or localhost');
  });

  it('is rejected although clients of the main listener need a token', () => {
    const auth = { tokenFile: '/run/token' };
    expect(places(parseSandboxDocument({ listen: '0.0.0.0:0' }, { ...closed, auth }))).toHaveLength(1);
  });

  it.each([
    ['the operator lists clients', { ...closed, allowClients }],
    ['the operator says that anybody may', { ...closed, auth: 'none' as const }],
  ])('is allowed where %s', (_, config) => {
    expect(parseSandboxDocument({ listen: '0.0.0.0:0' }, config)).toMatchObject({
      ok: true,
      value: { token: undefined },
    });
  });

  it.each(['3128', '127.0.0.1:1', '127.9.9.9:1', '[::1]:1', 'localhost:1'])(
    'is not required on %s, which is reachable only from this machine',
    (listen) => {
      expect(parseSandboxDocument({ listen }, closed).ok).toBe(true);
    },
  );
});

describe('the document of a change', () => {
  it('that is empty changes nothing', () => {
    expect(parseSandboxChange({}, closed)).toEqual({
      ok: true,
      value: { token: undefined, limits: undefined },
    });
  });

  it('names only the limits that change', () => {
    const parsed = parseSandboxChange({ limits: { max_lookups: 3 } }, closed);
    expect(parsed).toEqual({ ok: true, value: { token: undefined, limits: { maxLookups: 3 } } });
  });

  it('requests a generated token or sets one', () => {
    expect(parseSandboxChange({ token: 'generate' }, closed)).toMatchObject({ value: { token: 'generate' } });
    const parsed = parseSandboxChange({ token: TOKEN }, closed);
    expect(parsed.ok && isToken(parsed.value.token, TOKEN)).toBe(true);
  });

  it.each([
    ['an id', { id: 'b' }, ['id extra_forbidden']],
    ['a listener', { listen: '127.0.0.1:0' }, ['listen extra_forbidden']],
    ['a proxy_config', { proxy_config: {} }, ['proxy_config extra_forbidden']],
    ['secrets', { workspace_secrets: {} }, ['workspace_secrets extra_forbidden']],
    ['a short token', { token: 'short' }, ['token value_error']],
    ['a token of null', { token: null }, ['token string_type']],
    ['limits of null', { limits: null }, ['limits dict_type']],
    ['a limit of 0', { limits: { max_connections: 0 } }, ['limits.max_connections greater_than_equal']],
    ['no object', 7, [' dict_type']],
  ])('rejects %s, and says where', (_, document, expected) => {
    expect(places(parseSandboxChange(document, closed))).toEqual(expected);
  });
});

it('limits are shown under the names that documents use', () => {
  expect(showLimits({ maxConnections: 1, maxLookups: 2, maxIdleUpstream: 3, maxIdlePerHost: 4 })).toEqual({
    max_connections: 1,
    max_lookups: 2,
    max_idle_upstream: 3,
    max_idle_per_host: 4,
  });
});
