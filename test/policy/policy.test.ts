// What is decided: precedence, wildcards, ports, paths, no_proxy and access_control, as tables of questions.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { type Address, parseAddress } from '../../src/base/address.ts';
import { type Authority, parseAuthority } from '../../src/policy/authority/authority.ts';
import { compileProxyConfig, emptyPolicy } from '../../src/policy/compile.ts';
import type { Decision, Policy } from '../../src/policy/policy.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';
import { anyCharacter } from '../support/any-character.ts';
import { runs } from '../support/run-size.ts';

const headers = [{ name: 'X-Key', type: 'plaintext', value: 'v' }];

function rule(
  name: string,
  hosts: readonly string[],
  paths: readonly string[] = [],
  more: object = {},
): object {
  return { name, match_hosts: hosts, match_paths: paths, headers, ...more };
}

function callback(name: string, hosts: readonly string[], more: object = {}): object {
  return { name, match_hosts: hosts, url: 'http://127.0.0.1:9444/', ttl_seconds: 60, ...more };
}

function policyOf(config: object): Policy {
  const parsed = parseProxyConfig(config);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const compiled = compileProxyConfig(parsed.value, (name) => new Secret(`value-of-${name}`), 7);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  return compiled.value;
}

function authorityOf(text: string): Authority {
  const authority = parseAuthority(text, 443);
  if (typeof authority === 'string') throw new Error(authority);
  return authority;
}

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(text);
  return address;
}

/** One word for a decision: the rule's or callback's name, or the reason. */
function reported(decision: Decision): string {
  if (decision.kind !== 'intercept') return decision.reason;
  if (decision.apply === 'rule') return `rule ${decision.rule.name}`;
  return decision.apply === 'callback' ? `callback ${decision.callback.name}` : decision.reason;
}

type Row = readonly [authority: string, target: string, reported: string];

describe('precedence:', () => {
  const policy = policyOf({
    rules: [
      rule('off', ['api.test'], [], { enabled: false }),
      rule('v1', ['api.test'], ['/v1/*']),
      rule('v1 again', ['api.test', '*.api.test'], ['/v1/*', '/v2/*']),
      rule('rest of deep', ['*.deep.api.test']),
      rule('ported', ['port.test:8443']),
      rule('first', ['both.test']),
      rule('second', ['both.test']),
    ],
    callbacks: [
      callback('off', ['cb.test'], { enabled: false }),
      callback('of the rule’s host', ['api.test', 'port.test']),
      callback('wide', ['*.cb.test', 'cb.test']),
      callback('narrow', ['a.cb.test']),
    ],
  });
  const rows: readonly Row[] = [
    ['api.test', '/v1/x', 'rule v1'],
    ['api.test', '/v2/x', 'rule v1 again'],
    ['api.test', '/v3/x', 'no_path_match'],
    ['api.test:8443', '/v1/x', 'rule v1'],
    ['a.api.test', '/v1/x', 'rule v1 again'],
    ['a.api.test', '/other', 'no_path_match'],
    ['x.deep.api.test', '/other', 'rule rest of deep'],
    ['x.deep.api.test', '/v2/y', 'rule v1 again'],
    ['both.test', '/', 'rule first'],
    ['port.test:8443', '/', 'rule ported'],
    ['port.test', '/', 'callback of the rule’s host'],
    ['cb.test', '/anything/%2e%2e', 'callback wide'],
    ['a.cb.test', '/', 'callback wide'],
    ['other.test', '/', 'no_match'],
    ['xapi.test', '/v1/x', 'no_match'],
  ];
  it.each(rows)('%s %s -> %s', (authority, target, expected) => {
    expect(reported(policy.decide(authorityOf(authority), target))).toBe(expected);
  });

  it('a request for the whole server gets nothing', () => {
    expect(reported(policy.decide(authorityOf('both.test'), '*'))).toBe('no_path_match');
    expect(reported(policy.decide(authorityOf('cb.test'), '*'))).toBe('no_path_match');
    expect(reported(policy.decide(authorityOf('other.test'), '*'))).toBe('no_match');
  });

  it('disabled entries count for nothing', () => {
    const off = policyOf({
      rules: [rule('off', ['a.test'], [], { enabled: false, no_proxy: ['b.test'] })],
      callbacks: [callback('on', ['a.test', 'b.test'])],
    });
    expect(reported(off.decide(authorityOf('a.test'), '/'))).toBe('callback on');
    expect(reported(off.decide(authorityOf('b.test'), '/'))).toBe('callback on');
    expect([off.rules.length, off.callbacks.length]).toEqual([0, 1]);
    expect(off.noProxyEntries).toEqual([]);
  });
});

