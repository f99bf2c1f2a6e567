// The variables that make a client use the proxy, trust its CA and hold no key. Touches no file and no process.
import { formatAddress } from '../../base/listen-address.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { toNoProxy } from './no-proxy.ts';

export type ClientEnvironmentInput = {
  readonly proxy: { readonly host: string; readonly port: number; readonly token?: string | undefined };
  /** `bundleFile`: all trusted certificates. `extraFile`: those to add to a client's own roots. */
  readonly trust: { readonly bundleFile: string; readonly extraFile: string };
  /** Undefined: there are no rules. */
  readonly proxyConfig: ProxyConfig | undefined;
  readonly caller: NodeJS.ProcessEnv;
};

export type ClientEnvironment = {
  readonly variables: Readonly<Record<string, string>>;
  /** For the user. */
  readonly warnings: readonly string[];
};

/** Variables that name a file of CA certificates which REPLACES a client's own roots. */
export const bundleVariables: readonly string[] = [
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  'CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE',
  'NIX_SSL_CERT_FILE',
  'CODEX_CA_CERTIFICATE',
  'BUNDLE_SSL_CA_CERT',
  'HEX_CACERTS_PATH',
  'DENO_CERT',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
];

/** Names a file of CA certificates that Node trusts besides its own roots. */
export const extraVariable = 'NODE_EXTRA_CA_CERTS';

/** The variables to set over the caller's, placeholders of the rules (`env_vars`) among them. */
export function toClientEnvironment(input: ClientEnvironmentInput): ClientEnvironment {
  const { trust, proxyConfig, caller } = input;
  const url = proxyUrl(input.proxy);
  const noProxy = toNoProxy(proxyConfig, [caller['NO_PROXY'], caller['no_proxy']]);
  const own: Record<string, string> = {
    ...inBothCases(['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'GRPC_PROXY'], url),
    ...inBothCases(['NO_PROXY'], noProxy.entries.join(',')),
    // Without it Node reads none of the above.
    NODE_USE_ENV_PROXY: '1',
    ...Object.fromEntries(bundleVariables.map((name) => [name, trust.bundleFile])),
    [extraVariable]: trust.extraFile,
    ...(input.proxy.token === undefined ? {} : gitProxyLogin(caller)),
  };
  const placeholders = rulePlaceholders(proxyConfig, own);
  const conflicts = noProxy.conflicts.map(
    ({ entry, pattern }) =>
      `${entry} in NO_PROXY makes requests to ${pattern} bypass the proxy, so no header is injected: remove it`,
  );
  return {
    variables: { ...placeholders.variables, ...own },
    warnings: [...conflicts, ...placeholders.warnings],
  };
}

/** The caller's environment without the proxy's own variables: secrets and their files, settings, thread pool size. */
export function withoutProxySettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isPoolOurs = env[POOL_IS_OURS] !== undefined;
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => !name.startsWith('SALLYPORT_') && !(isPoolOurs && name === 'UV_THREADPOOL_SIZE'),
    ),
  );
}

/** Lines that a POSIX shell can `eval`; no value can be read as a command. */
export function toShellExports(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", String.raw`'\''`)}'\n`)
    .join('');
}

// Set by the launcher if it chose the size because the user had not.
const POOL_IS_OURS = 'SALLYPORT_OWN_THREADPOOL';

// http:// for ALL_PROXY as well: some clients reject a scheme that they do not know.
function proxyUrl({ token, ...address }: ClientEnvironmentInput['proxy']): string {
  const login = token === undefined ? '' : `sallyport:${encodeURIComponent(token)}@`;
  return `http://${login}${formatAddress(address)}`;
}

function inBothCases(names: readonly string[], value: string): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => [
      [name, value],
      [name.toLowerCase(), value],
    ]),
  );
}

/** After a 407 git asks the user for the password unless it is configured to send it at once. */
function gitProxyLogin(caller: NodeJS.ProcessEnv): Record<string, string> {
  const [key, value] = ['http.proxyAuthMethod', 'basic'];
  const count = /^[0-9]{1,4}$/.test(caller['GIT_CONFIG_COUNT'] ?? '')
    ? Number(caller['GIT_CONFIG_COUNT'])
    : 0;
  // The last setting wins, and a shell may evaluate these lines more than once.
  const isLast = caller[`GIT_CONFIG_KEY_${count - 1}`] === key;
  if (isLast && caller[`GIT_CONFIG_VALUE_${count - 1}`] === value) return {};
  return {
    GIT_CONFIG_COUNT: String(count + 1),
    [`GIT_CONFIG_KEY_${count}`]: key,
    [`GIT_CONFIG_VALUE_${count}`]: value,
  };
}

/** `env_vars` of the enabled rules; the first rule that sets a name wins, as with hosts. */
function rulePlaceholders(
  config: ProxyConfig | undefined,
  own: Readonly<Record<string, string>>,
): ClientEnvironment {
  const variables: Record<string, string> = {};
  const warnings: string[] = [];
  for (const [i, rule] of (config?.rules ?? []).entries()) {
    if (!rule.enabled) continue;
    for (const [name, value] of Object.entries(rule.env_vars)) {
      if (Object.hasOwn(own, name) || CONTROLLING.test(name))
        warnings.push(
          `env_vars.${name} of ${rule.name ?? `rules[${i}]`} is not set: the name does not look like a credential`,
        );
      else if (!Object.hasOwn(variables, name)) variables[name] = value;
    }
  }
  return { variables, warnings };
}

// A tenant writes the rules, and must not control what a shell, a loader or an interpreter runs.
const CONTROLLING: RegExp = new RegExp(
  `^(?:${[
    'PATH|HOME|XDG_.*|SHELL|ENV|IFS|PS[0-4]|PROMPT_COMMAND|BASH_ENV|BASHOPTS|SHELLOPTS|ZDOTDIR',
    'EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|SSH_ASKPASS|SUDO_ASKPASS',
    'LD_.*|DYLD_.*|GCONV_PATH|GLIBC_TUNABLES|HOSTALIASES|SSL_CERT_DIR|SSLKEYLOGFILE|SALLYPORT_.*',
    'OPENSSL_(?:CONF|MODULES|ENGINES)|CURL_HOME|WGETRC|NODE_OPTIONS|NODE_PATH|NODE_TLS_REJECT_UNAUTHORIZED',
    '(?:npm|NPM)_(?:config|CONFIG)_(?!_auth|_AUTH).*|PIP_.*|PYTHON[A-Z0-9]*|PERL5[A-Z]*|PERLLIB|RUBY[A-Z]*|LUA_(?:INIT|C?PATH).*',
    'PHPRC|PHP_INI_SCAN_DIR|DOTNET_STARTUP_HOOKS|CLASSPATH|(?:_|JDK_)JAVA_OPTIONS|JAVA_TOOL_OPTIONS',
    'GOFLAGS|MAKEFLAGS|CARGO_(?!REGISTR).*|RUSTC(?:_.*)?|RUSTFLAGS|AWS_CONFIG_FILE|KUBECONFIG',
    'GIT_(?:CONFIG.*|SSH|SSH_COMMAND|EXEC_PATH|ASKPASS|EDITOR|SEQUENCE_EDITOR|PAGER|PROXY_COMMAND|EXTERNAL_DIFF)',
    'GIT_(?:TEMPLATE_DIR|DIR|COMMON_DIR|WORK_TREE|SSL_NO_VERIFY|ALLOW_PROTOCOL)',
  ].join('|')})$`,
);
