// The variables of programs that do not read those of most clients. Touches no file and no process.
import { basename } from 'node:path';
import { isIP } from 'node:net';
import { programBundleVariables } from '../../tls/trust-variables.ts';
import { withPreload } from './node-preload.ts';
import type { ProgramFiles } from './program-files.ts';
import type { Program } from './programs.ts';

export type ProgramInput = {
  /** Of the proxy, with the login if there is a token. */
  readonly url: string;
  readonly proxy: { readonly host: string; readonly port: number };
  readonly noProxy: readonly string[];
  readonly bundleFile: string;
  readonly files: ProgramFiles;
  readonly wanted: ReadonlySet<Program>;
  readonly caller: NodeJS.ProcessEnv;
};

/** What to set over the caller's variables. */
export function programVariables(input: ProgramInput) {
  const { url, bundleFile, files, wanted, caller } = input;
  const java = files.truststore === undefined ? undefined : javaOptions(input, files.truststore);
  const warnings: string[] = [];
  if (java?.hasOwnStore)
    warnings.push(
      'JAVA_TOOL_OPTIONS names a trustStore, so Java trusts the CA of the proxy only if that file contains it',
    );
  const variables: Record<string, string> = {
    ...bundleVariablesOf(wanted, bundleFile),
    ...(wanted.has('npm') && upperCafile(caller, bundleFile)),
    ...(wanted.has('yarn') && { YARN_HTTPS_PROXY: url, YARN_HTTP_PROXY: url }),
    // aiohttp asks for the proxy of a WebSocket by its scheme.
    ...(wanted.has('websocket') && { WSS_PROXY: url, wss_proxy: url, WS_PROXY: url, ws_proxy: url }),
    ...(wanted.has('perl') && { PERL_LWP_ENV_PROXY: '1' }),
    ...(files.wgetrc !== undefined && { SYSTEM_WGETRC: files.wgetrc }),
    ...(files.aptConfig !== undefined && isFree(caller['APT_CONFIG'], /^apt-[0-9a-f]{16}\.conf$/)
      ? { APT_CONFIG: files.aptConfig }
      : {}),
    ...(files.phpDirectory !== undefined && {
      PHP_INI_SCAN_DIR: withDirectory(caller['PHP_INI_SCAN_DIR'], files.phpDirectory),
    }),
    ...(files.agentPreload !== undefined && {
      NODE_OPTIONS: withPreload(caller['NODE_OPTIONS'], files.agentPreload),
    }),
    ...(java && { JAVA_TOOL_OPTIONS: java.options }),
  };
  return { variables, warnings };
}

function bundleVariablesOf(wanted: ReadonlySet<Program>, bundleFile: string): Record<string, string> {
  const entries = Object.entries(programBundleVariables) as [keyof typeof programBundleVariables, string][];
  return Object.fromEntries(
    entries.filter(([program]) => wanted.has(program)).map(([, name]) => [name, bundleFile]),
  );
}

/** npm reads its variables in any case, and takes one of them. */
function upperCafile(caller: NodeJS.ProcessEnv, bundleFile: string): Record<string, string> {
  return caller['NPM_CONFIG_CAFILE'] === undefined ? {} : { NPM_CONFIG_CAFILE: bundleFile };
}

/** Not set, or by an earlier `sallyport env`. */
function isFree(value: string | undefined, ours: RegExp): boolean {
  return value === undefined || value === '' || ours.test(basename(value));
}

/** An empty entry stands for the directory that PHP was built with. */
function withDirectory(before: string | undefined, directory: string): string {
  const kept = (before ?? '').split(':').filter((one) => !/\/php-ca-bundle-[0-9a-f]{16}$/.test(one));
  return [...(kept.length === 0 ? [''] : kept), directory].join(':');
}

// Replaced by ours: Java takes the last option of a name.
const PROXY_OPTION = /(?:^|\s)-D(?:https?\.proxy(?:Host|Port)|http\.nonProxyHosts)=\S*/g;
// Of an earlier `sallyport env`.
const OUR_STORE = /(?:^|\s)-Djavax\.net\.ssl\.trustStore=\S*\/truststore-[0-9a-f]{16}\.p12/g;
const OUR_STORE_TYPE = /(?:^|\s)-Djavax\.net\.ssl\.trustStoreType=PKCS12(?=\s|$)/g;

// Java 8 ignores a longer variable altogether.
const MAX_JAVA_OPTIONS = 1_000;

/**
 * No login: the JVM prints the variable to standard error, and no property makes its HTTP clients send one. With a token
 * Java gets a 407, instead of bypassing the proxy.
 */
function javaOptions({ proxy, noProxy, caller }: ProgramInput, truststore: string) {
  const callers = (caller['JAVA_TOOL_OPTIONS'] ?? '').replaceAll(PROXY_OPTION, '').replaceAll(OUR_STORE, '');
  const hasOwnStore = callers.includes('-Djavax.net.ssl.trustStore=');
  const kept = (hasOwnStore ? callers : callers.replaceAll(OUR_STORE_TYPE, '')).trim();
  const { host, port } = proxy;
  const fixed = [
    ...(kept === '' ? [] : [kept]),
    ...['https', 'http'].flatMap((scheme) => [
      `-D${scheme}.proxyHost=${host}`,
      `-D${scheme}.proxyPort=${port}`,
    ]),
    ...(hasOwnStore
      ? []
      : [`-Djavax.net.ssl.trustStore=${truststore}`, '-Djavax.net.ssl.trustStoreType=PKCS12']),
  ].join(' ');
  const spare = MAX_JAVA_OPTIONS - fixed.length;
  return { options: `${fixed} ${nonProxyHosts(noProxy, spare)}`.trimEnd(), hasOwnStore };
}

/** At most `spare` characters. An entry that is left out costs nothing: the proxy tunnels such hosts. */
function nonProxyHosts(noProxy: readonly string[], spare: number): string {
  const name = '-Dhttp.nonProxyHosts=';
  // Java adds loopback to every list but an empty one, and a rule may name a host there.
  if (LOOPBACK.some((entry) => !noProxy.includes(entry))) return name;
  let list = '';
  for (const pattern of noProxy.flatMap(javaPatterns)) {
    const longer = list === '' ? pattern : `${list}|${pattern}`;
    if (name.length + longer.length < spare) list = longer;
  }
  return list === '' ? '' : `${name}${list}`;
}

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '::1'];

/** An entry of NO_PROXY in its widest meaning. Java knows no ranges of addresses. */
function javaPatterns(entry: string): readonly string[] {
  if (entry === '*') return ['*'];
  if (isIP(entry) !== 0) return [isIP(entry) === 6 ? `[${entry}]` : entry];
  if (!/^(?:\*?\.)?[\w-]+(?:\.[\w-]+)*$/.test(entry)) return [];
  const zone = entry.replace(/^\*?\./, '');
  return zone === entry ? [zone, `*.${zone}`] : [`*.${zone}`];
}
