// Authored form and secrets become a policy: values resolved once, issues named by header, nothing opened.
import { describe, expect, it, vi } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import { parseAuthority } from '../../src/policy/authority/authority.ts';
import {
  type Compiled,
  compileInSteps,
  compileProxyConfig,
  secretNamesOf,
} from '../../src/policy/compile.ts';
import type { CompiledCallback, InjectedHeader } from '../../src/policy/policy.ts';
import { parseProxyConfig } from '../../src/policy/document/proxy-config.ts';

function compile(config: object, secrets: Readonly<Record<string, string>> = {}): Compiled {
  const parsed = parseProxyConfig(config);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  const values = new Map(Object.entries(secrets));
  const lookUp = (name: string): Secret | undefined => {
    const value = values.get(name);
    return value === undefined ? undefined : new Secret(value);
  };
  return compileProxyConfig(parsed.value, lookUp, 1);
}

const ruleWith = (...headers: readonly object[]): object => ({
  rules: [{ match_hosts: ['a.test'], headers }],
});
const template = (value: string): object => ({ name: 'Authorization', type: 'workspace_secret', value });

function headerOf(compiled: Compiled): InjectedHeader {
  const authority = parseAuthority('a.test:443');
  if (!compiled.ok || typeof authority === 'string') throw new Error(JSON.stringify(compiled));
  const decision = compiled.value.decide(authority, '/');
  const header =
    decision.kind === 'intercept' && decision.apply === 'rule' ? decision.rule.headers[0] : undefined;
  if (header === undefined) throw new Error('no header');
  return header;
}

it('of a rule that refuses its requests needs no secret, and masks its opaque values', () => {
  const opaque = { name: 'X-Key', type: 'opaque', value: 'opaque-value' };
  const refusing = { match_hosts: ['a.test'], headers: [template('{ABSENT}'), opaque], refuse: 'gone' };
  const compiled = compile({ rules: [refusing] });
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.issues));
  expect(compiled.value.rules).toMatchObject([{ refusal: 'gone' }]);
  const authority = parseAuthority('a.test:443');
  if (typeof authority === 'string') throw new Error(authority);
  expect(compiled.value.secretsFor(authority).some((one) => one.equals('opaque-value'))).toBe(true);
});

function callbackOf(more: object): CompiledCallback {
  const authority = parseAuthority('a.test:443');
  const compiled = compile({
    callbacks: [{ match_hosts: ['a.test'], url: 'http://127.0.0.1:9444/x', ttl_seconds: 60, ...more }],
  });
  if (!compiled.ok || typeof authority === 'string') throw new Error(JSON.stringify(compiled));
  const decision = compiled.value.decide(authority, '/');
  if (decision.kind !== 'intercept' || decision.apply !== 'callback') throw new Error('no callback');
  return decision.callback;
}

const isSecret = (value: Secret | string, text: string): boolean =>
  typeof value !== 'string' && value.equals(text);

