// What an operator sets: every key, its variable, its limits, and what is refused with words that help.
import { describe, expect, it } from 'vitest';
import { type Config, configVariables, parseConfig } from '../../src/sidecar/config.ts';
import { parseListenAddress } from '../../src/base/listen-address.ts';
import { isLoopbackListen } from '../../src/sidecar/listen-address.ts';
import { defaultLimits, defaultTimeouts } from '../../src/proxy/limits.ts';

function parsed(document: unknown, env: Record<string, string> = {}): Config {
  const result = parseConfig(document, env);
  if (!result.ok) throw new Error(JSON.stringify(result.issues));
  return result.value;
}

/** `path: message` of each issue. */
function issues(document: unknown, env: Record<string, string> = {}): string[] {
  const result = parseConfig(document, env);
  return result.ok ? [] : result.issues.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`);
}

describe('without a word of the operator', () => {
  it('the proxy listens on loopback, reaches no private network and injects nothing in clear', () => {
    expect(parsed({})).toEqual({
      listen: { host: '127.0.0.1', port: 3128 },
      auth: undefined,
      allowClients: undefined,
      proxyConfigFile: undefined,
      watchesFiles: true,
      drainDelayMs: 0,
      requireConfig: false,
      reservedHost: 'sallyport.internal',
      stateDir: undefined,
      stateKeyFile: undefined,
      admin: { listen: { host: '127.0.0.1', port: 3129 }, tokenFile: undefined, isExposed: false, hosts: [] },
      metrics: { listen: 'off', tokenFile: undefined, isExposed: false, hosts: [] },
      hasNamespaces: false,
      secretsDirectory: undefined,
      secretsFile: undefined,
      ca: undefined,
      upstreamCaFile: undefined,
      egress: {
        allowAllPrivate: false,
        allowLoopback: undefined,
        allowCidrs: [],
        privateByRule: 'tls',
        ports: [80, 443],
      },
      injectCleartext: [],
      allowWildcards: [],
      scrub: 'head',
      callback: { allowPrivate: true, timeoutMs: 10_000 },
      limits: defaultLimits,
      timeouts: defaultTimeouts,
      logLevel: 'info',
      isRecorded: true,
      areChangesRecorded: true,
      whenBlocked: 'refuse',
    });
  });

  it('is frozen', () => expect(Object.isFrozen(parsed({}))).toBe(true));
});

describe('listeners in network namespaces', () => {
  const sandboxes = { namespaces: true };

  it('may be handed over where the admin API is on a unix socket', () => {
    const admin = { listen: 'unix:/run/admin.sock' };
    expect(parsed({ sandboxes, admin }).hasNamespaces).toBe(true);
    expect(parsed({ admin }, { SALLYPORT_SANDBOXES_NAMESPACES: 'true' }).hasNamespaces).toBe(true);
  });

  it.each([{}, { admin: { listen: 'off' } }, { admin: { listen: '127.0.0.1:0' } }])(
    'may not with %o',
    (document) => {
      expect(issues({ sandboxes, ...document })).toEqual([
        expect.stringMatching(/^sandboxes\.namespaces: .*set admin\.listen to unix:/),
      ]);
    },
  );
});

describe('a variable', () => {
  const rows: readonly (readonly [string, string, (config: Config) => unknown, unknown])[] = [
    ['SALLYPORT_LISTEN', '127.0.0.1:0', (c) => c.listen, { host: '127.0.0.1', port: 0 }],
    ['SALLYPORT_AUTH', 'none', (c) => c.auth, 'none'],
    ['SALLYPORT_AUTH_TOKEN_FILE', '/run/token', (c) => c.auth, { tokenFile: '/run/token' }],
    [
      'SALLYPORT_ALLOW_CLIENTS',
      '10.0.0.0/8, 127.0.0.1',
      (c) => c.allowClients?.map(({ prefix }) => prefix),
      [8, 32],
    ],
    ['SALLYPORT_ADMIN_LISTEN', '[::1]:0', (c) => c.admin.listen, { host: '::1', port: 0 }],
    ['SALLYPORT_ADMIN_LISTEN', 'unix:/run/s.sock', (c) => c.admin.listen, { path: '/run/s.sock' }],
    ['SALLYPORT_ADMIN_LISTEN', 'off', (c) => c.admin.listen, 'off'],
    ['SALLYPORT_ADMIN_EXPOSED', 'true', (c) => c.admin.isExposed, true],
    ['SALLYPORT_ADMIN_TOKEN_FILE', '/run/admin', (c) => c.admin.tokenFile, '/run/admin'],
    ['SALLYPORT_ADMIN_HOSTS', 'admin.test, 10.0.0.1', (c) => c.admin.hosts, ['admin.test', '10.0.0.1']],
    ['SALLYPORT_STATE_KEY_FILE', '/run/key', (c) => c.stateKeyFile, '/run/key'],
    ['SALLYPORT_PROXY_CONFIG', '/etc/p.json', (c) => c.proxyConfigFile, '/etc/p.json'],
    ['SALLYPORT_REQUIRE_CONFIG', 'true', (c) => c.requireConfig, true],
    ['SALLYPORT_REQUIRE_CONFIG', '0', (c) => c.requireConfig, false],
    ['SALLYPORT_RESERVED_HOST', 'Proxy.Test.', (c) => c.reservedHost, 'proxy.test'],
    ['SALLYPORT_STATE_DIR', '/var/lib/x', (c) => c.stateDir, '/var/lib/x'],
    ['SALLYPORT_SECRETS_DIR', '/run/secrets', (c) => c.secretsDirectory, '/run/secrets'],
    ['SALLYPORT_SECRETS_FILE', '/run/s.env', (c) => c.secretsFile, '/run/s.env'],
    ['SALLYPORT_UPSTREAM_CA', '/etc/ca.pem', (c) => c.upstreamCaFile, '/etc/ca.pem'],
    [
      'SALLYPORT_EGRESS_ALLOW_PRIVATE',
      'loopback,10.1.0.0/16',
      (c) => [c.egress.allowLoopback, c.egress.allowAllPrivate, c.egress.allowCidrs.length],
      [true, false, 1],
    ],
    [
      'SALLYPORT_EGRESS_ALLOW_PRIVATE',
      'all',
      (c) => [c.egress.allowLoopback, c.egress.allowAllPrivate],
      [true, true],
    ],
    ['SALLYPORT_EGRESS_PRIVATE_BY_RULE', 'never', (c) => c.egress.privateByRule, 'never'],
    ['SALLYPORT_EGRESS_PORTS', '443, 8443', (c) => c.egress.ports, [443, 8443]],
    [
      'SALLYPORT_INJECT_CLEARTEXT',
      'mock.internal:8080',
      (c) => c.injectCleartext,
      [{ to: 'mock.internal', port: 8080 }],
    ],
    ['SALLYPORT_SCRUB', 'body', (c) => c.scrub, 'body'],
    ['SALLYPORT_ALLOW_WILDCARDS', '*.s3.amazonaws.com', (c) => c.allowWildcards, ['*.s3.amazonaws.com']],
    ['SALLYPORT_CALLBACK_ALLOW_PRIVATE', 'false', (c) => c.callback.allowPrivate, false],
    ['SALLYPORT_CALLBACK_TIMEOUT_MS', '500', (c) => c.callback.timeoutMs, 500],
    ['SALLYPORT_LOG_LEVEL', 'debug', (c) => c.logLevel, 'debug'],
    ['SALLYPORT_LOG_RECORDS', 'false', (c) => c.isRecorded, false],
    ['SALLYPORT_LOG_WHEN_BLOCKED', 'drop', (c) => c.whenBlocked, 'drop'],
    ['SALLYPORT_LIMITS_MAX_CONNECTIONS', '7', (c) => c.limits.maxConnections, 7],
    ['SALLYPORT_TIMEOUTS_RESPONSE_IDLE_MS', '1234', (c) => c.timeouts.responseIdleMs, 1_234],
  ];
  it.each(rows)('%s=%s is read', (name, value, get, expected) => {
    expect(get(parsed({}, { [name]: value }))).toEqual(expected);
  });

  it('has its place over the file, and an empty one has none', () => {
    const file = { listen: '127.0.0.1:1', limits: { max_connections: 5, max_fields: 9 } };
    const env = { SALLYPORT_LISTEN: '127.0.0.1:2', SALLYPORT_LIMITS_MAX_FIELDS: '' };
    expect(parsed(file, env)).toMatchObject({
      listen: { port: 2 },
      limits: { maxConnections: 5, maxFields: 9 },
    });
    expect(file.listen).toBe('127.0.0.1:1');
  });

  it('exists for every key', () => {
    const keys = configVariables().map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    const snake = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    expect(keys).toEqual(
      expect.arrayContaining([
        ...Object.keys(defaultLimits).map((key) => `limits.${snake(key)}`),
        ...Object.keys(defaultTimeouts).map((key) => `timeouts.${snake(key)}`),
        'ca.certificate',
        'ca.key',
      ]),
    );
    // Each is accepted as a key of the file: a variable for a key that does not exist could never be heeded.
    for (const key of keys) {
      const document = key.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), 'x');
      const result = parseConfig(document, {});
      const unknown = result.ok ? [] : result.issues.filter(({ type }) => type === 'extra_forbidden');
      expect([key, unknown]).toEqual([key, []]);
    }
  });

  it('is named where its value is refused', () => {
    const env = {
      SALLYPORT_LISTEN: 'nowhere',
      SALLYPORT_EGRESS_PORTS: '443,http',
      SALLYPORT_LIMITS_MAX_CONNECTIONS: 'many',
      SALLYPORT_REQUIRE_CONFIG: 'perhaps',
      SALLYPORT_ALLOW_CLIENTS: '10.0.0.1/8',
      SALLYPORT_CA_CERT: '/only/one',
    };
    const found = issues({ timeouts: { head_ms: 0 } }, env);
    for (const name of Object.keys(env).filter((name) => name !== 'SALLYPORT_CA_CERT'))
      expect(found.some((issue) => issue.startsWith(`${name}`))).toBe(true);
    expect(found.some((issue) => issue.startsWith('timeouts.head_ms: '))).toBe(true);
    expect(found.some((issue) => issue.startsWith('ca.key: '))).toBe(true);
  });
});

describe('an invalid document', () => {
  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ['a list', [], /^: /],
    ['an unknown key', { listne: 'x' }, /listne/],
    ['an unknown key below', { egress: { port: [1] } }, /^egress.*port/],
    ['port 0 for egress', { egress: { ports: [0] } }, /^egress\.ports\.0: /],
    ['a port beyond 65535', { egress: { ports: [65_536] } }, /^egress\.ports\.0: /],
    ['a CIDR with host bits', { egress: { allow_private: ['10.1.2.3/8'] } }, /^egress\.allow_private\.0: /],
    ...[
      ...['8.8.8.8', '1.0.0.0/8', '2606:4700::/32', '169.254.169.254', '169.254.0.0/16', 'fe80::/10'],
      ...['fd00:ec2::/32', '100.100.100.200', '0.0.0.0', '::', '224.0.0.0/4', 'ff02::1', '255.255.255.255'],
      ...['192.0.0.0/24', '::ffff:169.254.169.254'],
    ].map((range): [string, unknown, RegExp] => [
      `a private range without effect, ${range}`,
      { egress: { allow_private: ['all', range] } },
      /^egress\.allow_private\.1: has no effect/,
    ]),
    ['a name for a CIDR', { allow_clients: ['localhost'] }, /^allow_clients\.0: .*10\.0\.0\.0\/8/],
    [
      'cleartext without a port',
      { inject_cleartext: ['mock.internal'] },
      /^inject_cleartext\.0: .*host:port/,
    ],
    ['cleartext to a range without a port', { inject_cleartext: ['10.0.0.0/8'] }, /^inject_cleartext\.0: /],
    ['cleartext to any port', { inject_cleartext: ['10.0.0.0/8:0'] }, /^inject_cleartext\.0: /],
    ['cleartext to a wildcard', { inject_cleartext: ['*.internal:80'] }, /^inject_cleartext\.0: /],
    ['a limit of 0', { limits: { max_connections: 0 } }, /^limits\.max_connections: /],
    ['a limit with a fraction', { limits: { max_fields: 1.5 } }, /^limits\.max_fields: /],
    ['a time beyond a day', { timeouts: { head_ms: 86_400_001 } }, /^timeouts\.head_ms: /],
    ['a time as text', { timeouts: { head_ms: '10' } }, /^timeouts\.head_ms: /],
    ['auth that is neither', { auth: 'some' }, /^auth: .*none/],
    ['auth with a token in the file itself', { auth: { token: 'x' } }, /^auth/],
    ['a CA without its key', { ca: { certificate: 'ca.pem' } }, /^ca\.key: /],
    ['a log level of ours', { log: { level: 'loud' } }, /^log\.level: /],
  ];
  it.each(rows)('%s', (_, document, says) => {
    const found = issues(document);
    expect(found.length).toBeGreaterThan(0);
    expect(found.join('\n')).toMatch(says);
  });

  it('gets all issues at once', () => {
    expect(issues({ listen: 'x', limits: { max_fields: 0 }, log: { level: 'x' } })).toHaveLength(3);
  });

  it('cannot reach through __proto__', () => {
    const document: unknown = JSON.parse('{"__proto__": {"auth": "none", "listen": "0.0.0.0:1"}}');
    const result = parseConfig(document, {});
    if (result.ok) expect(result.value).toMatchObject({ listen: { host: '127.0.0.1' }, auth: undefined });
    expect(({} as Record<string, unknown>)['listen']).toBeUndefined();
  });
});

describe('an address to listen on', () => {
  it.each([
    ['127.0.0.1:3128', { host: '127.0.0.1', port: 3128 }],
    ['[::1]:3128', { host: '::1', port: 3128 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['3128', { host: '127.0.0.1', port: 3128 }],
    [':3128', { host: '0.0.0.0', port: 3128 }],
  ])('%s', (text, expected) => expect(parseListenAddress(text)).toEqual(expected));

  it.each([
    '',
    'localhost',
    '127.0.0.1:65536',
    '127.0.0.1:-1',
    '::1:3128',
    '[::1]',
    '127.0.0.1:',
    'a:1:2',
    '127.0.0.1:3128/',
  ])('%j is none', (text) => expect(parseListenAddress(text)).toBeTypeOf('string'));

  it.each([
    ['127.0.0.1', true],
    ['127.8.8.8', true],
    ['::1', true],
    ['0:0:0:0:0:0:0:1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['127.example.com', false],
    ['127.0.0.1.example.com', false],
    ['localhost.example.com', false],
    ['a.localhost', false],
  ])('%s is reached by this machine alone: %s', (host, isLoopback) => {
    expect(isLoopbackListen({ host })).toBe(isLoopback);
  });
});

describe('an address that is reachable from other machines', () => {
  it.each([
    ['0.0.0.0:3128'],
    ['[::]:3128'],
    [':3128'],
    ['10.0.0.1:3128'],
    ['127.example.com:3128'],
    ['proxy.internal:3128'],
  ])('%s needs a setting for which clients may use it', (listen) => {
    expect(issues({ listen }).join()).toMatch(/^listen: .*auth\.token_file.*allow_clients.*auth to "none"/);
  });

  it.each([
    ['a token', { auth: { token_file: '/run/token' } }],
    ['ranges', { allow_clients: ['10.0.0.0/8'] }],
    ['the word none', { auth: 'none' }],
  ])('is allowed with %s', (_, words) => {
    expect(parsed({ listen: '0.0.0.0:3128', ...words }).listen.host).toBe('0.0.0.0');
  });
});