describe('wildcards, addresses and ports:', () => {
  const policy = policyOf({
    rules: [
      rule('wild', ['*.good.test']),
      rule('four', ['192.0.2.7']),
      rule('six', ['[2001:db8::7]:8443']),
      rule('local', ['*.localhost']),
    ],
  });
  const rows: readonly (readonly [authority: string, cover: object])[] = [
    ['a.good.test', { kind: 'intercept', by: 'rule', exactName: false }],
    ['a.b.good.test:8443', { kind: 'intercept', by: 'rule', exactName: false }],
    ['A.GOOD.Test.', { kind: 'intercept', by: 'rule', exactName: false }],
    ['good.test', { kind: 'tunnel', reason: 'no_match', portListed: false }],
    ['notgood.test', { kind: 'tunnel', reason: 'no_match', portListed: false }],
    ['192.0.2.7', { kind: 'intercept', by: 'rule', exactName: true }],
    ['192.0.2.8', { kind: 'tunnel', reason: 'no_match', portListed: false }],
    ['[2001:DB8::0:7]:8443', { kind: 'intercept', by: 'rule', exactName: true }],
    ['[2001:db8::7]', { kind: 'tunnel', reason: 'no_match', portListed: false }],
    ['api.localhost:9443', { kind: 'intercept', by: 'rule', exactName: false }],
    ['localhost:9443', { kind: 'tunnel', reason: 'no_match', portListed: false }],
  ];
  it.each(rows)('%s', (authority, cover) => expect(policy.coverOf(authorityOf(authority))).toEqual(cover));

  it('an exact name counts as exact, whichever rule holds it', () => {
    const both = policyOf({ rules: [rule('wild', ['*.good.test']), rule('exact', ['a.good.test'])] });
    expect(both.coverOf(authorityOf('a.good.test'))).toMatchObject({ exactName: true });
    expect(both.coverOf(authorityOf('b.good.test'))).toMatchObject({ exactName: false });
  });
  it('a callback counts as exact by its own patterns', () => {
    const both = policyOf({
      callbacks: [callback('wild', ['*.good.test']), callback('exact', ['a.good.test'])],
    });
    expect(both.coverOf(authorityOf('a.good.test'))).toEqual({
      kind: 'intercept',
      by: 'callback',
      exactName: false,
    });
  });
});

