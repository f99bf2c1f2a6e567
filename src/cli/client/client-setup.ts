// What `run` and `env` share: the rules as their author wrote them, and everything that clients of one proxy are told.
// Opens no port.
import { readInput } from '../../base/input-error.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import type { Config } from '../../sidecar/config.ts';
import { readProxyToken } from '../../sidecar/secret-files.ts';
import { type ClientEnvironment, toClientEnvironment } from './client-environment.ts';
import { readDocument } from '../document.ts';
import { formatIssues } from '../issue-lines.ts';
import { writeTrustFiles } from './trust-files.ts';

/** `document`: what stands in the file; `authored`: the same, read. */
export type Rules = { readonly document: unknown; readonly authored: ProxyConfig };

/** The proxy_config file, if one is set. `refused`: every issue is on standard error. */
export async function readRules(config: Config): Promise<Rules | undefined | 'refused'> {
  if (config.proxyConfigFile === undefined) return undefined;
  const document = await readDocument(config.proxyConfigFile);
  const parsed = parseProxyConfig(document, { allowWildcards: config.allowWildcards });
  if (parsed.ok) return { document, authored: parsed.value };
  process.stderr.write(formatIssues(config.proxyConfigFile, parsed.issues));
  return 'refused';
}

/** Writes the CA files into `directory` and says what to set. Warnings go to standard error. */
export async function prepareClients(
  config: Config,
  proxy: {
    readonly host: string;
    readonly port: number;
    readonly caPem: string;
    readonly rules: Rules | undefined;
  },
  { directory, caller }: { readonly directory: string; readonly caller: NodeJS.ProcessEnv },
): Promise<ClientEnvironment['variables']> {
  const { host, port, caPem, rules } = proxy;
  const { auth } = config;
  const token = auth && auth !== 'none' ? await readInput(() => readProxyToken(auth.tokenFile)) : undefined;
  const trust = await writeTrustFiles(directory, { caPem, caller });
  const { variables, warnings } = toClientEnvironment({
    proxy: { host, port, token },
    trust,
    proxyConfig: rules?.authored,
    caller,
  });
  for (const warning of [...trust.warnings, ...warnings]) process.stderr.write(`sallyport: ${warning}\n`);
  return variables;
}
