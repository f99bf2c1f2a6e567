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
import { publishedFiles, writingTo } from '../settings.ts';
import { noProgramFiles, writeProgramFiles } from './program-files.ts';
import { type Program, programsWithout } from './programs.ts';
import { publishedTrustFiles, writeTrustFiles } from './trust-files.ts';

/** `document`: the content of the file; `authored`: the same, parsed. */
export type Rules = { readonly document: unknown; readonly authored: ProxyConfig };

/** The proxy_config file, if one is set. `invalid`: all issues are on standard error. */
export async function readRules(config: Config): Promise<Rules | undefined | 'invalid'> {
  if (config.proxyConfigFile === undefined) return undefined;
  const document = await readDocument(config.proxyConfigFile);
  const { allowWildcards, reservedHost } = config;
  const parsed = parseProxyConfig(document, { allowWildcards, reservedHost });
  if (parsed.ok) return { document, authored: parsed.value };
  const { placeUnknownKeys } = await import('../rules/misplaced-keys.ts');
  process.stderr.write(formatIssues(config.proxyConfigFile, placeUnknownKeys('proxy_config', parsed.issues)));
  return 'invalid';
}

/** `user`: the id of the sandbox whose token it is. */
export type ProxyLogin = { readonly user: string | undefined; readonly token: string | undefined };

/** The variables to set. */
export async function prepareClients(
  config: Config,
  proxy: {
    readonly host: string;
    readonly port: number;
    readonly caPem: string;
    /** Of the CA that follows, which clients must trust too; empty: none does. */
    readonly nextPem?: string;
    readonly rules: Rules | undefined;
    /** What the client presents; by default the token of the config. */
    readonly login?: ProxyLogin;
  },
  {
    directory,
    caller,
    without,
    warn = (warning) => process.stderr.write(`sallyport: ${warning}\n`),
  }: {
    /** Where files are written; undefined: nothing is written, and clients read what the proxy published. */
    readonly directory: string | undefined;
    readonly caller: NodeJS.ProcessEnv;
    /** The value of --without. */
    readonly without: string | undefined;
    /** By default to standard error. */
    readonly warn?: (warning: string) => void;
  },
): Promise<ClientEnvironment['variables']> {
  const { host, port, caPem, nextPem = '', rules } = proxy;
  const { user, token } = proxy.login ?? {
    user: undefined,
    token: await readInput(() => readProxyToken(config)),
  };
  const wanted = programsWithout(without);
  const { trust, program } =
    directory === undefined
      ? {
          trust: await publishedTrustFiles(publishedFiles(config), { caPem, nextPem, caller }),
          program: { files: noProgramFiles, warnings: [] },
        }
      : await writingTo(
          directory,
          () => writeFiles(directory, { caPem: caPem + nextPem, wanted, caller }),
          USE_ANOTHER,
        );
  const { variables, warnings } = toClientEnvironment({
    proxy: { host, port, user, token },
    trust,
    files: program.files,
    wanted,
    proxyConfig: rules?.authored,
    caller,
  });
  for (const warning of [...trust.warnings, ...program.warnings, ...warnings]) warn(warning);
  return variables;
}

const USE_ANOTHER = 'set --write, or for `sallyport run` TMPDIR, to a directory that you can write to';

async function writeFiles(
  directory: string,
  {
    caPem,
    wanted,
    caller,
  }: {
    readonly caPem: string;
    readonly wanted: ReadonlySet<Program>;
    readonly caller: NodeJS.ProcessEnv;
  },
) {
  const trust = await writeTrustFiles(directory, { caPem, caller });
  return { trust, program: await writeProgramFiles({ ...trust, wanted, caller }) };
}