describe('on a host with rules on paths', () => {
  const policy = policyOf({
    rules: [
      rule('admin', ['api.test'], ['/v1/admin/*']),
      rule('v1', ['api.test'], ['/v1/*', '/group%2Fproject/*']),
      rule('any', ['other.test']),
    ],
  });
  const rows: readonly Row[] = [
    ['api.test', '/v1/x', 'rule v1'],
    ['api.test', '/v1/', 'rule v1'],
    ['api.test', '/v1', 'no_path_match'],
    ['api.test', '/V1/x', 'no_path_match'],
    ['api.test', '/v1/admin/x', 'rule admin'],
    ['api.test', '/v1/admin', 'rule v1'],
    ['api.test', '/v1/x?y=/../%2e%2e', 'rule v1'],
    ['api.test', '/admin?/v1/', 'no_path_match'],
    ['api.test', '/v1/x%2Fy', 'rule v1'],
    ['api.test', '/v1//x', 'rule v1'],
    ['api.test', '/v1/x;y=1', 'rule v1'],
    ['api.test', '/v1/a%20b', 'rule v1'],
    ['api.test', '/v1/100%25', 'rule v1'],
    ['api.test', '/v1/k%C3%A4se', 'rule v1'],
    ['api.test', '/group%2Fproject/x', 'rule v1'],
    ['api.test', '/group/project/x', 'ambiguous_path'],
    ['api.test', '/v1//admin/x', 'ambiguous_path'],
    ['api.test', '/v1/%61dmin/x', 'ambiguous_path'],
    ['api.test', '/v1/admin%2fx', 'ambiguous_path'],
    ['api.test', '/v1%2fx', 'ambiguous_path'],
    ['api.test', '/v1%252fx', 'ambiguous_path'],
    ['api.test', '/v1\\x', 'ambiguous_path'],
    ['api.test', '/%76%31/x', 'ambiguous_path'],
    ['api.test', '//v1/x', 'ambiguous_path'],
    ['api.test', '/v1;x=/admin', 'ambiguous_path'],
    ['api.test', '/v1/../admin', 'ambiguous_path'],
    ['api.test', '/v1/./x', 'ambiguous_path'],
    ['api.test', '/v1/%2e%2e/admin', 'ambiguous_path'],
    ['api.test', '/v1/..%2fadmin', 'ambiguous_path'],
    ['api.test', '/v1/..%5cadmin', 'ambiguous_path'],
    ['api.test', '/v1/%252e%252e/admin', 'ambiguous_path'],
    ['api.test', '/v1/..;/admin', 'ambiguous_path'],
    ['api.test', '/v1/x;%c0%af..%c0%afadmin', 'ambiguous_path'],
    ['api.test', '/v1/x;%00', 'ambiguous_path'],
    ['api.test', '/v1/x;%0d%0aEvil:1', 'ambiguous_path'],
    ['api.test', '/v1/x;%7f', 'ambiguous_path'],
    ['api.test', '/elsewhere/..', 'ambiguous_path'],
    ['api.test', '/v1/%00', 'ambiguous_path'],
    ['api.test', '/v1/%c0%ae%c0%ae/x', 'ambiguous_path'],
    ['api.test', '/v1/%zz', 'ambiguous_path'],
    ['api.test', '/v1#/../admin', 'ambiguous_path'],
    ['api.test', '', 'ambiguous_path'],
    ['api.test', 'http://api.test/v1/x', 'ambiguous_path'],
    ['other.test', '/v1/../admin/%zz', 'rule any'],
  ];
  it.each(rows)('%s %s -> %s', (authority, target, expected) => {
    expect(reported(policy.decide(authorityOf(authority), target))).toBe(expected);
  });
  describe('an encoded ? or # may end the path at the upstream:', () => {
    const repos = policyOf({
      rules: [
        rule('contents', ['api.test'], ['/repos/*/contents']),
        rule('inner', ['api.test'], ['/x/*/y']),
        rule('any x', ['api.test'], ['/x/*']),
      ],
    });
    it.each<[target: string, reported: string]>([
      ['/repos/adm/contents', 'rule contents'],
      ['/repos/adm%3f/contents', 'ambiguous_path'],
      ['/repos/adm%23/contents', 'ambiguous_path'],
      ['/repos/adm%253F/contents', 'ambiguous_path'],
      ['/repos/adm%3bx%3f/contents', 'ambiguous_path'],
      ['/x/C%23', 'rule any x'],
      ['/x/C%3Fy', 'rule any x'],
      ['/x/..%3fy', 'ambiguous_path'],
      ['/x/a?/contents', 'rule any x'],
      // And may not: most upstreams split the query off before they decode.
      ['/x/a%3f%2fy', 'ambiguous_path'],
      ['/x/a;y%2fy', 'ambiguous_path'],
      ['/z/a%3f', 'no_path_match'],
    ])('%s -> %s', (target, expected) => {
      expect(reported(repos.decide(authorityOf('api.test'), target))).toBe(expected);
    });
  });
  describe('a path is also read under Unicode normalization:', () => {
    const names = policyOf({
      rules: [
        rule('admin', ['api.test'], ['/v1/admin/*']),
        rule('v1', ['api.test'], ['/v1/*']),
        rule('wide', ['api.test'], [encodeURI('/資料/*'), encodeURI('/ガ/*')]),
        rule('half', ['api.test'], [encodeURI('/\uff8b/*')]),
      ],
    });
    it.each<[target: string, reported: string]>([
      ['/v1/見積書.pdf', 'rule v1'],
      ['/v1/消費税８％10月.pdf', 'rule v1'],
      ['/v1/か\u3099く／１.txt', 'rule v1'],
      ['/v1/見積？.pdf', 'rule v1'],
      ['/資料/１月；２月', 'rule wide'],
      ['/\uff8b/x', 'rule half'],
      ['/\u30d2/x', 'no_path_match'],
      ['/v1/ａｄｍｉｎ/x', 'ambiguous_path'],
      ['/v1/admin／x', 'ambiguous_path'],
      ['/v1/％61dmin/x', 'ambiguous_path'],
      ['/v１/x', 'ambiguous_path'],
      ['/v1；x/y', 'ambiguous_path'],
      ['/\uff76\uff9e/x', 'ambiguous_path'],
      ['/ア／v1/x', 'no_path_match'],
      ['/v1/‥/x', 'ambiguous_path'],
      ['/v1/.. /x', 'ambiguous_path'],
    ])('%s -> %s', (path, expected) => {
      const authority = authorityOf('api.test');
      // Twice: from the readings, and from what is remembered of the path.
      for (let i = 0; i < 2; i += 1)
        expect(reported(names.decide(authority, encodeURI(path)))).toBe(expected);
    });
  });
  it('a rule for every path has its place in their order', () => {
    const mixed = policyOf({ rules: [rule('v1', ['a.test'], ['/v1/*']), rule('rest', ['a.test'])] });
    expect(reported(mixed.decide(authorityOf('a.test'), '/v1/x'))).toBe('rule v1');
    expect(reported(mixed.decide(authorityOf('a.test'), '/v2/x'))).toBe('rule rest');
    expect(reported(mixed.decide(authorityOf('a.test'), '/v2/%2e%2e/v1'))).toBe('ambiguous_path');
    expect(reported(mixed.decide(authorityOf('a.test'), '/%761/x'))).toBe('ambiguous_path');
  });
});

