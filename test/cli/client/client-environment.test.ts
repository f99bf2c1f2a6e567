import { describe, expect, it } from 'vitest';
import {
  type ClientEnvironment,
  type ClientEnvironmentInput,
  toClientEnvironment,
  withoutProxySettings,
} from '../../../src/cli/client/client-environment.ts';
import { noProgramFiles } from '../../../src/cli/client/program-files.ts';
import { programsWithout } from '../../../src/cli/client/programs.ts';
import type { ProxyConfig } from '../../../src/policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../../src/policy/document/proxy-config.ts';

const TOKEN = "t/k:n@'%+0123456789";

function environment(
  input: Partial<ClientEnvironmentInput['proxy']> & {
    readonly rules?: readonly unknown[];
    readonly caller?: NodeJS.ProcessEnv;
  } = {},
): ClientEnvironment {
  const { rules, caller = {}, ...proxy } = input;
  return toClientEnvironment({
    proxy: { host: '127.0.0.1', port: 3128, ...proxy },
    trust: { bundleFile: '/t/bundle.pem', extraFile: '/t/extra.pem' },
    files: noProgramFiles,
    wanted: programsWithout(undefined),
    proxyConfig: rules && authored(rules),
    caller,
  });
}

function authored(rules: readonly unknown[]): ProxyConfig {
  const parsed = parseProxyConfig({ rules });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
  return parsed.value;
}

function ruleWith(env_vars: Record<string, string>, more: object = {}): unknown {
  const headers = [{ name: 'X-Key', type: 'plaintext', value: 'k' }];
  return { match_hosts: ['api.test'], headers, env_vars, ...more };
}

describe('the address', () => {
  const rows: readonly (readonly [string, Partial<ClientEnvironmentInput['proxy']>, string])[] = [
    ['of a proxy', {}, 'http://127.0.0.1:3128'],
    ['of a proxy on IPv6', { host: '::1' }, 'http://[::1]:3128'],
    ['with a token', { token: 'abcdef0123456789' }, 'http://sallyport:abcdef0123456789@127.0.0.1:3128'],
    [
      'with a token that means something in a URL',
      { token: TOKEN },
      "http://sallyport:t%2Fk%3An%40'%25%2B0123456789@127.0.0.1:3128",
    ],
  ];
  it.each(rows)('%s is in every proxy variable, in both cases', (_, proxy, url) => {
    const { variables } = environment(proxy);
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'GRPC_PROXY']) {
      expect([name, variables[name]]).toEqual([name, url]);
      expect([name, variables[name.toLowerCase()]]).toEqual([name, url]);
    }
    expect(decodeURIComponent(new URL(url).password)).toBe(proxy.token ?? '');
  });
});

it('the caller’s NO_PROXY stays, in both cases, whichever case it had', () => {
  const { variables } = environment({ caller: { NO_PROXY: 'a.test', no_proxy: 'b.test' } });
  expect(variables).toMatchObject({
    NO_PROXY: 'a.test,b.test,localhost,127.0.0.1,::1',
    no_proxy: 'a.test,b.test,localhost,127.0.0.1,::1',
  });
});

it('an entry of NO_PROXY that bypasses a rule’s host is reported by name', () => {
  const { warnings } = environment({ rules: [ruleWith({})], caller: { no_proxy: 'test' } });
  expect(warnings).toEqual([
    expect.stringMatching(/^test in NO_PROXY makes requests to api\.test bypass the proxy/),
  ]);
});

it('an entry of NO_PROXY that bypasses many hosts is reported once', () => {
  const rules = [ruleWith({}, { match_hosts: ['a.test', 'b.test', 'c.test', 'd.example'] })];
  const { warnings } = environment({ rules, caller: { NO_PROXY: 'test,example' } });
  expect(warnings).toEqual([
    expect.stringMatching(/^test in NO_PROXY makes requests to a\.test and 2 more hosts of the rules bypass/),
    expect.stringMatching(/^example in NO_PROXY makes requests to d\.example bypass/),
  ]);
});

it('variables that replace a client’s roots name the bundle, the one that adds to them names the addition', () => {
  const { variables } = environment({ caller: { PIP_CERT: '/old.pem' } });
  const names = (file: string): string[] =>
    Object.keys(variables)
      .filter((name) => variables[name] === file)
      .toSorted();
  expect(names('/t/bundle.pem')).toEqual([
    'AWS_CA_BUNDLE',
    'BUNDLE_SSL_CA_CERT',
    'CARGO_HTTP_CAINFO',
    'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
    'CODEX_CA_CERTIFICATE',
    'CURL_CA_BUNDLE',
    'DENO_CERT',
    'GIT_SSL_CAINFO',
    'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
    'HEX_CACERTS_PATH',
    'HTTPLIB2_CA_CERTS',
    'NIX_SSL_CERT_FILE',
    'PERL_LWP_SSL_CA_FILE',
    'PIP_CERT',
    'REQUESTS_CA_BUNDLE',
    'SSL_CERT_FILE',
    'YARN_HTTPS_CA_FILE_PATH',
    'npm_config_cafile',
  ]);
  expect(names('/t/extra.pem')).toEqual(['NODE_EXTRA_CA_CERTS']);
  expect(variables).toMatchObject({ NODE_USE_ENV_PROXY: '1' });
});

