// The meaning of a proxy_config, row by row: which `Authorization` arrives at the origin and in which way, or with which
// error code the request is rejected without dialling an origin.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestSidecarOptions } from '../support/test-sidecar.ts';
import { type Fate, type Semantics, callback, createSemantics, rule } from './semantics-scene.ts';

let semantics: Semantics;
beforeAll(async () => {
  semantics = await createSemantics();
});
afterAll(() => semantics[Symbol.asyncDispose]());

/** `first`: injected by the rule of that name. `agent`: unchanged. `tunnel`: a blind tunnel. `!code`: rejected. */
type Row = readonly [what: string, url: string, document: object, expected: string, calls?: number];

function toFate(expected: string, url: string): Fate {
  if (expected.startsWith('!')) return { refused: expected.slice(1) };
  if (expected === 'tunnel') return { saw: 'agent', way: 'tunnelled' };
  return { saw: expected, way: url.startsWith('https:') ? 'intercepted' : 'in plaintext' };
}

type Surroundings = {
  readonly operator?: TestSidecarOptions['config'];
  readonly names?: TestSidecarOptions['names'];
};

function table(rows: readonly Row[], surroundings: Surroundings = {}): void {
  const cases = rows.map(([what, url, document, expected, calls = 0]) => {
    return [what, url, document, expected, calls] as const;
  });
  it.each(cases)('%s: %s', async (_, url, document, expected, calls) => {
    const seen = await semantics.ask({ url, document, ...surroundings });
    expect({ fate: seen.fate, calls: seen.calls }).toEqual({ fate: toFate(expected, url), calls });
    // Policy before the lookup: a rejected name must not cause a DNS query.
    if (expected === '!access_denied' && !surroundings.names) expect(seen.lookups).toEqual([]);
  });
}

const API = 'https://api.test:TLS/';
const SUB = 'https://a.api.test:TLS/';
const DEEP = 'https://a.b.api.test:TLS/';
const OTHER = 'https://other.test:TLS/';
const LIKE = 'https://xapi.test:TLS/';
const ADDRESS = 'https://127.0.0.1:TLS/';
const CLEAR = 'http://api.test:CLEAR/';
const OTHER_CLEAR = 'http://other.test:CLEAR/';

const first = rule('first', ['api.test']);
const onV1 = rule('v1', ['api.test'], { match_paths: ['/v1/*'] });
const onV2 = rule('v2', ['api.test'], { match_paths: ['/v2/*'] });

describe('precedence', () => {
  const both = callback(['api.test']);
  table([
    ['a rule and a callback on one host', API, { rules: [first], callbacks: [both] }, 'first'],
    [
      'a rule whose path does not match still disables callbacks',
      'https://api.test:TLS/x',
      { rules: [onV1], callbacks: [both] },
      'agent',
    ],
    [
      'a wildcard rule disables callbacks too',
      SUB,
      {
        rules: [rule('wild', ['*.api.test'], { match_paths: ['/no'] })],
        callbacks: [callback(['a.api.test'])],
      },
      'agent',
    ],
    ['a callback alone', API, { callbacks: [both] }, 'callback', 1],
    [
      'a rule for another host does not affect the callback',
      API,
      { rules: [rule('other', ['other.test'])], callbacks: [both] },
      'callback',
      1,
    ],
    [
      'a rule for another port does not affect the callback',
      API,
      { rules: [rule('port', ['api.test:1'])], callbacks: [both] },
      'callback',
      1,
    ],
    ['the first of two rules', API, { rules: [first, rule('second', ['api.test'])] }, 'first'],
    [
      'order decides, not exactness',
      SUB,
      { rules: [rule('wild', ['*.api.test']), rule('exact', ['a.api.test'])] },
      'wild',
    ],
    ['the first whose path matches', 'https://api.test:TLS/v2/x', { rules: [onV1, onV2, first] }, 'v2'],
    ['a later rule without paths', 'https://api.test:TLS/v3', { rules: [onV1, onV2, first] }, 'first'],
    ['an earlier rule without paths', 'https://api.test:TLS/v1/x', { rules: [first, onV1] }, 'first'],
    ['no rule whose path matches', 'https://api.test:TLS/v3', { rules: [onV1, onV2] }, 'agent'],
    [
      'the first of two callbacks',
      API,
      { callbacks: [both, callback(['api.test'], { url: 'http://127.0.0.1:1/' })] },
      'callback',
      1,
    ],
    [
      'the first of two callbacks, though it fails',
      API,
      { callbacks: [callback(['api.test'], { url: 'http://127.0.0.1:1/' }), both] },
      '!callback_failed',
    ],
    [
      'a disabled rule does not win',
      API,
      { rules: [{ ...first, enabled: false }, rule('second', ['api.test'])] },
      'second',
    ],
    [
      'a disabled rule does not disable callbacks',
      API,
      { rules: [{ ...first, enabled: false }], callbacks: [both] },
      'callback',
      1,
    ],
    ['a disabled rule alone', API, { rules: [{ ...first, enabled: false }] }, 'tunnel'],
    ['a disabled callback', API, { callbacks: [{ ...both, enabled: false }] }, 'tunnel'],
    [
      'a disabled callback before another',
      API,
      { callbacks: [{ ...both, enabled: false, url: 'http://127.0.0.1:1/' }, both] },
      'callback',
      1,
    ],
    ['nothing', API, {}, 'tunnel'],
    ['nothing, in plaintext', CLEAR, {}, 'agent'],
  ]);
});

