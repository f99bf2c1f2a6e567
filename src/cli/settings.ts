// What the commands that need a config share: their flags, the file and the variables under them, and where the CA
// lies. Opens no port and reads no secret.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import type { AdminTokenSource } from '../sidecar/admin-token.ts';
import { type Config, parseConfig } from '../sidecar/config.ts';
import type { HandedSecrets } from '../sidecar/secret-environment.ts';
import type { StateKeySource } from '../sidecar/state/state-key.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import { unknownVariableWarnings } from './unknown-variables.ts';

/** Flags that stand for a key of the config, for parseArgs. */
export const configFlags = {
  config: { type: 'string' },
  'proxy-config': { type: 'string' },
  listen: { type: 'string' },
  'admin-listen': { type: 'string' },
  'state-dir': { type: 'string' },
  'secrets-dir': { type: 'string' },
  'secrets-file': { type: 'string' },
} as const;

export type ConfigFlags = Partial<Record<keyof typeof configFlags, string>>;

/** The config by file, variables and flags. Undefined: it was refused, and every issue is on standard error. */
export async function readConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv): Promise<Config | undefined> {
  const document = flags.config === undefined ? {} : await readDocument(flags.config);
  const parsed = parseConfig(document, { ...env, ...flagVariables(flags) });
  if (parsed.ok) return parsed.value;
  process.stderr.write(formatIssues(flags.config ?? 'configuration', parsed.issues));
  return undefined;
}

/** The state directory: as configured, else the user's own. */
export function stateDirectory({ stateDir }: Pick<Config, 'stateDir'>): string {
  return stateDir ?? join(process.env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state'), 'sallyport');
}

/** The CA pair: as configured, else in the state directory. */
export function caFiles(config: Pick<Config, 'ca' | 'stateDir'>): {
  certificateFile: string;
  keyFile: string;
} {
  if (config.ca) return config.ca;
  const directory = stateDirectory(config);
  return { certificateFile: join(directory, 'ca.pem'), keyFile: join(directory, 'ca.key') };
}

/** Where the admin token is: as configured, else a file in the state directory. */
export function adminTokenSource(config: Config, { operators }: HandedSecrets): AdminTokenSource {
  const text = operators.SALLYPORT_ADMIN_TOKEN;
  if (text !== undefined) return { text, from: 'SALLYPORT_ADMIN_TOKEN' };
  return { file: config.admin.tokenFile ?? join(stateDirectory(config), 'admin-token') };
}

/** The key that seals the state: as configured, else a file in the state directory. */
export function stateKeySource(config: Config, { operators }: HandedSecrets): StateKeySource {
  const text = operators.SALLYPORT_STATE_KEY;
  if (text !== undefined) return { text, from: 'SALLYPORT_STATE_KEY' };
  return { file: config.stateKeyFile ?? join(stateDirectory(config), 'state.key') };
}

/** The value of --secrets-fd. */
export function parseDescriptor(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const fd = Number(text);
  if (!Number.isInteger(fd) || fd < 3) throw new InputError('--secrets-fd should be a descriptor above 2');
  return fd;
}

/** What has no effect here: variables that other programs heed, and variables of ours that are not settings. */
export function environmentWarnings(env: NodeJS.ProcessEnv): string[] {
  const set = withoutEffect.filter(
    ({ name }) => env[name] !== undefined || env[name.toLowerCase()] !== undefined,
  );
  return [
    ...set.map(({ name, instead }) => `${name} has no effect on the proxy itself: ${instead}`),
    ...unknownVariableWarnings(env),
  ];
}

function flagVariables(flags: ConfigFlags): NodeJS.ProcessEnv {
  return {
    ...(flags['proxy-config'] === undefined ? {} : { SALLYPORT_PROXY_CONFIG: flags['proxy-config'] }),
    ...(flags.listen === undefined ? {} : { SALLYPORT_LISTEN: flags.listen }),
    ...(flags['admin-listen'] === undefined ? {} : { SALLYPORT_ADMIN_LISTEN: flags['admin-listen'] }),
    ...(flags['state-dir'] === undefined ? {} : { SALLYPORT_STATE_DIR: flags['state-dir'] }),
    ...(flags['secrets-dir'] === undefined ? {} : { SALLYPORT_SECRETS_DIR: flags['secrets-dir'] }),
    ...(flags['secrets-file'] === undefined ? {} : { SALLYPORT_SECRETS_FILE: flags['secrets-file'] }),
  };
}

const withoutEffect: readonly { readonly name: string; readonly instead: string }[] = [
  { name: 'NODE_EXTRA_CA_CERTS', instead: 'name the file in SALLYPORT_UPSTREAM_CA' },
  { name: 'HTTPS_PROXY', instead: 'connections to hosts are direct' },
  { name: 'HTTP_PROXY', instead: 'connections to hosts are direct' },
  { name: 'ALL_PROXY', instead: 'connections to hosts are direct' },
  {
    name: 'NO_PROXY',
    instead: 'connections to hosts are direct; hosts that are not intercepted are `no_proxy` of proxy_config',
  },
  { name: 'NODE_USE_ENV_PROXY', instead: 'connections to hosts are direct' },
];
