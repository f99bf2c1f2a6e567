// The variables that make a client use the proxy, trust its CA and hold no key. Touches no file and no process.
import { formatAddress } from '../../base/listen-address.ts';
import { placeholdersOf } from '../../policy/document/placeholders.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { extraVariable, sharedBundleVariables } from '../../tls/trust-variables.ts';
import { exposedSecretWarnings } from './exposed-secrets.ts';
import { toNoProxy } from './no-proxy.ts';
import type { ProgramFiles } from './program-files.ts';
import { programVariables } from './program-variables.ts';
import type { Program } from './programs.ts';

export type ClientEnvironmentInput = {
  readonly proxy: {
    readonly host: string;
    readonly port: number;
    /** The user name beside the token. The proxy ignores it; people read it. */
    readonly user?: string | undefined;
    readonly token?: string | undefined;
  };
  /** `bundleFile`: all trusted certificates. `extraFile`: those to add to a client's own roots. */
  readonly trust: { readonly bundleFile: string; readonly extraFile: string };
  readonly files: ProgramFiles;
  /** The programs that get variables of their own. */
  readonly wanted: ReadonlySet<Program>;
  /** Undefined: there are no rules. */
  readonly proxyConfig: ProxyConfig | undefined;
  readonly caller: NodeJS.ProcessEnv;
};

export type ClientEnvironment = {
  readonly variables: Readonly<Record<string, string>>;
  /** For the user. */
  readonly warnings: readonly string[];
};

/** The variables to set over the caller's, placeholders of the rules (`env_vars`) among them. */
export function toClientEnvironment(input: ClientEnvironmentInput): ClientEnvironment {
  const { trust, files, wanted, proxyConfig, caller } = input;
  const url = proxyUrl(input.proxy);
  const noProxy = toNoProxy(proxyConfig, [caller['NO_PROXY'], caller['no_proxy']]);
  const program = programVariables({
    url,
    proxy: input.proxy,
    noProxy: noProxy.entries,
    bundleFile: trust.bundleFile,
    files,
    wanted,
    caller,
  });
  const own: Record<string, string> = {
    ...inBothCases(['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'GRPC_PROXY'], url),
    ...inBothCases(['NO_PROXY'], noProxy.entries.join(',')),
    // Without it Node reads none of the above.
    NODE_USE_ENV_PROXY: '1',
    ...Object.fromEntries(sharedBundleVariables.map((name) => [name, trust.bundleFile])),
    [extraVariable]: trust.extraFile,
    ...(input.proxy.token === undefined ? {} : gitProxyLogin(caller)),
    ...program.variables,
  };
  const placeholders = placeholdersOf(proxyConfig?.rules ?? [], (name) => Object.hasOwn(own, name));
  const conflicts = [...Map.groupBy(noProxy.conflicts, ({ entry }) => entry)].map(([entry, found]) => {
    const more = found.length > 1 ? ` and ${found.length - 1} more hosts of the rules` : '';
    const hosts = `${found[0]?.pattern}${more}`;
    return `${entry} in NO_PROXY makes requests to ${hosts} bypass the proxy, so no header is injected: remove it`;
  });
  const variables = { ...placeholders.variables, ...own };
  const exposed = exposedSecretWarnings(proxyConfig, caller, variables);
  return {
    variables,
    warnings: [...conflicts, ...exposed, ...program.warnings, ...placeholders.warnings],
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

// Set by the launcher if it chose the size because the user had not.
const POOL_IS_OURS = 'SALLYPORT_OWN_THREADPOOL';

// http:// for ALL_PROXY as well: some clients reject a scheme that they do not know.
function proxyUrl({ user = 'sallyport', token, ...address }: ClientEnvironmentInput['proxy']): string {
  const login = token === undefined ? '' : `${user}:${encodeURIComponent(token)}@`;
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