describe('hosts', () => {
  const wild = { rules: [rule('wild', ['*.api.test'])] };
  const exact = { rules: [first] };
  table([
    ['an exact name', API, exact, 'first'],
    ['in another case', 'https://API.Test:TLS/', exact, 'first'],
    ['with the root dot', 'https://api.test.:TLS/', exact, 'first'],
    ['a pattern in another case', API, { rules: [rule('first', ['API.Test.'])] }, 'first'],
    ['an exact name does not match subdomains', SUB, exact, 'tunnel'],
    ['an exact name does not match names with the same ending', LIKE, exact, 'tunnel'],
    ['a wildcard and one label', SUB, wild, 'wild'],
    ['a wildcard and two labels', DEEP, wild, 'wild'],
    ['a wildcard and upper case', 'https://A.Api.TEST.:TLS/', wild, 'wild'],
    ['a wildcard and its apex', API, wild, 'tunnel'],
    ['a wildcard and a name with the same ending', LIKE, wild, 'tunnel'],
    [
      'a wildcard over a top-level name of our own',
      'https://api.internal:TLS/',
      { rules: [rule('wild', ['*.internal'])] },
      'wild',
    ],
    ['an address', ADDRESS, { rules: [rule('address', ['127.0.0.1'])] }, 'address'],
    ['one of several hosts', OTHER, { rules: [rule('many', ['api.test', 'other.test'])] }, 'many'],
    ['a callback on a wildcard', SUB, { callbacks: [callback(['*.api.test'])] }, 'callback', 1],
    ['a callback on a wildcard, at its apex', API, { callbacks: [callback(['*.api.test'])] }, 'tunnel'],
  ]);
});