describe('git', () => {
  const key = 'http.proxyAuthMethod';
  const token = 'abcdef0123456789';
  const one = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'user.name', GIT_CONFIG_VALUE_0: 'x' };
  const rows: readonly (readonly [string, object, NodeJS.ProcessEnv, Record<string, string>])[] = [
    ['gets no setting where there is no token', {}, {}, {}],
    [
      'is configured to send the token at once',
      { token },
      {},
      { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: key, GIT_CONFIG_VALUE_0: 'basic' },
    ],
    [
      'keeps its other settings',
      { token },
      one,
      { GIT_CONFIG_COUNT: '2', GIT_CONFIG_KEY_1: key, GIT_CONFIG_VALUE_1: 'basic' },
    ],
    [
      'is configured once only',
      { token },
      { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: key, GIT_CONFIG_VALUE_0: 'basic' },
      {},
    ],
  ];
  it.each(rows)('%s', (_, proxy, caller, expected) => {
    const entries = Object.entries(environment({ ...proxy, caller }).variables);
    expect(Object.fromEntries(entries.filter(([name]) => name.startsWith('GIT_CONFIG')))).toEqual(expected);
  });
});

describe('placeholders of rules', () => {
  it('are set; the first rule that names one wins, and a disabled rule is ignored', () => {
    const rules = [
      ruleWith({ OFF: 'x' }, { enabled: false }),
      ruleWith({ GH_TOKEN: 'first' }),
      ruleWith({ GH_TOKEN: 'second', API_KEY: 'proxy-injected' }, { match_hosts: ['b.test'] }),
    ];
    const { variables, warnings } = environment({ rules });
    expect(variables).toMatchObject({ GH_TOKEN: 'first', API_KEY: 'proxy-injected' });
    expect(variables).not.toHaveProperty('OFF');
    expect(warnings).toEqual([]);
  });

  it.each([
    'HTTPS_PROXY',
    'no_proxy',
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'NODE_OPTIONS',
    'NODE_TLS_REJECT_UNAUTHORIZED',
    'LD_PRELOAD',
    'DYLD_INSERT_LIBRARIES',
    'PATH',
    'BASH_ENV',
    'PS1',
    'PROMPT_COMMAND',
    'PYTHONSTARTUP',
    'GIT_SSH_COMMAND',
    'GIT_CONFIG_COUNT',
    'SSLKEYLOGFILE',
    'SALLYPORT_CA_KEY',
    // Of a library, a package manager or a compiler: a file or a program of the author's choice is loaded or run.
    'GCONV_PATH',
    'OPENSSL_CONF',
    'npm_config_node_options',
    'NPM_CONFIG_SCRIPT_SHELL',
    'PIP_INDEX_URL',
    'PYTHONUSERBASE',
    'PYTHONWARNINGS',
    'PERL5LIB',
    'LUA_INIT_5_4',
    'DOTNET_STARTUP_HOOKS',
    'CLASSPATH',
    'GOFLAGS',
    'CARGO_BUILD_RUSTC_WRAPPER',
    'RUSTC_WRAPPER',
    'LESSOPEN',
    'AWS_CONFIG_FILE',
    'GIT_TEMPLATE_DIR',
    'APT_CONFIG',
    'SYSTEM_WGETRC',
    'YARN_YARN_PATH',
    // No certificate is asked for.
    'GIT_SSL_NO_VERIFY',
  ])('do not set %s, and a warning says so', (name) => {
    const plain = environment({ rules: [ruleWith({})] });
    const { variables, warnings } = environment({ rules: [ruleWith({ [name]: 'evil' }, { name: 'mine' })] });
    expect(variables).toEqual(plain.variables);
    expect(warnings).toEqual([expect.stringContaining(`env_vars.${name} of mine is not set`)]);
  });

  it.each([
    'NODE_AUTH_TOKEN',
    'NPM_TOKEN',
    'GIT_TOKEN',
    'PYPI_TOKEN',
    'PYTHON_KEY',
    'MY_PATH',
    'LDAP_PASSWORD',
    'AWS_SECRET_ACCESS_KEY',
    'CARGO_REGISTRY_TOKEN',
    'npm_config__auth',
    'YARN_NPM_AUTH_TOKEN',
  ])('may set %s', (name) => {
    const { variables, warnings } = environment({ rules: [ruleWith({ [name]: 'x' })] });
    expect([variables[name], warnings]).toEqual(['x', []]);
  });
});

describe('of the caller’s environment a command inherits', () => {
  const rows: readonly (readonly [string, NodeJS.ProcessEnv, readonly string[]])[] = [
    ['what is the caller’s', { PATH: '/bin', API_KEY: 'x' }, ['PATH', 'API_KEY']],
    [
      'nothing that is the proxy’s: secrets, where they lie, tokens, the hand-over',
      {
        A: 'x',
        SALLYPORT_SECRET_TOKEN: 'x',
        SALLYPORT_SECRET_TOKEN_FILE: '/x',
        SALLYPORT_SECRETS_DIR: '/x',
        SALLYPORT_AUTH: 'none',
        SALLYPORT_AUTH_TOKEN_FILE: '/x',
        SALLYPORT_CA_KEY: '/x',
        SALLYPORT_HANDED_SECRETS: 'key:/x',
      },
      ['A'],
    ],
    [
      'no thread pool that the launcher chose',
      { A: 'x', UV_THREADPOOL_SIZE: '32', SALLYPORT_OWN_THREADPOOL: '1' },
      ['A'],
    ],
    ['a thread pool that the caller chose', { UV_THREADPOOL_SIZE: '32' }, ['UV_THREADPOOL_SIZE']],
  ];
  it.each(rows)('%s', (_, env, names) => {
    const before = { ...env };
    expect(Object.keys(withoutProxySettings(env))).toEqual(names);
    expect(env).toEqual(before);
  });
});
