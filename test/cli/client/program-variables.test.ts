import { describe, expect, it } from 'vitest';
import { noProgramFiles, type ProgramFiles } from '../../../src/cli/client/program-files.ts';
import { type ProgramInput, programVariables } from '../../../src/cli/client/program-variables.ts';
import { programs, programsWithout } from '../../../src/cli/client/programs.ts';

const URL_OF_PROXY = 'http://sallyport:token@127.0.0.1:3128';
const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
const DIGEST = '0123456789abcdef';
const OLD = 'fedcba9876543210';
const files: ProgramFiles = {
  wgetrc: `/t/wgetrc-${DIGEST}.conf`,
  aptConfig: `/t/apt-${DIGEST}.conf`,
  phpDirectory: `/t/php-ca-bundle-${DIGEST}`,
  truststore: `/t/truststore-${DIGEST}.p12`,
  agentPreload: `/t/agent-preload-${DIGEST}.cjs`,
};

function variablesOf(given: Partial<ProgramInput> = {}): ReturnType<typeof programVariables> {
  return programVariables({
    url: URL_OF_PROXY,
    proxy: { host: '127.0.0.1', port: 3128 },
    noProxy: LOOPBACK,
    bundleFile: '/t/bundle.pem',
    files,
    wanted: programsWithout(undefined),
    caller: {},
    ...given,
  });
}

const PROXY_OPTIONS =
  '-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128';
const STORE_OPTIONS = `-Djavax.net.ssl.trustStore=/t/truststore-${DIGEST}.p12 -Djavax.net.ssl.trustStoreType=PKCS12`;
const DIRECT_OPTION = '-Dhttp.nonProxyHosts=localhost|*.localhost|127.0.0.1|[::1]';

it('each program gets its variables', () => {
  expect(variablesOf()).toEqual({
    variables: {
      npm_config_cafile: '/t/bundle.pem',
      YARN_HTTPS_CA_FILE_PATH: '/t/bundle.pem',
      YARN_HTTPS_PROXY: URL_OF_PROXY,
      YARN_HTTP_PROXY: URL_OF_PROXY,
      HTTPLIB2_CA_CERTS: '/t/bundle.pem',
      PERL_LWP_SSL_CA_FILE: '/t/bundle.pem',
      PERL_LWP_ENV_PROXY: '1',
      WSS_PROXY: URL_OF_PROXY,
      wss_proxy: URL_OF_PROXY,
      WS_PROXY: URL_OF_PROXY,
      ws_proxy: URL_OF_PROXY,
      SYSTEM_WGETRC: files.wgetrc,
      APT_CONFIG: files.aptConfig,
      PHP_INI_SCAN_DIR: `:${files.phpDirectory}`,
      NODE_OPTIONS: `--require=${files.agentPreload}`,
      JAVA_TOOL_OPTIONS: `${PROXY_OPTIONS} ${STORE_OPTIONS} ${DIRECT_OPTION}`,
    },
    warnings: [],
  });
});

it('a program that is left out gets none, and all others theirs', () => {
  expect(variablesOf({ wanted: new Set(), files: noProgramFiles }).variables).toEqual({});
  for (const program of programs.filter((name) => !['apt', 'java', 'node', 'php', 'wget'].includes(name))) {
    const without = variablesOf({ wanted: programsWithout(program) }).variables;
    expect([program, Object.keys(without).length < Object.keys(variablesOf().variables).length]).toEqual([
      program,
      true,
    ]);
  }
});

it('a variable of npm in capitals does not win over ours', () => {
  const { variables } = variablesOf({ caller: { NPM_CONFIG_CAFILE: '/old.pem' } });
  expect(variables).toMatchObject({ npm_config_cafile: '/t/bundle.pem', NPM_CONFIG_CAFILE: '/t/bundle.pem' });
});