describe('a header is resolved:', () => {
  it('a template, with every secret and the whole to be masked', () => {
    const { value, masks } = headerOf(
      compile(ruleWith(template('Basic {USER}:{PASS}')), { USER: 'u', PASS: 'p' }),
    );
    expect(isSecret(value, 'Basic u:p')).toBe(true);
    expect(masks.map((mask) => ['u', 'p', 'Basic u:p'].findIndex((text) => mask.equals(text)))).toEqual([
      0, 1, 2,
    ]);
  });
  it('a template of one secret alone, masked once', () => {
    const { value, masks } = headerOf(compile(ruleWith(template('{TOKEN}')), { TOKEN: 't' }));
    expect(isSecret(value, 't') && masks.length === 1 && masks[0]?.equals('t')).toBe(true);
  });
  it('a secret that occurs twice', () => {
    const { value, masks } = headerOf(compile(ruleWith(template('{A}{A}')), { A: 'x' }));
    expect(isSecret(value, 'xx') && masks.length === 2).toBe(true);
  });
  it('once: a secret that looks like a template is not read as one', () => {
    const { value } = headerOf(compile(ruleWith(template('{A}')), { A: '{B}', B: 'wrong' }));
    expect(isSecret(value, '{B}')).toBe(true);
  });
  it('a secret with a name that is special to JavaScript', () => {
    const { value } = headerOf(compile(ruleWith(template('{constructor}')), { constructor: 'c' }));
    expect(isSecret(value, 'c')).toBe(true);
  });
  it('opaque, as a secret that is masked', () => {
    const { value, masks } = headerOf(compile(ruleWith({ name: 'X', type: 'opaque', value: 'o' })));
    expect(isSecret(value, 'o') && masks.length === 1).toBe(true);
  });
  const basic = Buffer.from('account-name:pass-word-1').toString('base64');
  const parted: readonly (readonly [
    name: string,
    entry: object,
    secrets: object,
    masked: readonly string[],
  ])[] = [
    [
      'opaque cookies',
      { name: 'Cookie', type: 'opaque', value: 'sid=abcdefgh-1; csrf=ijklmnop-2' },
      {},
      ['sid=abcdefgh-1; csrf=ijklmnop-2', 'abcdefgh-1', 'ijklmnop-2'],
    ],
    [
      'a secret that holds its scheme',
      template('{A}'),
      { A: 'Token token=abcdefgh-1' },
      ['Token token=abcdefgh-1', 'token=abcdefgh-1', 'abcdefgh-1'],
    ],
    [
      'a secret that is the base64 of Basic',
      template('Basic {A}'),
      { A: basic },
      [basic, `Basic ${basic}`, 'account-name', 'pass-word-1'],
    ],
    [
      'literals of a template',
      template('sid={A}; view=full-page-view'),
      { A: 'abcdefgh-1' },
      ['abcdefgh-1', 'sid=abcdefgh-1; view=full-page-view'],
    ],
  ];
  it.each(parted)('with each part that may be echoed by itself: %s', (_, entry, secrets, masked) => {
    const { masks } = headerOf(compile(ruleWith(entry), { ...secrets }));
    expect(masks.map((mask) => masked.findIndex((text) => mask.equals(text)))).toEqual([...masked.keys()]);
  });
  it('plaintext, as text that is not', () => {
    expect(headerOf(compile(ruleWith({ name: 'X', type: 'plaintext', value: '{A}' })))).toEqual({
      name: 'X',
      value: '{A}',
      masks: [],
    });
  });
});

describe('a header is refused, by its path and without its value:', () => {
  const rows: readonly [name: string, secrets: Readonly<Record<string, string>>, reason: RegExp][] = [
    ['a missing secret', {}, /TOKEN does not exist/],
    ['a secret named in another case', { token: 'c4n4ry' }, /TOKEN does not exist/],
    ['an empty secret', { TOKEN: '' }, /TOKEN is empty/],
    ['a line break at the end', { TOKEN: 'c4n4ry\n' }, /line break/],
    ['a header smuggled in', { TOKEN: 'c4n4ry\r\nX-Evil: 1' }, /line break/],
    ['NUL', { TOKEN: 'c4n4ry\0' }, /visible ASCII/],
    ['a space at the end', { TOKEN: 'c4n4ry ' }, /space/],
    ['too long a value', { TOKEN: 'c4n4ry'.repeat(2000) }, /8192/],
  ];
  it.each(rows)('%s', (_name, secrets, reason) => {
    const compiled = compile(
      ruleWith({ name: 'X', type: 'plaintext', value: 'v' }, template('Bearer {TOKEN}')),
      secrets,
    );
    const issues = compiled.ok ? [] : compiled.issues;
    expect(issues).toEqual([
      { loc: ['rules', 0, 'headers', 1, 'value'], type: 'value_error', msg: expect.stringMatching(reason) },
    ]);
    expect(JSON.stringify(issues)).not.toContain('c4n4ry');
  });
  it('a value in place of a name, of which no more than the beginning is shown', () => {
    const compiled = compile(ruleWith(template('Bearer {ghp_c4n4ry0123456789012345678901234567}')));
    const issues = compiled.ok ? [] : compiled.issues;
    expect(issues.map(({ msg }) => msg)).toEqual([
      'The workspace secret ghp_c4n4… does not exist: add a file of that name to the secrets directory (SALLYPORT_SECRETS_DIR), or PUT it to /v1/workspace_secrets',
    ]);
  });
  it('all of them at once', () => {
    const rules = ['a.test', 'b.test'].map((host) => ({
      match_hosts: [host],
      headers: [template(`{${host[0]}}`)],
    }));
    const compiled = compile({ rules });
    expect(compiled.ok ? [] : compiled.issues.map(({ loc }) => loc[1])).toEqual([0, 1]);
  });
  it('but not in a disabled rule', () => {
    const rules = [{ match_hosts: ['a.test'], headers: [template('{NONE}')], enabled: false }];
    expect(compile({ rules })).toMatchObject({ ok: true });
  });
});

