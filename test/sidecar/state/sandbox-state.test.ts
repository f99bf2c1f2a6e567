// What is stored of a sandbox: nothing is lost or changed by encoding and decoding, and unknown formats are rejected.
import { describe, expect, it } from 'vitest';
import type { Issue } from '../../../src/base/schema.ts';
import { Secret } from '../../../src/base/secret.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import {
  type SandboxState,
  decodeSandboxState,
  describeIssues,
  encodeSandboxState,
  newEtag,
  newSandboxState,
} from '../../../src/sidecar/state/sandbox-state.ts';

const options = { allowWildcards: [] };
const CONFIG = {
  rules: [
    {
      name: 'api',
      match_hosts: ['api.test', '*.b.test:8443'],
      match_paths: ['/v1/*'],
      env_vars: { A_KEY: 'x' },
      headers: [
        { name: 'A', type: 'workspace_secret', value: 'Bearer {TOKEN}' },
        { name: 'B', type: 'plaintext', value: 'plain' },
        { name: 'C', type: 'opaque', value: 'opaque-value-1' },
      ],
    },
  ],
  callbacks: [
    {
      match_hosts: ['c.test'],
      url: 'https://auth.test/token',
      ttl_seconds: 60,
      request_headers: [{ name: 'X', type: 'opaque', value: 'opaque-value-2' }],
    },
  ],
  no_proxy: ['d.test'],
  access_control: { deny_list: ['e.test'] },
};

function fullState(): SandboxState {
  const parsed = parseProxyConfig(CONFIG, options);
  if (!parsed.ok) throw new Error(describeIssues(parsed.issues));
  const secrets = new Map([
    ['TOKEN', new Secret('value-\u{1f511}-"\\')],
    ['__proto__', new Secret('of an odd name')],
  ]);
  const given = { listen: { host: '::1', port: 4000 }, token: new Secret('the-token'), secrets };
  return {
    ...newSandboxState('box', { ...given, limits: { maxLookups: 3 } }),
    revision: 7,
    etag: newEtag(7),
    proxyConfig: parsed.value,
    used: new Map([['TOKEN', new Secret('value of then')]]),
  };
}

function decoded(state: SandboxState): SandboxState {
  const back = decodeSandboxState(encodeSandboxState(state), options);
  if (typeof back === 'string') throw new Error(back);
  return back.state;
}

function opened(secrets: ReadonlyMap<string, Secret>): readonly (readonly [string, string])[] {
  return [...secrets].map(([name, value]) => [name, value.reveal()]);
}

describe('a state', () => {
  it('is decoded as it was encoded, with every value', () => {
    const state = fullState();
    const back = decoded(state);
    // The text holds every value in plaintext, so it distinguishes two states that print alike.
    expect(JSON.parse(encodeSandboxState(back))).toEqual(JSON.parse(encodeSandboxState(state)));
    expect(opened(back.secrets)).toEqual([
      ['TOKEN', 'value-\u{1f511}-"\\'],
      ['__proto__', 'of an odd name'],
    ]);
    expect(opened(back.used)).toEqual([['TOKEN', 'value of then']]);
    expect(back.token?.reveal()).toBe('the-token');
    expect(back.proxyConfig?.rules[0]?.headers[2]?.value).toBeInstanceOf(Secret);
    const { id, createdAt, listen, limits, revision, etag } = state;
    expect(back).toMatchObject({ id, createdAt, listen, limits, revision, etag });
  });

  it('of a new sandbox is decoded too', () => {
    const state = newSandboxState('default');
    expect(decoded(state)).toEqual(state);
    expect(state).toMatchObject({ revision: 0, limits: {} });
    expect([state.token, state.listen, state.proxyConfig]).toEqual([undefined, undefined, undefined]);
    expect(new Date(state.createdAt).toISOString()).toBe(state.createdAt);
  });

  it('prints no value', () => {
    const printed = JSON.stringify(fullState());
    expect(printed).not.toMatch(/the-token|opaque-value/);
  });
});

describe('a text in another format', () => {
  const whole = JSON.parse(encodeSandboxState(fullState())) as Record<string, unknown>;
  const rows: readonly (readonly [string, string])[] = [
    ['empty', ''],
    ['no JSON', '{'],
    ['a list', '[]'],
    ['of a later version', JSON.stringify({ ...whole, version: 2 })],
    ['of no version', JSON.stringify({ ...whole, version: undefined })],
    ['with an unknown key', JSON.stringify({ ...whole, more: 1 })],
    ['with an unknown limit', JSON.stringify({ ...whole, limits: { maxFields: 1 } })],
    ['with a limit of 0', JSON.stringify({ ...whole, limits: { maxLookups: 0 } })],
    ['with a negative revision', JSON.stringify({ ...whole, revision: -1 })],
    ['with secrets that are an object', JSON.stringify({ ...whole, secrets: { A: 'b' } })],
    ...['id', 'createdAt', 'limits', 'revision', 'etag', 'used', 'secrets'].map(
      (key) => [`without ${key}`, JSON.stringify({ ...whole, [key]: undefined })] as const,
    ),
  ];
  it.each(rows)('%s is rejected', (_, text) => {
    expect(decodeSandboxState(text, options)).toBe('it was written by another version of Sallyport');
  });

  it('with a proxy_config that is no longer valid reports the entry, and quotes nothing', () => {
    const proxyConfig = { rules: [{ ...CONFIG.rules[0], match_hosts: ['*.github.io'] }] };
    const text = JSON.stringify({ ...whole, proxyConfig });
    expect(decodeSandboxState(text, options)).toMatchObject({
      state: { id: 'box', proxyConfig: undefined },
      error: expect.stringMatching(/^rules\.0\.match_hosts\.0: /),
    });
    const allowed = decodeSandboxState(text, { allowWildcards: ['*.github.io'] });
    expect(allowed).toMatchObject({ state: { id: 'box', proxyConfig: {} }, error: undefined });
  });
});

it('an entity tag conforms to RFC 9110, contains its revision and is unique', () => {
  const tags = Array.from({ length: 1_000 }, () => newEtag(3));
  expect(new Set(tags).size).toBe(1_000);
  for (const tag of tags) expect(tag).toMatch(/^"3-[A-Za-z0-9_-]{12}"$/);
});

it('issues are described by the first, and the number of the others', () => {
  const issue: Issue = { loc: ['a', 0], msg: 'M', type: 'value_error' };
  expect(describeIssues([issue])).toBe('a.0: M');
  expect(describeIssues([issue, issue, issue])).toBe('a.0: M (and 2 more)');
  expect(describeIssues([])).toBe('the reason is unknown');
});