describe('a value of the caller stays', () => {
  const rows: readonly (readonly [name: string, before: string, after: string | undefined])[] = [
    ['APT_CONFIG', '/etc/mine.conf', undefined],
    ['APT_CONFIG', `/t/apt-${OLD}.conf`, files.aptConfig],
    ['PHP_INI_SCAN_DIR', '/mine', `/mine:${files.phpDirectory}`],
    ['PHP_INI_SCAN_DIR', `:/mine:/t/php-ca-bundle-${OLD}`, `:/mine:${files.phpDirectory}`],
    ['PHP_INI_SCAN_DIR', `:/t/php-ca-bundle-${OLD}`, `:${files.phpDirectory}`],
    ['NODE_OPTIONS', '--max-old-space-size=99', `--max-old-space-size=99 --require=${files.agentPreload}`],
    ['JAVA_TOOL_OPTIONS', '-Xmx1g', `-Xmx1g ${PROXY_OPTIONS} ${STORE_OPTIONS} ${DIRECT_OPTION}`],
  ];
  it.each(rows)('%s=%s', (name, before, after) => {
    expect(variablesOf({ caller: { [name]: before } }).variables[name]).toBe(after);
  });
});

describe('the options of Java', () => {
  const optionsFor = (given: Partial<ProgramInput>): string =>
    variablesOf(given).variables['JAVA_TOOL_OPTIONS'] ?? '';

  it('replace those of an earlier evaluation and the caller’s proxy', () => {
    const once = optionsFor({});
    expect(optionsFor({ caller: { JAVA_TOOL_OPTIONS: once } })).toBe(once);
    const before = `-Dhttps.proxyHost=old -Xmx1g -Djavax.net.ssl.trustStore=/o/truststore-${OLD}.p12 -Djavax.net.ssl.trustStoreType=PKCS12`;
    expect(optionsFor({ caller: { JAVA_TOOL_OPTIONS: before } })).toBe(`-Xmx1g ${once}`);
  });

  it('leave a truststore of the caller, and a warning says so', () => {
    const before = '-Djavax.net.ssl.trustStore=/corp.p12 -Djavax.net.ssl.trustStoreType=PKCS12';
    const { variables, warnings } = variablesOf({ caller: { JAVA_TOOL_OPTIONS: before } });
    expect(variables['JAVA_TOOL_OPTIONS']).toBe(`${before} ${PROXY_OPTIONS} ${DIRECT_OPTION}`);
    expect(warnings).toEqual([expect.stringMatching(/^JAVA_TOOL_OPTIONS names a trustStore/)]);
  });

  it('contain no token, because Java prints them', () => {
    expect(optionsFor({})).not.toContain('token');
  });

  const rows: readonly (readonly [what: string, noProxy: readonly string[], value: string])[] = [
    ['nothing direct where a rule names a loopback host', ['::1', 'a.test'], ''],
    [
      'entries in their widest meaning',
      [...LOOPBACK, 'a.test', '.b.test', '*.c.test'],
      'localhost|*.localhost|127.0.0.1|[::1]|a.test|*.a.test|*.b.test|*.c.test',
    ],
    [
      'no ranges and no ports, which Java does not know',
      [...LOOPBACK, '10.0.0.0/8', 'a.test:8443', '[2001:db8::1]', '<local>'],
      'localhost|*.localhost|127.0.0.1|[::1]',
    ],
  ];
  it.each(rows)('hold %s', (_, noProxy, value) => {
    expect(/-Dhttp\.nonProxyHosts=(\S*)/.exec(optionsFor({ noProxy }))?.[1]).toBe(value);
  });

  it('are short enough for Java 8', () => {
    const many = Array.from({ length: 200 }, (_, i) => `host-${i}.example.test`);
    const options = optionsFor({ noProxy: [...LOOPBACK, ...many] });
    expect(options.length).toBeLessThanOrEqual(1_000);
    expect(options).toContain('|host-0.example.test|');
  });
});