describe('ports', () => {
  table([
    ['a pattern without a port matches every port', API, { rules: [first] }, 'first'],
    ['with the requested port', API, { rules: [rule('port', ['api.test:TLS'])] }, 'port'],
    ['with another port', API, { rules: [rule('port', ['api.test:443'])] }, 'tunnel'],
    [
      'two rules that share a host',
      API,
      { rules: [rule('443', ['api.test:443']), rule('port', ['api.test:TLS'])] },
      'port',
    ],
    ['a wildcard with the port', SUB, { rules: [rule('port', ['*.api.test:TLS'])] }, 'port'],
    ['a callback with another port', API, { callbacks: [callback(['api.test:443'])] }, 'tunnel'],
    ['no port at CONNECT', 'https://api.test/', { rules: [first] }, '!authority_invalid'],
    ['port zero', 'https://api.test:0/', { rules: [first] }, '!authority_invalid'],
    ['a port with a zero before it', 'https://api.test:0443/', { rules: [first] }, '!authority_invalid'],
    ['a port above 65535', 'https://api.test:65536/', { rules: [first] }, '!authority_invalid'],
  ]);

  // This proxy is reachable by others, so loopback is an ordinary destination: it is allowed here for the test origins.
  const shared = { listen: '0.0.0.0:0', auth: 'none', egress: { allow_private: ['127.0.0.0/8', '::1'] } };
  describe('of a proxy on a non-loopback address', () => {
    table(
      [
        ['a rule host on any port', API, { rules: [first] }, 'first'],
        ['a wildcard host on any port', SUB, { rules: [rule('wild', ['*.api.test'])] }, 'wild'],
        ['a callback host on any port', API, { callbacks: [callback(['api.test'])] }, 'callback', 1],
        ['another host on another port than 80 and 443', OTHER, { rules: [first] }, '!port_denied'],
        ['the same in plaintext', OTHER_CLEAR, { rules: [first] }, '!port_denied'],
        [
          'a rule host on a port that its rule does not name',
          API,
          { rules: [rule('port', ['api.test:443'])] },
          '!port_denied',
        ],
        [
          'a host in allow_list with its port',
          OTHER,
          { access_control: { allow_list: ['other.test:TLS'] } },
          'tunnel',
        ],
        [
          'a host in allow_list without a port',
          OTHER,
          { access_control: { allow_list: ['other.test'] } },
          '!port_denied',
        ],
        ['a host of no_proxy on another port', OTHER, { no_proxy: ['other.test'] }, '!port_denied'],
      ],
      { operator: shared },
    );
    table([['another host on a port that the operator allows', OTHER, { rules: [first] }, 'tunnel']], {
      operator: { ...shared, egress: { ...shared.egress, ports: ['TLS'] } },
    });
  });
});

describe('paths', () => {
  const matching = (pattern: string): object => ({
    rules: [rule('path', ['api.test'], { match_paths: [pattern] })],
  });
  const rows: readonly (readonly [pattern: string, path: string, matches: boolean | 'ambiguous'])[] = [
    ['/v1/*', '/v1/', true],
    ['/v1/*', '/v1/x', true],
    ['/v1/*', '/v1/x/y', true],
    ['/v1/*', '/v1/.git', true],
    ['/v1/*', '/v1', false],
    ['/v1/*', '/v10/x', false],
    ['/v1/*', '/V1/x', false],
    ['/v1/**', '/v1/x/y', true],
    ['/v1/**', '/v1/', true],
    ['/v1/**', '/v1', false],
    ['/v1*', '/v1', true],
    ['/v1*', '/v10', true],
    ['/v1*', '/v1/x/y', true],
    ['/v1*', '/v', false],
    ['/v1', '/v1', true],
    ['/v1', '/v1/', false],
    ['/v1', '/v1?x=/', true],
    ['/*', '/', true],
    ['/*', '/a/b/c', true],
    ['/repos/*/contents', '/repos/a/contents', true],
    ['/repos/*/contents', '/repos/a/b/contents', false],
    ['/repos/*/contents', '/repos//contents', 'ambiguous'],
    ['/repos/*/contents', '/repos/a/contents/x', false],
    ['/repos/*/contents/*', '/repos/a/contents/b/c', true],
    ['/repos/a*b/x', '/repos/aXb/x', true],
    ['/repos/a*b/x', '/repos/a/b/x', false],
    ['/v1/*', '/other?/v1/x', false],
    ['/v1/*', '/v1/group%2Fproject', true],
    ['/v1/*', '/v1//x', true],
    ['/v1/*', '/v1/x;y=1', true],
    ['/v1/*', '/v1%2Fx', 'ambiguous'],
    ['/v1/*', '/v1/../x', 'ambiguous'],
    ['/v1/*', '/v1/%2e%2e/x', 'ambiguous'],
    ['/v1/*', '/other/%2e%2e/x', 'ambiguous'],
    ['/v1/*', '/other/%00', 'ambiguous'],
    ['/v1/secret', '/v1/%73ecret', 'ambiguous'],
    ['/v1/a%20b', '/v1/a%20b', true],
  ];
  it.each(rows)('%s, requested %s: %s', async (pattern, path, matches) => {
    const { fate } = await semantics.ask({ url: `https://api.test:TLS${path}`, document: matching(pattern) });
    expect(fate).toEqual(
      toFate(matches === 'ambiguous' ? '!ambiguous_path' : matches ? 'path' : 'agent', 'https:'),
    );
  });
  table([
    [
      'an empty list of paths matches every path',
      'https://api.test:TLS/any/../where',
      { rules: [rule('all', ['api.test'], { match_paths: [] })] },
      'all',
    ],
    [
      'one of two patterns',
      'https://api.test:TLS/b',
      { rules: [rule('two', ['api.test'], { match_paths: ['/a', '/b'] })] },
      'two',
    ],
    [
      'a callback gets no path',
      'https://api.test:TLS/a/../b',
      { callbacks: [callback(['api.test'])] },
      'callback',
      1,
    ],
  ]);
});