describe('no_proxy', () => {
  const policy = policyOf({
    rules: [rule('wild', ['*.good.test'], [], { no_proxy: ['inner.good.test:8443'] })],
    callbacks: [callback('cb', ['cb.test'])],
    no_proxy: ['direct.good.test', '.cb.test', 'cb.test:8443', '10.0.0.0/8', '::1', 'direct.good.test'],
  });
  const rows: readonly Row[] = [
    ['direct.good.test', '/', 'no_proxy'],
    ['a.good.test', '/', 'rule wild'],
    ['inner.good.test:8443', '/', 'no_proxy'],
    ['inner.good.test', '/', 'rule wild'],
    ['cb.test', '/', 'callback cb'],
    ['cb.test:8443', '/', 'no_proxy'],
    ['a.cb.test', '/', 'no_proxy'],
    ['10.1.1.1', '/', 'no_proxy'],
    ['[::1]', '/', 'no_proxy'],
    ['11.1.1.1', '/', 'no_match'],
  ];
  it.each(rows)('%s %s -> %s', (authority, target, expected) => {
    expect(reported(policy.decide(authorityOf(authority), target))).toBe(expected);
  });
  it('is given to clients as it was written, each entry once', () => {
    expect(policy.noProxyEntries).toEqual([
      ...['direct.good.test', '.cb.test', 'cb.test:8443', '10.0.0.0/8', '::1', 'inner.good.test:8443'],
    ]);
  });
});

