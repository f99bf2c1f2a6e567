// The message for each slip of an author: its location, and how to correct it.
import { describe, expect, it } from 'vitest';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

const header = { name: 'X-Key', type: 'plaintext', value: 'v' };
const rule = { match_hosts: ['api.test'], headers: [header] };
const callback = { match_hosts: ['cb.test'], url: 'https://cb.example.com/x', ttl_seconds: 60 };
const withRule = (more: object): object => ({ rules: [{ ...rule, ...more }] });
const withUrl = (url: string): object => ({ callbacks: [{ ...callback, url }] });
const variables = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`A${i}`, 'x']));

const SPELLING =
  'A callback URL must name a host or an address in its canonical spelling, and a port from 1 to 65535, if any';
const BEGINNING =
  'A callback URL must begin with http:// or https:// and contain visible ASCII only, without a backslash';

describe('an author gets a message', () => {
  const rows: readonly (readonly [name: string, input: object, loc: string, message: string])[] = [
    ['of an empty name', withRule({ name: ' ' }), 'rules.0.name', 'A name must not be empty'],
    [
      'of a control character in a name',
      withRule({ name: 'a\n' }),
      'rules.0.name',
      'A name must not contain a control character',
    ],
    [
      'of a header of no known type',
      withRule({ headers: [{ ...header, type: 'secret' }] }),
      'rules.0.headers.0.type',
      "Input must be 'workspace_secret', 'plaintext' or 'opaque'",
    ],
    [
      'of a workspace secret for a callback',
      { callbacks: [{ ...callback, request_headers: [{ ...header, type: 'workspace_secret' }] }] },
      'callbacks.0.request_headers.0.type',
      "Input must be 'plaintext' or 'opaque'; a workspace_secret is not sent to a callback",
    ],
    [
      'of a header that is set twice',
      withRule({ headers: [header, { ...header, name: 'x_key' }] }),
      'rules.0.headers.1.name',
      'This header is set twice; keep one of them',
    ],
    [
      'of a rule of a type',
      withRule({ type: 'aws' }),
      'rules.0.type',
      'Rules with a type (aws, gcp) are not supported yet; a rule sets headers',
    ],
    [
      'of a callback for full requests',
      { callbacks: [{ ...callback, full_request: true }] },
      'callbacks.0.full_request',
      'full_request is not supported yet; a callback receives {host, port}',
    ],
    [
      'of two lists',
      { access_control: { allow_list: [], deny_list: [] } },
      'access_control',
      'Give either allow_list or deny_list',
    ],
    [
      'of an invalid variable',
      withRule({ env_vars: { '1A': 'x' } }),
      'rules.0.env_vars.1A',
      'A variable must have a name of letters, digits and underscores, and a value without NUL',
    ],
    [
      'of NUL in a variable',
      withRule({ env_vars: { A: 'x\0' } }),
      'rules.0.env_vars.A',
      'A variable must have a name of letters, digits and underscores, and a value without NUL',
    ],
    [
      'of too many variables',
      withRule({ env_vars: variables(101) }),
      'rules.0.env_vars',
      'Input must have at most 100 entries',
    ],
    ['of a URL of another scheme', withUrl('ftp://cb.test/'), 'callbacks.0.url', BEGINNING],
    ['of a URL with a backslash', withUrl('https://cb.test\\x'), 'callbacks.0.url', BEGINNING],
    [
      'of a fragment',
      withUrl('https://cb.test/#x'),
      'callbacks.0.url',
      'A callback URL must not have a fragment',
    ],
    [
      'of a password in a URL',
      withUrl('https://u:p@cb.test/'),
      'callbacks.0.url',
      'A callback URL must not contain a user name or password; use request_headers',
    ],
    ['of an address in another spelling', withUrl('https://0x7f.1/'), 'callbacks.0.url', SPELLING],
    ['of an invalid port', withUrl('https://cb.test:0/'), 'callbacks.0.url', SPELLING],
  ];
  it.each(rows)('%s', (_, input, loc, message) => {
    const parsed = parseProxyConfig(input);
    const reported = parsed.ok ? [] : parsed.issues.map((issue) => [issue.loc.join('.'), issue.msg]);
    expect(reported).toEqual([[loc, message]]);
  });

  it('nothing of a hundred variables', () => {
    expect(parseProxyConfig(withRule({ env_vars: variables(100) }))).toMatchObject({ ok: true });
  });
});

describe('a document that replaces another', () => {
  const opaque = (more: object): object => withRule({ headers: [{ name: 'X-O', type: 'opaque', ...more }] });
  const first = parseProxyConfig(opaque({ value: 'stored-value' }));
  const update = (more: object): readonly string[] => {
    const parsed = parseProxyConfig(opaque(more), first.ok ? { stored: first.value } : {});
    return parsed.ok ? [] : parsed.issues.map(({ loc, msg, type }) => `${loc.join('.')} ${type} ${msg}`);
  };

  it.each([{}, { is_set: true }, { value: 'another' }, { value: 'another', is_set: false }])(
    'may say of an opaque value %j',
    (more) => expect(update(more)).toEqual([]),
  );

  it('and not that it is not set, without one', () => {
    expect(update({ is_set: false })).toEqual([
      'rules.0.headers.0.value value_error A header whose is_set is false must have a value; give one, or remove the header',
    ]);
  });

  it('nor give one that is no field value', () => {
    expect(update({ value: 'a\r\nb' })).toEqual([
      expect.stringContaining('rules.0.headers.0.value value_error'),
    ]);
  });

  it('while a whole one must give each value', () => {
    const parsed = parseProxyConfig(opaque({ is_set: true }));
    expect(parsed.ok ? [] : parsed.issues.map(({ loc }) => loc.join('.'))).toEqual([
      'rules.0.headers.0.value',
    ]);
  });
});

describe('what is valid in an invalid document', () => {
  it('is compared all the same, with its index', () => {
    const parsed = parseProxyConfig({
      rules: [{ ...rule, match_hosts: ['*.com'] }, { match_hosts: 7 }, { ...rule, match_hosts: ['*.net'] }],
      callbacks: [null, { ...callback, match_hosts: ['*.org'] }],
    });
    const reported = parsed.ok ? [] : parsed.issues.map(({ loc }) => loc.join('.'));
    expect(reported.filter((loc) => loc.endsWith('match_hosts.0'))).toEqual([
      'rules.0.match_hosts.0',
      'rules.2.match_hosts.0',
      'callbacks.1.match_hosts.0',
    ]);
  });

  it.each([
    ['rules', { headers: [header] }],
    ['callbacks', { url: callback.url, ttl_seconds: 60 }],
  ])('of %s an invalid entry is not read a second time', (list, entry) => {
    const readings = (hosts: readonly string[]): number => {
      let count = 0;
      const counted = {
        ...entry,
        get match_hosts() {
          count += 1;
          return hosts;
        },
      };
      parseProxyConfig({ [list]: [counted] });
      return count;
    };
    expect(readings([])).toBe(readings(['a.test']));
  });

  it.each([null, 7, 'text', [], undefined])('of %j nothing is', (input) => {
    expect(parseProxyConfig(input)).toMatchObject({ ok: false, issues: [{ loc: [] }] });
  });
});