describe('no_proxy', () => {
  const over = (...entries: string[]): object => ({
    rules: [rule('rule', ['api.test', '*.api.test', '127.0.0.1'])],
    no_proxy: entries,
  });
  table([
    ['an exact name wins over a rule', API, over('api.test'), 'tunnel'],
    ['an exact name does not match subdomains', SUB, over('api.test'), 'rule'],
    ['a wildcard', DEEP, over('*.api.test'), 'tunnel'],
    ['a wildcard does not match its apex', API, over('*.api.test'), 'rule'],
    ['a leading dot is a wildcard', SUB, over('.api.test'), 'tunnel'],
    ['an address', ADDRESS, over('127.0.0.1'), 'tunnel'],
    ['a range', ADDRESS, over('127.0.0.0/8'), 'tunnel'],
    ['a range does not match names that resolve to it', API, over('127.0.0.0/8'), 'rule'],
    ['with the port', API, over('api.test:TLS'), 'tunnel'],
    ['with another port', API, over('api.test:443'), 'rule'],
    ['over a callback', API, { callbacks: [callback(['api.test'])], no_proxy: ['api.test'] }, 'tunnel'],
    [
      'inside a rule',
      OTHER,
      { rules: [{ ...first, no_proxy: ['other.test'] }, rule('other', ['other.test'])] },
      'tunnel',
    ],
    [
      'inside a disabled rule',
      OTHER,
      { rules: [{ ...first, enabled: false, no_proxy: ['other.test'] }, rule('other', ['other.test'])] },
      'other',
    ],
    ['in plaintext', CLEAR, over('api.test'), 'agent'],
    [
      'a denied host is still denied',
      OTHER,
      { no_proxy: ['other.test'], access_control: { deny_list: ['other.test'] } },
      '!access_denied',
    ],
    [
      'a host that is not allowed is still denied',
      OTHER,
      { no_proxy: ['other.test'], access_control: { allow_list: ['api.test'] } },
      '!access_denied',
    ],
  ]);
});