describe('access_control', () => {
  const allowing = policyOf({
    rules: [rule('ruled', ['api.test'], ['/v1/*'])],
    no_proxy: ['direct.test', 'hidden.test'],
    access_control: { allow_list: ['api.test', 'direct.test', 'ssh.test:22', '*.wide.test', '192.0.2.0/24'] },
  });
  const denying = policyOf({
    rules: [rule('ruled', ['api.test'])],
    no_proxy: ['evil.test'],
    access_control: {
      deny_list: ['evil.test', '*.bad.test', '198.51.100.0/24', 'api.test:22', '203.0.113.5:25'],
    },
  });
  const policies = { allowing, denying };
  const rows: readonly [policy: keyof typeof policies, authority: string, reported: string][] = [
    ['allowing', 'api.test', 'rule ruled'],
    ['allowing', 'direct.test', 'no_proxy'],
    ['allowing', 'hidden.test', 'access_denied'],
    ['allowing', 'other.test', 'access_denied'],
    ['allowing', 'ssh.test:22', 'no_match'],
    ['allowing', 'ssh.test', 'access_denied'],
    ['allowing', 'a.wide.test', 'no_match'],
    ['allowing', 'wide.test', 'access_denied'],
    ['allowing', '192.0.2.9', 'no_match'],
    ['allowing', '192.0.3.9', 'access_denied'],
    ['denying', 'evil.test', 'access_denied'],
    ['denying', 'EVIL.test.', 'access_denied'],
    ['denying', 'a.bad.test', 'access_denied'],
    ['denying', 'bad.test', 'no_match'],
    ['denying', 'api.test', 'rule ruled'],
    ['denying', 'api.test:22', 'access_denied'],
    ['denying', '198.51.100.9', 'access_denied'],
    ['denying', '[::ffff:198.51.100.9]', 'access_denied'],
    ['denying', '203.0.113.5:25', 'access_denied'],
    ['denying', '203.0.113.5', 'no_match'],
  ];
  it.each(rows)('%s: %s -> %s', (name, authority, expected) => {
    const policy = policies[name];
    expect(reported(policy.decide(authorityOf(authority), '/v1/x'))).toBe(expected);
    const cover = policy.coverOf(authorityOf(authority));
    expect(cover.kind === 'refuse' ? cover.reason : '').toBe(expected === 'access_denied' ? expected : '');
  });
  it('says which port the allow_list names', () => {
    expect(allowing.coverOf(authorityOf('ssh.test:22'))).toMatchObject({ kind: 'tunnel', portListed: true });
    expect(allowing.coverOf(authorityOf('a.wide.test:22'))).toMatchObject({
      kind: 'tunnel',
      portListed: false,
    });
  });
  it('says why, naming the entry', () => {
    expect(denying.coverOf(authorityOf('a.bad.test'))).toMatchObject({
      detail: expect.stringContaining('*.bad.test'),
    });
    expect(allowing.coverOf(authorityOf('x.test'))).toMatchObject({
      detail: expect.stringContaining('allow_list'),
    });
  });
  it('denies what a name resolves to, by the deny_list alone', () => {
    expect(denying.deniesAddress(addressOf('198.51.100.9'), 443)).toBe(true);
    expect(denying.deniesAddress(addressOf('::ffff:198.51.100.9'), 443)).toBe(true);
    expect(denying.deniesAddress(addressOf('203.0.113.5'), 25)).toBe(true);
    expect(denying.deniesAddress(addressOf('203.0.113.5'), 443)).toBe(false);
    expect(denying.deniesAddress(addressOf('192.0.2.1'), 443)).toBe(false);
    expect(allowing.deniesAddress(addressOf('192.0.3.1'), 443)).toBe(false);
  });
});

