// What `run` and `env` share: the rules as their author wrote them, and the variables for clients of one proxy. Opens no
// port.
import { readInput } from '../../base/input-error.ts';
import type { ProxyConfig } from '../../policy/document/proxy-config-schema.ts';
import { parseProxyConfig } from '../../policy/document/proxy-config.ts';
import { readProxyToken } from '../../sidecar/access-tokens.ts';
import type { Config } from '../../sidecar/config.ts';
import { type ClientEnvironment, toClientEnvironment } from './client-environment.ts';
import { readDocument } from '../document.ts';
import { formatIssues } from '../issue-lines.ts';
import { writeTrustFiles } from './trust-files.ts';

/** `document`: the content of the file; `authored`: the same, parsed. */
export type Rules = { readonly document: unknown; readonly authored: ProxyConfig };

/** The proxy_config file, if one is set. `invalid`: all issues are on standard error. */
export async function readRules(config: Config): Promise<Rules | undefined | 'invalid'> {
  if (config.proxyConfigFile === undefined) return undefined;
  const document = await readDocument(config.proxyConfigFile);
  const parsed = parseProxyConfig(document, { allowWildcards: config.allowWildcards });
  if (parsed.ok) return { document, authored: parsed.value };
  process.stderr.write(formatIssues(config.proxyConfigFile, parsed.issues));
  return 'invalid';
}

/** Writes the CA files into `directory` and returns the variables to set. Warnings go to standard error. */
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
  const token = await readInput(() => readProxyToken(config));
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