describe('cleartext', () => {
  table([
    ['a rule host', CLEAR, { rules: [first] }, '!cleartext_refused'],
    ['a rule host in a tunnel', 'http+tunnel://api.test:CLEAR/', { rules: [first] }, '!cleartext_refused'],
    ['a callback host, without a call', CLEAR, { callbacks: [callback(['api.test'])] }, '!cleartext_refused'],
    ['a rule host on a path without a rule', 'http://api.test:CLEAR/x', { rules: [onV1] }, 'agent'],
    [
      'a rule host on a path without a rule, in a tunnel',
      'http+tunnel://api.test:CLEAR/x',
      { rules: [onV1] },
      'agent',
    ],
    ['another host', OTHER_CLEAR, { rules: [first] }, 'agent'],
    ['another host in a tunnel', 'http+tunnel://other.test:CLEAR/', { rules: [first] }, 'agent'],
    ['localhost', 'http://localhost:CLEAR/', { rules: [rule('local', ['localhost'])] }, 'local'],
    ['a loopback address', 'http://127.0.0.1:CLEAR/', { rules: [rule('local', ['127.0.0.1'])] }, 'local'],
    [
      'a callback for localhost',
      'http://localhost:CLEAR/',
      { callbacks: [callback(['localhost'])] },
      'callback',
      1,
    ],
  ]);
  table(
    [
      ['a listed rule host', CLEAR, { rules: [first] }, 'first'],
      ['a listed rule host in a tunnel', 'http+tunnel://api.test:CLEAR/', { rules: [first] }, 'first'],
      ['a listed host of a wildcard rule', CLEAR, { rules: [rule('wild', ['*.test'])] }, 'wild'],
      [
        'a host beside the listed one',
        'http://a.api.test:CLEAR/',
        { rules: [rule('wild', ['*.test'])] },
        '!cleartext_refused',
      ],
      ['a listed callback host', CLEAR, { callbacks: [callback(['api.test'])] }, 'callback', 1],
    ],
    { operator: { inject_cleartext: ['api.test:CLEAR'] } },
  );
});

describe('access_control', () => {
  const allow = (...entries: string[]): object => ({ access_control: { allow_list: entries } });
  const deny = (...entries: string[]): object => ({ access_control: { deny_list: entries } });
  table([
    ['allowed by name', API, allow('api.test'), 'tunnel'],
    ['not in the allow_list', OTHER, allow('api.test'), '!access_denied'],
    ['not in the allow_list, in plaintext', OTHER_CLEAR, allow('api.test'), '!access_denied'],
    ['an empty allow_list', API, allow(), '!access_denied'],
    ['allowed by wildcard', DEEP, allow('*.api.test'), 'tunnel'],
    ['the apex of an allowed wildcard', API, allow('*.api.test'), '!access_denied'],
    ['allowed by range', ADDRESS, allow('127.0.0.0/8'), 'tunnel'],
    ['a name that resolves to an allowed range', API, allow('127.0.0.0/8'), '!access_denied'],
    ['allowed with its port', API, allow('api.test:TLS'), 'tunnel'],
    ['allowed with another port', API, allow('api.test:443'), '!access_denied'],
    ['a rule host that is allowed', API, { rules: [first], ...allow('api.test') }, 'first'],
    ['a host beside an allowed rule host', OTHER, { rules: [first], ...allow('api.test') }, '!access_denied'],
    ['denied by name', OTHER, deny('other.test'), '!access_denied'],
    ['denied in another spelling', 'https://OTHER.test.:TLS/', deny('other.test'), '!access_denied'],
    ['beside the denied', API, deny('other.test'), 'tunnel'],
    ['denied by wildcard', DEEP, deny('*.api.test'), '!access_denied'],
    ['the apex of a denied wildcard', API, deny('*.api.test'), 'tunnel'],
    ['denied by range', ADDRESS, deny('127.0.0.0/8'), '!access_denied'],
    ['denied with its port', OTHER, deny('other.test:TLS'), '!access_denied'],
    ['denied with another port', OTHER, deny('other.test:443'), 'tunnel'],
    ['a rule host beside the denied', API, { rules: [first], ...deny('other.test') }, 'first'],
    ['an empty deny_list', API, deny(), 'tunnel'],
  ]);
  table(
    [
      ['a name that resolves to a denied range', OTHER, deny('127.0.0.0/8'), '!access_denied'],
      [
        'a rule host that resolves to a denied range',
        API,
        { rules: [first], ...deny('127.0.0.0/8') },
        '!access_denied',
      ],
      ['a name with one denied address', 'https://two.test:TLS/', deny('127.9.9.9'), '!access_denied'],
    ],
    { names: { 'two.test': ['127.0.0.1', '127.9.9.9'] } },
  );
});
