// The document as an author writes it: every issue at once, each with its path and type, none repeating a value.
import { inspect } from 'node:util';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import { runs } from '../../support/run-size.ts';

const header = { name: 'X-Key', type: 'plaintext', value: 'v' };
const rule = { match_hosts: ['api.test'], headers: [header] };
const callback = { match_hosts: ['cb.test'], url: 'https://cb.example.com/x', ttl_seconds: 60 };

/** Issues as `path type`, the form of the tables below. */
function issuesOf(input: unknown): readonly string[] {
  const parsed = parseProxyConfig(input);
  return parsed.ok ? [] : parsed.issues.map(({ loc, type }) => `${loc.join('.')} ${type}`);
}

const withRule = (more: object): object => ({ rules: [{ ...rule, ...more }] });
const withHeader = (more: object): object => withRule({ headers: [{ ...header, ...more }] });
const withCallback = (more: object): object => ({ callbacks: [{ ...callback, ...more }] });
const many = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

describe('a document is accepted:', () => {
  const rows: readonly [name: string, input: unknown][] = [
    ['empty', {}],
    ['with a rule', { rules: [rule] }],
    ['with a callback', { callbacks: [callback] }],
    [
      'with everything',
      {
        rules: [
          {
            name: 'all',
            description: 'every key',
            enabled: true,
            env_vars: { GH_TOKEN: 'proxy-injected' },
            match_hosts: ['api.test', '*.api.test:8443', '[::1]'],
            match_paths: ['/v1/*'],
            no_proxy: ['x.test'],
            scrub: 'body',
            headers: [
              { name: 'Authorization', type: 'workspace_secret', value: 'Basic {USER}{PASS}' },
              { name: 'X-Opaque', type: 'opaque', value: 's3cret' },
              header,
            ],
          },
        ],
        callbacks: [
          {
            ...callback,
            name: 'cb',
            description: 'd',
            enabled: false,
            request_headers: [header, { name: 'X-Shared', type: 'opaque', value: 's' }],
          },
        ],
        no_proxy: ['localhost', '::1', '10.0.0.0/8', '.internal'],
        access_control: { deny_list: ['evil.test', '192.0.2.0/24'] },
      },
    ],
    ['with no paths', withRule({ match_paths: [] })],
    [
      'with the shortest and the longest ttl',
      { callbacks: [callback, { ...callback, match_hosts: ['b.test'], ttl_seconds: 3600 }] },
    ],
    ['with a callback on loopback', withCallback({ url: 'http://127.0.0.1:9444/credentials?x=1' })],
    ['with a callback on IPv6', withCallback({ url: 'http://[::1]:9444' })],
    ['with 1,000 rules', { rules: many(1000, (i) => ({ ...rule, match_hosts: [`h${i}.test`] })) }],
    [
      'with 1,000 paths with a star before their end',
      {
        rules: many(10, (r) => ({
          ...rule,
          match_hosts: [`r${r}.test`],
          match_paths: many(100, (i) => `/${r}/*/${i}/*`),
        })),
      },
    ],
    [
      'with 10 paths with text between stars of one segment',
      withRule({ match_paths: many(10, (i) => `/*zz${i}*`) }),
    ],
    ['with 1,000 hosts', withRule({ match_hosts: many(1000, (i) => `h${i}.test`) })],
    [
      'with names that are special to JavaScript',
      withRule({
        headers: [
          { ...header, name: 'constructor' },
          { ...header, name: '__proto__' },
        ],
        env_vars: { constructor: 'x' },
      }),
    ],
  ];
  it.each(rows)('%s', (_name, input) => expect(parseProxyConfig(input)).toMatchObject({ ok: true }));
});

