// What entries mean for one another: issues where one makes another impossible, warnings where it only weakens it.
import { describe, expect, it } from 'vitest';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'v' }];
const rule = (...hosts: readonly string[]): object => ({ match_hosts: hosts, headers });
const callback = (...hosts: readonly string[]): object => ({
  match_hosts: hosts,
  url: 'http://127.0.0.1:1/',
  ttl_seconds: 60,
});

/** `path type` of each issue, or of each warning with a question mark before it. */
function reported(config: object, allowWildcards: readonly string[] = []): readonly string[] {
  const parsed = parseProxyConfig(config, { allowWildcards });
  const of = (list: readonly { loc: readonly (string | number)[]; type: string }[], mark: string): string[] =>
    list.map(({ loc, type }) => `${mark}${loc.join('.')} ${type}`);
  return parsed.ok ? of(parsed.warnings, '?') : of(parsed.issues, '');
}

describe('a wildcard over a public suffix', () => {
  it('is refused', () => {
    expect(reported({ rules: [rule('*.github.io')] })).toEqual(['rules.0.match_hosts.0 value_error']);
    expect(reported({ callbacks: [callback('a.test', '*.com:8443')] })).toEqual([
      'callbacks.0.match_hosts.1 value_error',
    ]);
  });
  it('is allowed where the operator lists it, and only there', () => {
    expect(reported({ rules: [rule('*.github.io')] }, ['*.GitHub.io'])).toEqual([]);
    expect(reported({ rules: [rule('*.github.io')] }, ['github.io'])).toEqual([]);
    expect(reported({ rules: [rule('*.com')] }, ['github.io'])).toEqual([
      'rules.0.match_hosts.0 value_error',
    ]);
  });
  it('is refused in a disabled rule too', () => {
    expect(reported({ rules: [{ ...rule('*.com'), enabled: false }] })).toEqual([
      'rules.0.match_hosts.0 value_error',
    ]);
  });
});

describe('access_control and the hosts of rules and callbacks:', () => {
  const rows: readonly [
    host: string,
    list: 'allow_list' | 'deny_list',
    entries: readonly string[],
    reported: string,
  ][] = [
    ['a.test', 'deny_list', ['a.test'], 'issue'],
    ['a.test', 'deny_list', ['.test'], 'issue'],
    ['a.test', 'deny_list', ['b.test', 'a.test:443'], 'warning'],
    ['a.test:443', 'deny_list', ['a.test:443'], 'issue'],
    ['a.test:443', 'deny_list', ['a.test:22'], 'nothing'],
    ['a.test', 'deny_list', ['b.test', '*.a.test'], 'nothing'],
    ['*.a.test', 'deny_list', ['*.test'], 'issue'],
    ['*.a.test', 'deny_list', ['*.a.test'], 'issue'],
    ['*.a.test', 'deny_list', ['x.a.test'], 'warning'],
    ['*.a.test', 'deny_list', ['*.x.a.test'], 'warning'],
    ['*.a.test', 'deny_list', ['a.test'], 'nothing'],
    ['*.a.test:443', 'deny_list', ['x.a.test:22'], 'nothing'],
    ['192.0.2.7', 'deny_list', ['192.0.2.0/24'], 'issue'],
    ['192.0.2.7', 'deny_list', ['192.0.2.0/24:22'], 'warning'],
    ['192.0.2.7:443', 'deny_list', ['192.0.2.0/24:22'], 'nothing'],
    ['192.0.2.7', 'deny_list', ['10.0.0.0/8'], 'nothing'],
    ['[2001:db8::7]', 'deny_list', ['2001:db8::/32'], 'issue'],
    ['a.test', 'deny_list', [], 'nothing'],
    ['a.test', 'allow_list', ['a.test'], 'nothing'],
    ['a.test', 'allow_list', ['*.test'], 'nothing'],
    ['a.test', 'allow_list', ['a.test:443'], 'nothing'],
    ['a.test:8443', 'allow_list', ['a.test:443'], 'issue'],
    ['a.test', 'allow_list', ['b.test'], 'issue'],
    ['a.test', 'allow_list', [], 'issue'],
    ['*.a.test', 'allow_list', ['.a.test'], 'nothing'],
    ['*.a.test', 'allow_list', ['*.test'], 'nothing'],
    ['*.a.test', 'allow_list', ['x.a.test'], 'warning'],
    ['*.a.test', 'allow_list', ['a.test'], 'issue'],
    ['192.0.2.7', 'allow_list', ['192.0.2.0/24'], 'nothing'],
    ['192.0.2.7', 'allow_list', ['10.0.0.0/8'], 'issue'],
  ];
  const places = ['rules', 'callbacks'] as const;
  for (const place of places)
    it.each(rows)(`${place} with %s and %s %j: %s`, (host, list, entries, expected) => {
      const make = place === 'rules' ? rule : callback;
      const found = reported({ [place]: [make(host)], access_control: { [list]: entries } });
      const kinds = {
        nothing: [],
        issue: [`${place}.0.match_hosts.0 value_error`],
        warning: [`?${place}.0.match_hosts.0 partly_denied`],
      };
      expect(found).toEqual(kinds[expected as keyof typeof kinds]);
    });

  it('a disabled rule may be denied', () => {
    expect(
      reported({ rules: [{ ...rule('a.test'), enabled: false }], access_control: { deny_list: ['a.test'] } }),
    ).toEqual([]);
  });
});