it('a value that would be too long is refused before it is made', () => {
  const join = vi.spyOn(Secret, 'join');
  const compiled = compile(ruleWith(template('{A}'.repeat(2_730))), { A: 'x'.repeat(65_536) });
  const joins = join.mock.calls.length;
  join.mockRestore();
  expect(compiled.ok || compiled.issues.map(({ msg }) => msg)).toEqual([
    'With its secret filled in, this is not a valid header value. A header value must have at most 8192 bytes',
  ]);
  expect(joins).toBe(0);
});

it.each([
  [15, 8_000, true],
  [17, 8_000, false],
])(
  'values have at most 256 KiB in all with the secrets they show: %i of %i twice',
  (count, bytes, isFine) => {
    const rules = Array.from({ length: count }, (_, i) => ({
      match_hosts: [`h${i}.test`],
      headers: [template('Bearer {TOKEN}')],
    }));
    const compiled = compile({ rules }, { TOKEN: 'v'.repeat(bytes) });
    expect(compiled.ok || compiled.issues.map(({ loc, type }) => [loc, type])).toEqual(
      isFine || [[['rules'], 'too_long']],
    );
  },
);

it('a value in several headers of a rule counts in each, as it does in the head', () => {
  const headers = Array.from({ length: 33 }, (_, i) => ({
    name: `X-${i}`,
    type: 'plaintext',
    value: 'v'.repeat(8_000),
  }));
  const compiled = compile(ruleWith(...headers));
  expect(compiled.ok || compiled.issues.map(({ loc, type }) => [loc, type])).toEqual([
    [['rules'], 'too_long'],
  ]);
});

it.each([
  [4, 'body', true],
  [5, 'body', false],
  [5, 'head', true],
])(
  'what is searched for in bodies has at most 32 KiB a rule: %i secrets of 8,000 with %s',
  (count, scrub, isFine) => {
    const headers = Array.from({ length: count }, (_, i) => ({
      ...template(`{TOKEN_${i}}`),
      name: `X-${i}`,
    }));
    const secrets = Object.fromEntries(headers.map((__, i) => [`TOKEN_${i}`, `${i}`.repeat(8_000)]));
    const compiled = compile({ rules: [{ match_hosts: ['a.test'], headers, scrub }] }, secrets);
    expect(compiled.ok || compiled.issues.map(({ loc, type }) => [loc, type])).toEqual(
      isFine || [[['rules', 0, 'headers'], 'too_long']],
    );
  },
);

it.each(['head', 'body'])('no message shows how long a secret is, with scrub: %s', (scrub) => {
  const headers = Array.from({ length: 33 }, (_, i) => ({ ...template('{TOKEN}'), name: `X-${i}` }));
  const rules = ['a.test', 'b.test'].map((host) => ({ match_hosts: [host], headers, scrub }));
  const lengths = [7_777, 7_778].map((length) => compile({ rules }, { TOKEN: 'v'.repeat(length) }));
  expect(lengths[0]).toMatchObject({ ok: false });
  expect(lengths[0]).toEqual(lengths[1]);
});

it('the secrets that a config is made of are those of its enabled rules, each once', () => {
  const rule = { match_hosts: ['a.test'], headers: [template('Basic {USER}:{PASS}')] };
  const plain = { name: 'X-Plain', type: 'plaintext', value: '{PLAIN}' };
  const opaque = { name: 'X-Opaque', type: 'opaque', value: '{OPAQUE}' };
  const parsed = parseProxyConfig({
    rules: [
      rule,
      { ...rule, headers: [template('{OFF}')], enabled: false },
      { ...rule, headers: [plain, opaque, template('{PASS}{TOKEN}')] },
    ],
  });
  expect(parsed.ok && secretNamesOf(parsed.value)).toEqual(['USER', 'PASS', 'TOKEN']);
});