describe('a document is rejected:', () => {
  const rows: readonly [name: string, input: unknown, issues: readonly string[]][] = [
    ['null', null, [' dict_type']],
    ['a list', [], [' dict_type']],
    ['a string', '{}', [' dict_type']],
    ['an unknown key', { rule: [] }, ['rule extra_forbidden']],
    ['its envelope', { proxy_config: {} }, ['proxy_config extra_forbidden']],
    [
      'a rule that is not an object',
      { rules: [null, 5, 'x'] },
      ['rules.0 dict_type', 'rules.1 dict_type', 'rules.2 dict_type'],
    ],
    ['rules that are no list', { rules: rule }, ['rules list_type']],
    ['a rule without anything', { rules: [{}] }, ['rules.0.match_hosts missing', 'rules.0.headers missing']],
    ['a rule without hosts', withRule({ match_hosts: [] }), ['rules.0.match_hosts too_short']],
    ['a rule without headers', withRule({ headers: [] }), ['rules.0.headers too_short']],
    [
      'a host that is no string',
      withRule({ match_hosts: [5, ['a']] }),
      ['rules.0.match_hosts.0 string_type', 'rules.0.match_hosts.1 string_type'],
    ],
    ['one host for a list', withRule({ match_hosts: 'api.test' }), ['rules.0.match_hosts list_type']],
    ['every host', withRule({ match_hosts: ['*'] }), ['rules.0.match_hosts.0 value_error']],
    [
      'hosts under a public suffix',
      withRule({ match_hosts: ['*.com', '*.co.uk', '*.github.io'] }),
      [0, 1, 2].map((i) => `rules.0.match_hosts.${i} value_error`),
    ],
    [
      'a host of 301 characters',
      withRule({ match_hosts: ['a'.repeat(301)] }),
      ['rules.0.match_hosts.0 string_too_long'],
    ],
    [
      '1,001 hosts',
      withRule({ match_hosts: many(1001, (i) => `h${i}.test`) }),
      ['rules.0.match_hosts too_long'],
    ],
    ['1,001 rules', { rules: many(1001, () => rule) }, ['rules too_long']],
    ['101 callbacks', { callbacks: many(101, () => callback) }, ['callbacks too_long']],
    [
      '10,001 hosts in all',
      { rules: many(11, (r) => ({ ...rule, match_hosts: many(1000, (i) => `h${i}.r${r}.test`) })) },
      ['rules too_long'],
    ],
    [
      '10,001 paths and no_proxy entries in all',
      {
        rules: many(101, (r) => ({
          ...rule,
          match_hosts: [`r${r}.test`],
          match_paths: many(100, (i) => `/${i}`),
          no_proxy: many(100, (i) => `n${i}.r${r}.test`),
        })),
      },
      ['rules too_long', 'rules too_long'],
    ],
    [
      '1,001 paths with a star before their end',
      {
        rules: many(11, (r) => ({
          ...rule,
          match_hosts: [`r${r}.test`],
          match_paths: many(91, (i) => `/${r}/*/${i}/*`),
        })),
      },
      ['rules too_long'],
    ],
    [
      '11 paths with text between stars of one segment',
      withRule({ match_paths: many(11, (i) => `/*zz${i}*`) }),
      ['rules too_long'],
    ],
    [
      'a path without a slash',
      withRule({ match_paths: ['v1', '/ok'] }),
      ['rules.0.match_paths.0 value_error'],
    ],
    ['101 paths', withRule({ match_paths: many(101, (i) => `/${i}`) }), ['rules.0.match_paths too_long']],
    ['a rule of type aws', withRule({ type: 'aws' }), ['rules.0.type value_error']],
    ['a rule of type gcp', withRule({ type: 'gcp' }), ['rules.0.type value_error']],
    ['enabled in words', withRule({ enabled: 'yes' }), ['rules.0.enabled bool_type']],
    ['an empty name', withRule({ name: ' ' }), ['rules.0.name value_error']],
    ['a name of 129 characters', withRule({ name: 'a'.repeat(129) }), ['rules.0.name string_too_long']],
    ['a name with a terminal’s escape', withRule({ name: 'a\x1b[2J' }), ['rules.0.name value_error']],
    [
      'env_vars with odd names and values',
      withRule({ env_vars: { 'A B': 'x', OK: 'x', N: 'a\0' } }),
      ['rules.0.env_vars.A B value_error', 'rules.0.env_vars.N value_error'],
    ],
    ['env_vars that are no strings', withRule({ env_vars: { A: 1 } }), ['rules.0.env_vars.A string_type']],
    ['env_vars in a list', withRule({ env_vars: ['A=1'] }), ['rules.0.env_vars dict_type']],
    [
      'a header without a type',
      withRule({ headers: [{ name: 'X', value: 'v' }] }),
      ['rules.0.headers.0.type missing'],
    ],
    [
      'a header of another type',
      withHeader({ type: 'Opaque' }),
      ['rules.0.headers.0.type union_tag_invalid'],
    ],
    ['a header of type null', withHeader({ type: null }), ['rules.0.headers.0.type union_tag_invalid']],
    ['a header with more keys', withHeader({ secret: 'x' }), ['rules.0.headers.0.secret extra_forbidden']],
    [
      'a value that is an object',
      withHeader({ value: { toString: 1 } }),
      ['rules.0.headers.0.value string_type'],
    ],
    ['a value that is a list', withHeader({ value: ['v'] }), ['rules.0.headers.0.value string_type']],
    ['a value without a string', withHeader({ value: undefined }), ['rules.0.headers.0.value missing']],
    [
      'a value with a line break',
      withHeader({ value: 'a\r\nX: y' }),
      ['rules.0.headers.0.value value_error'],
    ],
    [
      'an empty opaque value',
      withHeader({ type: 'opaque', value: '' }),
      ['rules.0.headers.0.value value_error'],
    ],
    [
      'an opaque value that is absent, which a file cannot leave to what is stored',
      withRule({ headers: [{ name: 'X', type: 'opaque', is_set: true }] }),
      ['rules.0.headers.0.value missing'],
    ],
    [
      'is_set in words',
      withHeader({ type: 'opaque', is_set: 'yes' }),
      ['rules.0.headers.0.is_set bool_type'],
    ],
    ['is_set on a plaintext', withHeader({ is_set: true }), ['rules.0.headers.0.is_set extra_forbidden']],
    [
      'an invalid opaque name and value, and the name twice',
      withRule({
        headers: [
          { name: 'a b', type: 'opaque', value: '' },
          { name: 'a b', type: 'opaque', value: 'v' },
        ],
      }),
      [
        ...['rules.0.headers.0.name value_error', 'rules.0.headers.0.value value_error'],
        ...['rules.0.headers.1.name value_error', 'rules.0.headers.1.name value_error'],
      ],
    ],
    [
      'a value of 8193 characters',
      withHeader({ value: 'a'.repeat(8193) }),
      ['rules.0.headers.0.value string_too_long'],
    ],
    ['a forbidden name', withHeader({ name: 'Transfer_Encoding' }), ['rules.0.headers.0.name value_error']],
    [
      'an invalid name and value',
      withHeader({ name: 'a b', value: '' }),
      ['rules.0.headers.0.name value_error', 'rules.0.headers.0.value value_error'],
    ],
    [
      'one header twice',
      withRule({ headers: [header, { ...header, name: 'x_KEY' }] }),
      ['rules.0.headers.1.name value_error'],
    ],
    [
      'a template without a secret',
      withHeader({ type: 'workspace_secret', value: 'Bearer X' }),
      ['rules.0.headers.0.value value_error'],
    ],
    [
      'a template with a stray brace',
      withHeader({ type: 'workspace_secret', value: '{A} {' }),
      ['rules.0.headers.0.value value_error'],
    ],
    [
      'a template with a space at its end',
      withHeader({ type: 'workspace_secret', value: '{A} ' }),
      ['rules.0.headers.0.value value_error'],
    ],
    [
      'a callback without anything',
      { callbacks: [{}] },
      ['callbacks.0.match_hosts missing', 'callbacks.0.url missing', 'callbacks.0.ttl_seconds missing'],
    ],
    ['a ttl of 59', withCallback({ ttl_seconds: 59 }), ['callbacks.0.ttl_seconds greater_than_equal']],
    ['a ttl of 3601', withCallback({ ttl_seconds: 3601 }), ['callbacks.0.ttl_seconds less_than_equal']],
    ['a ttl of 60.5', withCallback({ ttl_seconds: 60.5 }), ['callbacks.0.ttl_seconds int_type']],
    ['a ttl in a string', withCallback({ ttl_seconds: '60' }), ['callbacks.0.ttl_seconds int_type']],
    ['a ttl of null', withCallback({ ttl_seconds: null }), ['callbacks.0.ttl_seconds int_type']],
    [
      'a ttl beyond numbers',
      JSON.parse('{"callbacks":[{"match_hosts":["a.test"],"url":"http://a.test","ttl_seconds":1e400}]}'),
      ['callbacks.0.ttl_seconds int_type'],
    ],
    [
      'a workspace_secret for a callback',
      withCallback({ request_headers: [{ name: 'X', type: 'workspace_secret', value: '{A}' }] }),
      ['callbacks.0.request_headers.0.type union_tag_invalid'],
    ],
    [
      'a Content-Type for a callback',
      withCallback({ request_headers: [{ ...header, name: 'content_type' }] }),
      ['callbacks.0.request_headers.0.name value_error'],
    ],
    [
      'a Host for a callback',
      withCallback({ request_headers: [{ ...header, name: 'Host' }] }),
      ['callbacks.0.request_headers.0.name value_error'],
    ],
    ['full_request', withCallback({ full_request: true }), ['callbacks.0.full_request value_error']],
    [
      'paths on a callback',
      withCallback({ match_paths: ['/v1'] }),
      ['callbacks.0.match_paths extra_forbidden'],
    ],
    ['a scrub that is neither', withRule({ scrub: 'off' }), ['rules.0.scrub enum']],
    ['no_proxy for everything', { no_proxy: ['*'] }, ['no_proxy.0 value_error']],
    [
      'an invalid no_proxy inside a rule',
      withRule({ no_proxy: ['ok.test', 'http://x'] }),
      ['rules.0.no_proxy.1 value_error'],
    ],
    ['neither list', { access_control: {} }, ['access_control value_error']],
    [
      'both lists',
      { access_control: { allow_list: ['a.test'], deny_list: ['b.test'] } },
      ['access_control value_error'],
    ],
    [
      'a list with an invalid entry',
      { access_control: { allow_list: ['10.0.0.1/8'] } },
      ['access_control.allow_list.0 value_error'],
    ],
    ['text that is no Unicode', withRule({ name: '\ud800' }), ['rules.0.name string_unicode']],
    [
      'nesting',
      { rules: JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`) },
      [`rules${'.0'.repeat(16)} value_error`],
    ],
    [
      '__proto__ anywhere',
      JSON.parse('{"__proto__":{"rules":[]},"rules":[{"env_vars":{"__proto__":"x"}}]}'),
      ['__proto__ extra_forbidden', 'rules.0.env_vars.__proto__ extra_forbidden'],
    ],
    ['constructor as a key', JSON.parse('{"constructor":{"prototype":{}}}'), ['constructor extra_forbidden']],
  ];
  it.each(rows)('%s', (_name, input, issues) => expect(issuesOf(input)).toEqual(issues));

  const urls = [
    ...[
      'ftp://a.test',
      'file:///etc/passwd',
      'a.test',
      '//a.test',
      'http:a.test',
      'http://',
      'http:///x',
      'http://u@a.test',
    ],
    ...[
      'http://u:p@a.test',
      'http://a.test#x',
      'http://a.test/#',
      'http://a.test:0',
      'http://a.test:99999',
      'http://a.test:080',
    ],
    ...[
      'http://0x7f.1/',
      'http://127.1/',
      'http://2130706433/',
      'http://[::1%25lo]/',
      'http://a..test/',
      'http://bücher.test/',
    ],
    ...[
      'http://a.test\\@b.test/',
      'http://a.test /',
      'http://a.test/\n',
      ' http://a.test',
      'HTTP+unix://a',
      'http://a%2etest/',
    ],
  ];
  it.each(urls)('a callback at "%s"', (url) => {
    expect(issuesOf(withCallback({ url }))).toEqual(['callbacks.0.url value_error']);
  });

  it('a callback URL is read in one pass', () => {
    const url = `http://${'a'.repeat(1000)}/${'b'.repeat(1030)} `;
    const before = process.cpuUsage();
    for (let i = 0; i < 50; i += 1)
      expect(issuesOf(withCallback({ url }))).toEqual(['callbacks.0.url value_error']);
    const { user, system } = process.cpuUsage(before);
    // CPU time of this process and not time on the wall; the bound is many times what it takes.
    expect((user + system) / 50).toBeLessThan(2000);
  });

  it('too many values are not walked, and too long a list is not read', () => {
    const long = { rules: many(500_000, () => 1) };
    expect(issuesOf(long)).toEqual(['rules too_long']);
    const wide = { rules: many(1000, () => ({ match_hosts: many(100, () => 1) })) };
    expect(issuesOf(wide)).toEqual([' too_long']);
    expect(issuesOf(Object.fromEntries(many(1001, (i) => [`k${i}`, 1])))).toEqual([' too_long']);
  });

  it.each<[kind: string, more: (r: number) => object]>([
    ['match_hosts', () => ({ match_hosts: many(1000, () => '*') })],
    ['match_paths', () => ({ match_paths: many(1000, () => 'x') })],
    ['no_proxy', () => ({ no_proxy: many(1000, () => 1) })],
    ['headers', () => ({ headers: many(1000, () => null) })],
    ['env_vars', () => ({ env_vars: Object.fromEntries(many(1000, (i) => [`1${i}`, 1])) })],
  ])('more of one kind than there may be in all is not read: %s', (kind, more) => {
    const parsed = parseProxyConfig({ rules: many(11, (r) => ({ ...rule, ...more(r) })) });
    const issues = parsed.ok ? [] : parsed.issues;
    expect(issues.map(({ loc, type }) => `${loc.join('.')} ${type}`)).toEqual(['rules too_long']);
    expect(issues[0]?.msg).toContain(`All ${kind} together`);
  });

  it('a hundred issues are shown, and the number of the others', () => {
    const parsed = parseProxyConfig(Object.fromEntries(many(1000, (i) => [`k${i}`, 1])));
    const issues = parsed.ok ? [] : parsed.issues;
    expect(issues).toHaveLength(101);
    expect(issues.at(-1)).toEqual({
      loc: [],
      msg: '900 more issues are not shown; correct these first',
      type: 'too_many_issues',
    });
  });

  it.each<[name: string, config: (key: string) => object]>([
    ['of a wrong type', (key) => withRule({ env_vars: { [key]: 1 } })],
    ['unknown', (key) => ({ [key]: 1 })],
    ['not Unicode', (key) => withRule({ env_vars: { [`${key}\ud800`]: 'x' } })],
    ['cut within a character', (key) => ({ [`x${'😀'.repeat(60)}${key}`]: 1 })],
  ])('a long key is shown shortened: %s', (_name, config) => {
    const parsed = parseProxyConfig(config('k'.repeat(100_000)));
    const issues = parsed.ok ? [] : parsed.issues;
    expect(issues).toHaveLength(1);
    const last = String(issues[0]?.loc.at(-1));
    expect(last.length).toBeLessThanOrEqual(100);
    expect(last.isWellFormed()).toBe(true);
  });

  it('with every issue at once', () => {
    const input = {
      rules: [
        { ...rule, match_hosts: ['*'], typo: 1 },
        { ...rule, match_hosts: ['evil.test', '*.dev'] },
      ],
      callbacks: [{ ...callback, ttl_seconds: 1, url: 'x' }],
      access_control: { deny_list: ['evil.test'] },
    };
    expect(issuesOf(input)).toEqual([
      ...['rules.0.match_hosts.0 value_error', 'rules.0.typo extra_forbidden'],
      ...['callbacks.0.url value_error', 'callbacks.0.ttl_seconds greater_than_equal'],
      ...['rules.1.match_hosts.1 value_error', 'rules.1.match_hosts.0 value_error'],
    ]);
  });
});

describe('a document', () => {
  it('is completed with what its author omitted', () => {
    const parsed = parseProxyConfig({ rules: [rule], callbacks: [callback] });
    expect(parsed).toEqual({
      ok: true,
      warnings: [],
      value: {
        rules: [{ ...rule, enabled: true, env_vars: {}, match_paths: [], no_proxy: [], scrub: 'head' }],
        callbacks: [{ ...callback, enabled: true, request_headers: [], scrub: 'head' }],
        no_proxy: [],
      },
    });
  });

  it('has its opaque values as secrets, and no is_set', () => {
    const opaque = { name: 'X-Key', type: 'opaque', value: 'c4n4ry', is_set: false };
    const input = {
      rules: [{ ...rule, headers: [opaque] }],
      callbacks: [{ ...callback, request_headers: [opaque] }],
    };
    const parsed = parseProxyConfig(input);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    const { rules, callbacks } = parsed.value;
    for (const header of [rules[0]?.headers[0], callbacks[0]?.request_headers[0]]) {
      expect(Object.keys(header ?? {})).toEqual(['name', 'type', 'value']);
      expect(header?.type === 'opaque' && header.value.equals('c4n4ry')).toBe(true);
    }
    expect(inspect(parsed, { depth: 9, showHidden: true }) + JSON.stringify(parsed)).not.toContain('c4n4ry');
  });

  it('never has its values repeated in a message', () => {
    const canary = 'c4n4ry-v4lue';
    const spoil = fc.constantFrom('', '\n', '{', '}', 'é', ' ', '\0');
    fc.assert(
      fc.property(
        spoil,
        spoil,
        fc.constantFrom('workspace_secret', 'plaintext', 'opaque', canary),
        (a, b, type) => {
          const value = `${a}${canary}${b}`;
          const headers = [
            { name: 'X', type, value },
            { name: 'Y', type, value: [value] },
            { name: 'X', type, value, more: value },
          ];
          const parsed = parseProxyConfig({
            ...withRule({ headers }),
            callbacks: [{ ...callback, request_headers: headers, url: value }],
          });
          expect(JSON.stringify(parsed.ok ? [] : parsed.issues)).not.toContain(canary);
        },
      ),
    );
  });

  it('of any shape is read without a throw', () => {
    fc.assert(
      fc.property(
        fc.object({
          key: fc.constantFrom(
            'rules',
            'headers',
            'match_hosts',
            'name',
            'access_control',
            'no_proxy',
            'url',
            '__proto__',
          ),
        }),
        (input) => {
          expect(typeof parseProxyConfig(input).ok).toBe('boolean');
        },
      ),
      { numRuns: runs(500) },
    );
  });
});