describe('no_proxy over the host of a rule or callback', () => {
  const rows: readonly [host: string, entry: string, overlaps: boolean][] = [
    ['a.test', 'a.test', true],
    ['a.test', '.test', true],
    ['a.test', 'a.test:8443', true],
    ['*.a.test', 'x.a.test', true],
    ['*.a.test', 'a.test', false],
    ['a.test:443', 'a.test:8443', false],
    ['192.0.2.7', '192.0.2.0/24', true],
    ['192.0.2.7', '10.0.0.0/8', false],
  ];
  it.each(rows)('%s and %s is a warning: %s', (host, entry, overlaps) => {
    expect(reported({ rules: [rule(host)], no_proxy: ['other.test', entry] })).toEqual(
      overlaps ? ['?no_proxy.1 no_proxy_overlap'] : [],
    );
  });
  it('is reported where it was written', () => {
    const own = { ...rule('a.test'), no_proxy: ['a.test'] };
    expect(reported({ rules: [own] })).toEqual(['?rules.0.no_proxy.0 no_proxy_overlap']);
    expect(reported({ rules: [rule('a.test'), { ...own, enabled: false }] })).toEqual([]);
  });
});

describe('an entry that never takes effect', () => {
  const paths = { match_paths: ['/v1/*'] };
  const rows: readonly [name: string, config: object, reported: readonly string[]][] = [
    [
      'a callback after a rule',
      { rules: [rule('a.test')], callbacks: [callback('a.test')] },
      ['?callbacks.0.match_hosts.0 shadowed'],
    ],
    [
      'a callback after a rule on paths',
      { rules: [{ ...rule('*.a.test'), ...paths }], callbacks: [callback('x.a.test')] },
      ['?callbacks.0.match_hosts.0 shadowed'],
    ],
    ['a callback beside a rule', { rules: [rule('x.a.test')], callbacks: [callback('*.a.test')] }, []],
    [
      'a callback after a callback',
      { callbacks: [callback('*.a.test'), callback('x.a.test')] },
      ['?callbacks.1.match_hosts.0 shadowed'],
    ],
    [
      'a rule after a rule for every path',
      { rules: [rule('a.test'), { ...rule('b.test', 'a.test'), ...paths }] },
      ['?rules.1.match_hosts.1 shadowed'],
    ],
    ['a rule after a rule on paths', { rules: [{ ...rule('a.test'), ...paths }, rule('a.test')] }, []],
    ['a rule after a disabled one', { rules: [{ ...rule('a.test'), enabled: false }, rule('a.test')] }, []],
    ['a rule on another port', { rules: [rule('a.test:8443'), rule('a.test')] }, []],
    [
      'a rule on the same port',
      { rules: [rule('a.test'), rule('a.test:8443')] },
      ['?rules.1.match_hosts.0 shadowed'],
    ],
    ['a host twice in one rule', { rules: [rule('a.test', '*.test')] }, []],
  ];
  it.each(rows)('%s', (_name, config, expected) => expect(reported(config)).toEqual(expected));
});

describe('a document at its limits', () => {
  it('is compared without a second’s work, however its entries overlap', () => {
    const rules = Array.from({ length: 1000 }, (_, i) =>
      rule(...Array.from({ length: 10 }, (_, j) => `*.a.test:${i * 10 + j + 1}`)),
    );
    const config = { rules, no_proxy: Array.from({ length: 1000 }, (_, i) => `*.a.test:${i + 1}`) };
    const before = process.cpuUsage();
    expect(reported(config)).toHaveLength(101);
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
  });
});

describe('a document of ten thousand hosts and as many entries against them', () => {
  const many = (count: number, text: (i: number) => string): string[] =>
    Array.from({ length: count }, (_, i) => text(i));
  const v6 = (prefix: string, i: number): string => `${prefix}:${(i >> 8).toString(16)}:${i & 0xff}::1`;
  const long = (i: number): string => `h${i}${'.a'.repeat(110)}`;
  const rows: readonly [
    name: string,
    host: (i: number) => string,
    entry: (i: number) => string,
    count: number,
  ][] = [
    ['of IPv6', (i) => `[${v6('2001:db8', i)}]`, (i) => v6('2400:1', i), 10_000],
    ['of IPv4', (i) => `11.0.${i >> 8}.${i & 0xff}`, (i) => `12.0.${i >> 8}.${i & 0xff}/32`, 10_000],
    ['of names with many labels', (i) => `*.${long(i)}:${i + 1}`, (i) => `*.${long(i)}:${i + 20_000}`, 2_000],
  ];
  it.each(rows)('is compared without a walk for each pair: %s', (_name, host, entry, count) => {
    const per = count / 10;
    const rules = Array.from({ length: 10 }, (_, r) => ({
      ...rule(...many(per, (i) => host(r * per + i))),
      no_proxy: many(per, (i) => entry(r * per + i)),
    }));
    const config = { rules, access_control: { deny_list: many(per, (i) => entry(i)) } };
    const before = process.threadCpuUsage();
    expect(reported(config)).toEqual([]);
    const { user, system } = process.threadCpuUsage(before);
    // Several times what it takes, and a part of what a walk for each pair would.
    expect(user + system).toBeLessThan(2_000_000);
  });
});