describe('a policy', () => {
  it('that is empty tunnels everything', () => {
    const empty = emptyPolicy(3);
    expect(reported(empty.decide(authorityOf('a.test'), '/'))).toBe('no_match');
    expect(empty.deniesAddress(addressOf('10.0.0.1'), 443)).toBe(false);
    expect(empty).toMatchObject({ revision: 3, noProxyEntries: [], rules: [], callbacks: [] });
  });

  it('decides the same again, and after its cache is emptied', () => {
    const policy = policyOf({
      rules: [rule('wild', ['*.good.test'], ['/v1/*']), rule('exact', ['a.good.test'])],
    });
    const asked = authorityOf('a.good.test');
    const first = policy.decide(asked, '/v1/x');
    for (let i = 0; i < 2000; i += 1)
      expect(reported(policy.decide(authorityOf(`n${i}.good.test`), '/v1/x'))).toBe('rule wild');
    expect(policy.decide(asked, '/v1/x')).toBe(first);
    expect(reported(policy.decide(asked, '/v2'))).toBe('rule exact');
  });

  it('remembers what a path led to, and decides the same after it has forgotten', () => {
    const rules = [rule('v1', ['*.good.test'], ['/v1/*']), rule('v2', ['b.good.test'], ['/v2/*'])];
    const policy = policyOf({ rules });
    const targetOf = (i: number): string =>
      [`/v1/${i}`, `/v2/${i}`, `/v3/${i}?q=/v1/`, `/v1/../${i}`][i % 4] ?? '';
    const ask = (i: number): string[] =>
      ['a.good.test', 'b.good.test'].map((host) => reported(policy.decide(authorityOf(host), targetOf(i))));
    const first = Array.from({ length: 3_000 }, (_, i) => ask(i));
    expect(first.slice(0, 4)).toEqual([
      ['rule v1', 'rule v1'],
      ['no_path_match', 'rule v2'],
      ['no_path_match', 'no_path_match'],
      ['ambiguous_path', 'ambiguous_path'],
    ]);
    expect(first.every((row, i) => row.join() === first[i % 4]?.join())).toBe(true);
    expect(Array.from({ length: 3_000 }, (_, i) => ask(i))).toEqual(first);
  });

  it.each([
    ['a path', '/a/../b', true],
    ['the longest path', `/../${'x'.repeat(252)}`, true],
    ['a longer one', `/../${'x'.repeat(253)}`, false],
    ['a query', '/a/../b?key=value', false],
  ])('remembers %s: %s? %s', (_, target, isRemembered) => {
    const policy = policyOf({ rules: [rule('v1', ['a.test'], ['/v1/*'])] });
    // Each refusal is made anew, unless it is remembered.
    const decide = (at: string): Decision => policy.decide(authorityOf('a.test'), at);
    const refused = decide(target);
    expect(refused).toMatchObject({ kind: 'refuse', reason: 'ambiguous_path' });
    expect(decide(target) === refused).toBe(isRemembered);
    expect(decide(target)).toEqual(refused);
  });

  it('remembers a bounded number of paths, of all hosts together', () => {
    const policy = policyOf({ rules: [rule('v1', ['a.test'], ['/v1/*']), rule('b', ['b.test'], ['/b/*'])] });
    const decide = (host: string, i: number): Decision => policy.decide(authorityOf(host), `/${i}/../b`);
    const first = decide('a.test', 0);
    for (let i = 1; i < 512; i += 1) decide('a.test', i);
    for (let i = 0; i < 512; i += 1) decide('b.test', i);
    expect(decide('a.test', 0)).toBe(first);
    decide('b.test', 512);
    expect(decide('a.test', 0)).not.toBe(first);
    expect(decide('a.test', 0)).toEqual(first);
  });

  it('does not share what it remembers with another policy', () => {
    const [one, other] = [
      policyOf({ rules: [rule('one', ['a.test'], ['/v1/*'])] }),
      policyOf({ rules: [rule('other', ['a.test'], ['/v1/*'])] }),
    ];
    for (const _ of [1, 2])
      expect([one, other].map((policy) => reported(policy.decide(authorityOf('a.test'), '/v1/x')))).toEqual([
        'rule one',
        'rule other',
      ]);
  });

  it('holds no more for many hosts than for one, however many patterns they share', () => {
    const wide = Array.from({ length: 98 }, (_, r) =>
      rule(
        `wide ${r}`,
        ['*.good.test'],
        Array.from({ length: 100 }, (__, i) => `/r${r}/p${i}/*`),
      ),
    );
    const own = Array.from({ length: 40 }, (_, i) => rule(`own ${i}`, [`h${i}.good.test`], ['/own/*']));
    const policy = policyOf({ rules: [...own, ...wide] });
    setFlagsFromString('--expose-gc');
    const heapBytes = (): number => {
      runInNewContext('gc')();
      return process.memoryUsage().heapUsed;
    };
    const ask = (i: number): string =>
      reported(policy.decide(authorityOf(`h${i}.good.test`), i % 2 === 0 ? '/own/x' : '/r97/p99/x'));
    ask(0);
    const before = heapBytes();
    for (let i = 0; i < 40; i += 1) expect(ask(i)).toBe(i % 2 === 0 ? `rule own ${i}` : 'rule wide 97');
    // An index of the paths for each host would take 200 MiB.
    expect(heapBytes() - before).toBeLessThan(8 * 2 ** 20);
    expect(ask(1)).toBe('rule wide 97');
  });

  it('gives the secrets of every rule on a host, the same array each time', () => {
    const secret = (name: string): object => ({ name: 'X', type: 'workspace_secret', value: `{${name}}` });
    const policy = policyOf({
      rules: [
        rule('a', ['api.test'], ['/a'], { headers: [secret('A')] }),
        rule('b', ['api.test'], ['/b'], { headers: [secret('B')] }),
        rule('c', ['other.test'], [], { headers: [secret('C')] }),
      ],
    });
    const secrets = policy.secretsFor(authorityOf('api.test'));
    expect(secrets.map((value) => [value.equals('value-of-A'), value.equals('value-of-B')])).toEqual([
      [true, false],
      [false, true],
    ]);
    expect(policy.secretsFor(authorityOf('API.test:443'))).toBe(secrets);
    expect(policy.secretsFor(authorityOf('none.test'))).toEqual([]);
  });

  it('decides on any bytes without a throw, and never for a path with a dot segment', () => {
    const policy = policyOf({ rules: [rule('v1', ['api.test'], ['/v1/*', '/a*b/*c', '/%2525*'])] });
    const unit = fc.oneof(
      fc.constantFrom(
        '%',
        '2',
        'e',
        '/',
        '.',
        '\\',
        ';',
        '?',
        '#',
        '*',
        '%2e',
        '%2f',
        '%25',
        'v1',
        'a',
        'b',
        'c',
      ),
      anyCharacter,
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 20 }), (parts) => {
        const target = `/${parts.join('')}`;
        const [path = ''] = target.split('?');
        const decision = reported(policy.decide(authorityOf('api.test'), target));
        expect(['rule v1', 'no_path_match', 'ambiguous_path']).toContain(decision);
        if (/(^|\/)(\.|%2e){1,2}(\/|$)/i.test(path)) expect(decision).toBe('ambiguous_path');
      }),
      { numRuns: runs(10_000) },
    );
  });

  it('cannot be changed', () => {
    const policy = policyOf({ rules: [rule('a', ['a.test'])] });
    const decision = policy.decide(authorityOf('a.test'), '/');
    expect(Object.isFrozen(policy) && Object.isFrozen(decision)).toBe(true);
    expect(decision).toMatchObject({ apply: 'rule' });
    if (decision.kind === 'intercept' && decision.apply === 'rule')
      expect(Object.isFrozen(decision.rule) && Object.isFrozen(decision.rule.headers)).toBe(true);
  });
});