describe('a callback', () => {
  const shared = (type: string, value: string): object => ({
    request_headers: [{ name: 'X-Shared', type, value }],
  });

  it('is compiled with its headers, opaque ones as secrets', () => {
    const callback = callbackOf({ name: 'cb', ...shared('opaque', 's') });
    expect(callback).toMatchObject({ index: 0, name: 'cb', url: 'http://127.0.0.1:9444/x', ttlSeconds: 60 });
    expect(isSecret(callback.requestHeaders[0]?.value ?? '', 's')).toBe(true);
    expect(callbackOf(shared('plaintext', 's')).requestHeaders).toEqual([{ name: 'X-Shared', value: 's' }]);
  });
  it('is called by its place if it has no name', () => expect(callbackOf({}).name).toBe('callbacks[0]'));

  it('has an id that stays while nothing changes that the response may depend on', () => {
    const same = callbackOf(shared('opaque', 's')).id;
    expect(callbackOf({ ...shared('opaque', 's'), name: 'renamed', description: 'x' }).id).toBe(same);
    const others = [
      callbackOf(shared('opaque', 't')),
      callbackOf(shared('plaintext', 's')),
      callbackOf({}),
      callbackOf({ ...shared('opaque', 's'), ttl_seconds: 61 }),
      callbackOf({ ...shared('opaque', 's'), url: 'http://127.0.0.1:9444/y' }),
    ];
    expect(new Set([same, ...others.map(({ id }) => id)]).size).toBe(others.length + 1);
    expect(same).not.toContain('s3cret');
  });
});

describe('in steps', () => {
  const hosts = Array.from({ length: 1_000 }, (_, i) => `h${i}.a.test`);
  const document = {
    rules: Array.from({ length: 10 }, (_, i) => ({
      match_hosts: hosts.map((host) => `${i}-${host}`),
      headers: [{ name: 'X-Key', type: 'plaintext', value: `v${i}` }],
      no_proxy: Array.from({ length: 990 }, (__, n) => `n${n}.r${i}.test`),
    })),
    access_control: { deny_list: hosts.map((host) => `denied-${host}`) },
  };

  it('a large document is interrupted often, and becomes the same policy', () => {
    const parsed = parseProxyConfig(document);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    const steps = compileInSteps(parsed.value, () => undefined, 7);
    let count = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) count += 1;
    // One for each rule, and several for each long list.
    expect(count).toBeGreaterThan(60);
    const [whole, compiled] = [compileProxyConfig(parsed.value, () => undefined, 7), step.value];
    if (!whole.ok || !compiled.ok) throw new Error('not compiled');
    expect(compiled.value.rules).toEqual(whole.value.rules);
    expect(compiled.value.callbacks).toEqual(whole.value.callbacks);
    expect(compiled.value.noProxyEntries).toEqual(whole.value.noProxyEntries);
    for (const host of ['3-h999.a.test', 'n989.r9.test', 'denied-h0.a.test', 'other.test']) {
      const authority = parseAuthority(`${host}:443`);
      if (typeof authority === 'string') throw new Error(authority);
      expect(compiled.value.coverOf(authority)).toEqual(whole.value.coverOf(authority));
      expect(compiled.value.decide(authority, '/')).toEqual(whole.value.decide(authority, '/'));
    }
  });

  it('a rule is interrupted after each of its headers', () => {
    // Each of 64 values has hundreds of parts, and each part is compared with hundreds of literals.
    const value = Array.from({ length: 700 }, (_, i) => `${String(i).padStart(5, 'a')}{A}`).join(',');
    const headers = Array.from({ length: 64 }, (_, i) => ({ ...template(value), name: `X-${i}` }));
    const parsed = parseProxyConfig(ruleWith(...headers));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    const includes = vi.spyOn(String.prototype, 'includes');
    const steps = compileInSteps(parsed.value, () => new Secret('xyz'), 1);
    let count = 0;
    let most = 0;
    for (let isDone = false; !isDone; count += 1) {
      const before = includes.mock.calls.length;
      isDone = steps.next().done === true;
      most = Math.max(most, includes.mock.calls.length - before);
    }
    includes.mockRestore();
    expect(count).toBeGreaterThan(64);
    expect(most).toBeLessThan(10_000);
  });

  it('an unknown secret is reported as at once', () => {
    const parsed = parseProxyConfig(ruleWith(template('{NONE}')));
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    const steps = compileInSteps(parsed.value, () => undefined, 1);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    expect(step.value).toEqual(compileProxyConfig(parsed.value, () => undefined, 1));
  });
});