it('headers are at most 1,000 in all, those of callbacks included', () => {
  const many = Array.from({ length: 64 }, (_, i) => ({ name: `X-${i}`, type: 'plaintext', value: 'v' }));
  const full = Array.from({ length: 15 }, (_, i) => ({ match_hosts: [`h${i}.test`], headers: many }));
  const asks = (count: number): object => ({ ...callback('c.test'), request_headers: many.slice(0, count) });
  expect(reported({ rules: full, callbacks: [asks(40)] })).toEqual([]);
  expect(reported({ rules: full, callbacks: [asks(41)] })).toEqual(['rules too_long']);
});

describe('the message for', () => {
  const rows: readonly (readonly [string, object, string])[] = [
    [
      'of a wildcard over a public suffix',
      { rules: [rule('*.github.io')] },
      'Names under github.io belong to many owners; use a narrower wildcard, as in *.example.github.io, or have the operator list this one in allow_wildcards',
    ],
    [
      'of a host that is denied',
      { rules: [rule('a.test')], access_control: { deny_list: ['.test'] } },
      'The entry .test of the deny_list denies this host; remove one of the two',
    ],
    [
      'of a host that is denied in part',
      { rules: [rule('*.a.test')], access_control: { deny_list: ['x.a.test'] } },
      'The entry x.a.test of the deny_list denies a part of this',
    ],
    [
      'of a host that is not allowed',
      { rules: [rule('a.test')], access_control: { allow_list: ['b.test'] } },
      'The allow_list does not contain this host; add it there',
    ],
    [
      'of a host that is allowed in part',
      { rules: [rule('*.a.test')], access_control: { allow_list: ['x.a.test'] } },
      'The allow_list allows only a part of this, with the entry x.a.test',
    ],
    [
      'of an entry of no_proxy',
      { rules: [rule('b.test'), rule('a.test')], no_proxy: ['a.test'] },
      'no_proxy wins: a.test is never intercepted, although rules[1] matches it',
    ],
    [
      'of a rule without effect',
      { rules: [rule('a.test'), rule('a.test')] },
      'No effect: rules[0] comes first for this host',
    ],
  ];
  it.each(rows)('%s', (_, config, message) => {
    const parsed = parseProxyConfig(config);
    expect((parsed.ok ? parsed.warnings : parsed.issues).map(({ msg }) => msg)).toEqual([message]);
  });
});

describe('stars before the end of a path', () => {
  // A rule has at most 100 paths; all are different, so that only their number is reported.
  const withPaths = (count: number, path: (i: number) => string): object => ({
    rules: Array.from({ length: Math.ceil(count / 100) }, (_, i) => ({
      ...rule(`h${i}.test`),
      match_paths: Array.from({ length: Math.min(100, count - i * 100) }, (__, k) => path(i * 100 + k)),
    })),
  });

  it.each([
    ['a thousand of one segment each', 1000, (i: number): string => `/a${i}/*/b`],
    ['ten between two stars', 10, (i: number): string => `/a${i}/*b*`],
    ['as many as fit at the end', 2000, (i: number): string => `/a${i}/*`],
  ])('may be %s', (_, count, path) => {
    expect(reported(withPaths(count, path))).toEqual([]);
  });

  it.each([
    [1001, (i: number): string => `/a${i}/*/b`, 'with a star before their end, as in /a/*/b,', 1000],
    [11, (i: number): string => `/a${i}/*b*`, 'with text between two stars in one segment, as in /a*b*,', 10],
  ])('and not %i', (count, path, kind, max) => {
    const parsed = parseProxyConfig(withPaths(count, path));
    const msg = `All match_paths ${kind} together must have at most ${max} entries; they have ${count}`;
    expect(parsed.ok ? [] : parsed.issues).toEqual([{ loc: ['rules'], msg, type: 'too_long' }]);
  });

  it('and with too many nothing else is reported', () => {
    const config = { ...withPaths(11, (i) => `/a${i}/*b*`), callbacks: [callback('*.com')] };
    expect(reported(config)).toEqual(['rules too_long']);
  });
});

describe('a document of which some entries cannot be read', () => {
  it('is compared without them', () => {
    const rules = [rule('a_*.test'), rule('*.com')];
    const access = { deny_list: ['a.test', 'b*.test'] };
    expect(reported({ rules, access_control: access, no_proxy: ['*'] }).toSorted()).toEqual([
      'access_control.deny_list.1 value_error',
      'no_proxy.0 value_error',
      'rules.0.match_hosts.0 value_error',
      'rules.1.match_hosts.0 value_error',
    ]);
  });
});
