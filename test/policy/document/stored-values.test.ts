// An update may omit an opaque value, which its author cannot read: the stored one is reused, and never sent elsewhere.
import { describe, expect, it } from 'vitest';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';
import type { HeaderEntry, ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';

const blank = { name: 'X-Key', type: 'opaque' };
const named = {
  name: 'api',
  match_hosts: ['api.test', '*.api.test:8443'],
  headers: [{ name: 'X-Key', type: 'opaque', value: 'of-api' }],
};
const pathed = {
  name: 'paths',
  match_hosts: ['paths.test'],
  match_paths: ['/v1/*', '/v2'],
  headers: [
    { name: 'X-Key', type: 'opaque', value: 'of-paths' },
    { name: 'X-Plain', type: 'plaintext', value: 'p' },
  ],
};
const unnamed = {
  match_hosts: ['a.test', 'b.test'],
  headers: [{ name: 'X-Key', type: 'opaque', value: 'of-unnamed' }],
};
const callback = {
  name: 'cb',
  match_hosts: ['cb.test', '*.cb.test'],
  url: 'https://auth.test/x',
  ttl_seconds: 60,
  request_headers: [{ name: 'X-Key', type: 'opaque', value: 'of-cb' }],
};

function parsed(input: object, stored?: ProxyConfig): ProxyConfig {
  const result = parseProxyConfig(input, { stored });
  if (!result.ok) throw new Error(JSON.stringify(result.issues));
  return result.value;
}

const stored: ProxyConfig = parsed({ rules: [named, pathed, unnamed], callbacks: [callback] });

const CANDIDATES = ['of-api', 'of-paths', 'of-unnamed', 'of-cb', 'new'];

/** The opaque values of a config, in order, each by the text that it equals. */
function opaqueValues({ rules, callbacks }: ProxyConfig): readonly (string | undefined)[] {
  const headers: readonly HeaderEntry[] = [
    ...rules.flatMap((rule) => rule.headers),
    ...callbacks.flatMap((entry) => entry.request_headers),
  ];
  return headers.flatMap(({ type, value }) =>
    type === 'opaque' ? [CANDIDATES.find((text) => value.equals(text))] : [],
  );
}

/** Issues as `path type message`. */
function issuesOf(input: object, before: ProxyConfig = stored): readonly string[] {
  const result = parseProxyConfig(input, { stored: before });
  return result.ok ? [] : result.issues.map(({ loc, type, msg }) => `${loc.join('.')} ${type} ${msg}`);
}

const rule = (entry: object, more: object = {}): object => ({
  rules: [{ ...entry, headers: [blank], ...more }],
});
const cb = (more: object): object => ({ callbacks: [{ ...callback, request_headers: [blank], ...more }] });

describe('the stored value is reused', () => {
  const rows: readonly [name: string, input: object, value: string][] = [
    ['of a rule by its name', rule(named), 'of-api'],
    ['where the value is empty', rule(named, { headers: [{ ...blank, value: '' }] }), 'of-api'],
    [
      'where the entry is sent back as it is shown',
      rule(named, { headers: [{ ...blank, is_set: true }] }),
      'of-api',
    ],
    ['under another spelling of the name', rule(named, { headers: [{ ...blank, name: 'x_KEY' }] }), 'of-api'],
    ['for fewer hosts', rule(named, { match_hosts: ['api.test'] }), 'of-api'],
    ['for another spelling of a host', rule(named, { match_hosts: ['API.test.'] }), 'of-api'],
    ['of a disabled rule', rule(named, { enabled: false }), 'of-api'],
    ['for paths where all were stored', rule(named, { match_paths: ['/v9'] }), 'of-api'],
    ['for the same paths', rule(pathed), 'of-paths'],
    ['for fewer paths', rule(pathed, { match_paths: ['/v2'] }), 'of-paths'],
    ['of a rule without a name, by its hosts', rule(unnamed), 'of-unnamed'],
    ['whatever the order of the hosts', rule(unnamed, { match_hosts: ['b.test', 'a.test'] }), 'of-unnamed'],
    ['of a callback by its name', cb({}), 'of-cb'],
    ['of a callback for fewer hosts', cb({ match_hosts: ['*.cb.test'] }), 'of-cb'],
    ['of a callback at another spelling of its URL', cb({ url: 'https://AUTH.test:443/x' }), 'of-cb'],
    ['of a callback with another time to live', cb({ ttl_seconds: 90 }), 'of-cb'],
  ];
  it.each(rows)('%s', (_name, input, value) => expect(opaqueValues(parsed(input, stored))).toEqual([value]));

  it('of a callback without a name, by its hosts', () => {
    const { name: _, ...nameless } = callback;
    const before = parsed({ callbacks: [nameless] });
    const update = { callbacks: [{ ...nameless, request_headers: [blank] }] };
    expect(opaqueValues(parsed(update, before))).toEqual(['of-cb']);
  });

  it('unless a value is given, whatever is_set says', () => {
    for (const isSet of [true, false, undefined]) {
      const headers = [{ ...blank, value: 'new', is_set: isSet }];
      expect(opaqueValues(parsed(rule(named, { headers }), stored))).toEqual(['new']);
    }
  });

  it('whatever the index of the entry, and beside entries that give theirs', () => {
    const fresh = { match_hosts: ['new.test'], headers: [{ ...blank, value: 'new' }] };
    const [kept] = [{ ...named, headers: [blank] }];
    expect(opaqueValues(parsed({ rules: [fresh, kept] }, stored))).toEqual(['new', 'of-api']);
  });

  it('of entries of one name or of the same hosts, if their paths or URLs tell them apart', () => {
    const twin = (path: string, more: object): object => ({
      match_hosts: ['a.test'],
      match_paths: [path],
      headers: [{ ...blank, ...more }],
    });
    const twins = [
      { ...callback, request_headers: [blank] },
      { ...callback, request_headers: [blank], url: 'https://auth.test/y' },
    ];
    const before = parsed({
      rules: [twin('/a', { value: 'of-api' }), twin('/b', { value: 'of-paths' })],
      callbacks: twins.map((entry, i) => ({
        ...entry,
        request_headers: [{ ...blank, value: ['of-cb', 'new'][i] }],
      })),
    });
    const update = { rules: [twin('/b', {}), twin('/a', {})], callbacks: twins.toReversed() };
    expect(opaqueValues(parsed(update, before))).toEqual(['of-paths', 'of-api', 'new', 'of-cb']);
  });
});

describe('the value must be given again, since its destination changed:', () => {
  const rows: readonly [name: string, input: object][] = [
    ['another host', rule(named, { match_hosts: ['evil.test'] })],
    ['one more host', rule(named, { match_hosts: [...named.match_hosts, 'evil.test'] })],
    ['a host below a stored wildcard', rule(named, { match_hosts: ['x.api.test:8443'] })],
    ['a wildcard over a stored host', rule(named, { match_hosts: ['*.test'] })],
    ['another port', rule(named, { match_hosts: ['*.api.test'] })],
    ['a port where all were stored', rule(named, { match_hosts: ['api.test:22'] })],
    ['another host on a disabled rule', rule(named, { enabled: false, match_hosts: ['evil.test'] })],
    ['all paths where some were stored', rule(pathed, { match_paths: [] })],
    ['another path', rule(pathed, { match_paths: ['/v1/*', '/v3'] })],
  ];
  it.each(rows)('%s', (_name, input) => {
    expect(issuesOf(input)).toEqual([
      expect.stringMatching(/^rules\.0\.headers\.0\.value value_error The destination changed/),
    ]);
  });

  const callbacks: readonly [name: string, input: object][] = [
    ['another URL of a callback', cb({ url: 'https://evil.test/x' })],
    ['another path of its URL', cb({ url: 'https://auth.test/y' })],
    ['another query of its URL', cb({ url: 'https://auth.test/x?a=1' })],
    ['its URL in the clear', cb({ url: 'http://auth.test/x' })],
    ['one more host of a callback', cb({ match_hosts: ['cb.test', 'evil.test'] })],
  ];
  it.each(callbacks)('%s', (_name, input) => {
    expect(issuesOf(input)).toEqual([
      expect.stringMatching(/^callbacks\.0\.request_headers\.0\.value value_error The destination changed/),
    ]);
  });
});

describe('the value of an entry with `scrub: body`', () => {
  const scrubbed: ProxyConfig = parsed({
    rules: [{ ...named, scrub: 'body' }],
    callbacks: [{ ...callback, scrub: 'body' }],
  });
  it('must be given again where bodies are no longer searched for it', () => {
    const lowered = /headers\.0\.value value_error The value would no longer be masked in bodies/;
    expect(issuesOf(rule(named), scrubbed)).toEqual([expect.stringMatching(lowered)]);
    expect(issuesOf(cb({}), scrubbed)).toEqual([expect.stringMatching(lowered)]);
  });

  it('is reused where they are, also where they were not before', () => {
    expect(opaqueValues(parsed(rule(named, { scrub: 'body' }), scrubbed))).toEqual(['of-api']);
    expect(opaqueValues(parsed(rule(named, { scrub: 'body' }), stored))).toEqual(['of-api']);
  });
});

describe('the value must be given, since none is stored:', () => {
  const rows: readonly [name: string, input: object][] = [
    ['another name of the entry', rule(named, { name: 'other' })],
    ['no name where there was one', rule(named, { name: undefined })],
    ['a name where there was none', rule(unnamed, { name: 'late' })],
    ['other hosts without a name', rule(unnamed, { match_hosts: ['a.test'] })],
    ['the name of a callback', rule(named, { name: 'cb' })],
    ['another header', rule(named, { headers: [{ ...blank, name: 'X-Other' }] })],
    ['a header that was plaintext', rule(pathed, { headers: [{ ...blank, name: 'X-Plain' }] })],
  ];
  it.each(rows)('%s', (_name, input) => {
    expect(issuesOf(input)).toEqual([
      'rules.0.headers.0.value missing Field required: there is no stored value to reuse',
    ]);
  });

  it('there was no document before', () => {
    const update = { ...rule(named), ...cb({}) };
    expect(issuesOf(update, parsed({}))).toEqual([
      'rules.0.headers.0.value missing Field required: there is no stored value to reuse',
      'callbacks.0.request_headers.0.value missing Field required: there is no stored value to reuse',
    ]);
  });

  it('is_set is false', () => {
    const headers = [{ ...blank, is_set: false }];
    expect(issuesOf(rule(named, { headers }))).toEqual([
      expect.stringMatching(/^rules\.0\.headers\.0\.value value_error .*is_set/),
    ]);
  });

  it('several stored entries are like this one', () => {
    const before = parsed({ rules: [unnamed, { ...unnamed, enabled: false }, named, named] });
    expect(issuesOf({ rules: [{ ...unnamed, headers: [blank] }] }, before)).toEqual([
      expect.stringMatching(/^rules\.0\.headers\.0\.value missing Field required: several/),
    ]);
    expect(issuesOf(rule(named), before)).toEqual([
      expect.stringMatching(/^rules\.0\.headers\.0\.value missing Field required: several/),
    ]);
  });
});

describe('an update', () => {
  it('gets every issue at once', () => {
    const input = {
      rules: [
        { ...named, headers: [{ ...blank, value: 'a\nb' }, blank] },
        { ...pathed, headers: [blank], match_paths: [] },
        { ...unnamed, headers: [blank], match_hosts: ['*.com'] },
      ],
      callbacks: [{ ...callback, request_headers: [blank], url: 'https://evil.test/' }],
    };
    expect(issuesOf(input).map((issue) => issue.split(' ').slice(0, 2).join(' '))).toEqual([
      ...['rules.0.headers.0.value value_error', 'rules.0.headers.1.name value_error'],
      ...['rules.1.headers.0.value value_error', 'rules.2.headers.0.value missing'],
      ...['callbacks.0.request_headers.0.value value_error', 'rules.2.match_hosts.0 value_error'],
    ]);
  });

  it('of what is stored changes nothing in it', () => {
    const before = JSON.stringify(stored);
    const values = opaqueValues(stored);
    parsed(rule(named, { headers: [{ ...blank, value: 'new' }] }), stored);
    expect([JSON.stringify(stored), opaqueValues(stored)]).toEqual([before, values]);
  });

  it('has values of other types refused', () => {
    expect(issuesOf(rule(named, { headers: [{ ...blank, value: null }] }))).toEqual([
      expect.stringMatching(/^rules\.0\.headers\.0\.value string_type/),
    ]);
  });

  it('of 1,000 rules is read as one document is', () => {
    const many = (value: object): object => ({
      rules: Array.from({ length: 1000 }, (_, i) => ({
        match_hosts: [`h${i}.test`],
        headers: [{ ...blank, ...value }],
      })),
    });
    const before = parsed(many({ value: 'new' }));
    const start = process.cpuUsage();
    expect(new Set(opaqueValues(parsed(many({ is_set: true }), before)))).toEqual(new Set(['new']));
    const { user, system } = process.cpuUsage(start);
    // CPU time of this process; comparing each entry with each would take many times as long.
    expect(user + system).toBeLessThan(1_000_000);
  });
});
