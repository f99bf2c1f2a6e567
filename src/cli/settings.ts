// The config of the commands that need one: flags over variables over the file, and the files that it leads to. Opens no
// port.
import { homedir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { InputError, readInput } from '../base/input-error.ts';
import type { Issue } from '../base/schema.ts';
import type { AdminTokenSource } from '../sidecar/access-tokens.ts';
import { type Config, parseConfig } from '../sidecar/config.ts';
import { type WorkspaceSecrets, loadWorkspaceSecrets } from '../sidecar/sandboxes/workspace-secrets.ts';
import type { HandedSecrets } from '../sidecar/secret-environment.ts';
import type { Sidecar } from '../sidecar/sidecar.ts';
import type { Applied } from '../sidecar/sandboxes/sandbox-rules.ts';
import { bundleFile } from '../sidecar/state/published-bundle.ts';
import { prepareStateDirectory, publicPart, secretPart } from '../sidecar/state/state-directory.ts';
import type { StateKeySource } from '../sidecar/state/state-store.ts';
import { codeOf } from '../tls/pem-files.ts';
import type { OptionDeclarations } from './command/declaration.ts';
import { type ConfigFlags, configOptions } from './command/sidecar-commands.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import { refuseUnknownGuards } from './unknown-variables.ts';

/** The config by file, variables and flags. Undefined: it is invalid, and all issues are on standard error. */
export async function readConfig(flags: ConfigFlags, env: NodeJS.ProcessEnv): Promise<Config | undefined> {
  refuseUnknownGuards(env);
  const { config: file, ...given } = flags;
  const document = file === undefined ? {} : await readDocument(file);
  const options: OptionDeclarations = configOptions;
  const optionOf = new Map<string, string>();
  const overrides = Object.entries(given).flatMap(([flag, value]) => {
    // Other options of a command, such as --log, set no key.
    const variable = Object.hasOwn(options, flag) ? options[flag]?.variable : undefined;
    if (variable === undefined || value === undefined) return [];
    optionOf.set(variable, `--${flag} (${variable})`);
    return [[variable, value]];
  });
  const parsed = parseConfig(document, { ...env, ...Object.fromEntries(overrides) });
  if (parsed.ok) return parsed.value;
  // Loaded only where a document is invalid: a start that succeeds needs none of it.
  const { placeUnknownKeys } = await import('./rules/misplaced-keys.ts');
  const issues = placeUnknownKeys('config', parsed.issues).map((issue) => namingOption(issue, optionOf));
  process.stderr.write(formatIssues(file ?? 'sallyport', issues));
  return undefined;
}

/** The user sees the option that was given before the variable that it stands for. */
function namingOption(issue: Issue, optionOf: ReadonlyMap<string, string>): Issue {
  const [first, ...below] = issue.loc;
  const option = typeof first === 'string' ? optionOf.get(first) : undefined;
  return option === undefined ? issue : { ...issue, loc: [option, ...below] };
}

/** The workspace secrets from all sources. `fd`: of --secrets-fd. */
export function readSecrets(
  { secretsDirectory: directory, secretsFile: file }: Config,
  handed: HandedSecrets,
  fd?: number,
): Promise<WorkspaceSecrets> {
  return readInput(() => loadWorkspaceSecrets({ handed, fd, directory, file }, process.env));
}

/** The value of --secrets-fd. */
export function parseDescriptor(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const fd = Number(given);
  if (!Number.isInteger(fd) || fd < 3) throw new InputError('--secrets-fd must be a descriptor above 2');
  return fd;
}

/** Logs the warnings of a document that was applied. False: it was rejected, and all issues are on standard error. */
export async function reportApplied(
  sidecar: Sidecar,
  applied: Applied,
  file: string | undefined,
): Promise<boolean> {
  if (!applied.ok) {
    const { placeUnknownKeys } = await import('./rules/misplaced-keys.ts');
    process.stderr.write(
      formatIssues(file ?? 'proxy_config', placeUnknownKeys('proxy_config', applied.issues)),
    );
    return false;
  }
  for (const { loc, msg } of applied.warnings) sidecar.log.warn({ file, at: loc.join('.') }, msg);
  return true;
}

/** The state directory, absolute because `env` hands paths in it to shells that change their directory. */
export function stateDirectory({ stateDir }: Pick<Config, 'stateDir'>): string {
  if (stateDir !== undefined) return resolve(stateDir);
  // Empty means not set (XDG Base Directory Specification).
  return resolve(
    join(process.env['XDG_STATE_HOME'] || join(homeDirectory(), '.local', 'state'), 'sallyport'),
  );
}

/** A container may run as a user without a home directory and without an entry in /etc/passwd. */
function homeDirectory(): string {
  try {
    // Node takes an empty HOME for a directory, which would be the current one.
    return homedir() || userInfo().homedir;
  } catch (cause) {
    const hint = 'set --state-dir (SALLYPORT_STATE_DIR) to a writable directory';
    throw new InputError(`this user has no home directory for the state: ${hint}`, { cause });
  }
}

/** Creates the state directory and its parts. Returns the names of the files of an older version that were moved into them. */
export async function prepareState(
  config: Pick<Config, 'ca' | 'stateDir'> & Partial<Pick<Config, 'admin' | 'stateKeyFile'>>,
): Promise<readonly string[]> {
  const directory = stateDirectory(config);
  const { ca, admin, stateKeyFile } = config;
  const configured = [ca?.certificateFile, ca?.keyFile, admin?.tokenFile, stateKeyFile];
  try {
    return await prepareStateDirectory(
      directory,
      configured.filter((file) => file !== undefined),
    );
  } catch (error) {
    const unwritable = unwritableError(directory, error, MOVE_THE_STATE);
    // With a CA of the operator's nothing may ever be stored there.
    if (unwritable && config.ca) return [];
    throw unwritable ?? error;
  }
}

/** The files of the CA: as configured, otherwise in the state directory. */
export function caFiles(config: Pick<Config, 'ca' | 'stateDir'>): {
  certificateFile: string;
  keyFile: string;
} {
  if (config.ca) return config.ca;
  const directory = stateDirectory(config);
  return {
    certificateFile: join(publicPart(directory), 'ca.pem'),
    keyFile: join(secretPart(directory), 'ca.key'),
  };
}

/** What `sallyport env` reads: files that other users may read too. */
export function publishedFiles(config: Pick<Config, 'ca' | 'stateDir'>): {
  certificateFile: string;
  bundleFile: string;
} {
  const { certificateFile } = caFiles(config);
  return { certificateFile, bundleFile: bundleFile(stateDirectory(config)) };
}

/** The admin token: of its variable, otherwise of a file, by default in the state directory. */
export function adminTokenSource(config: Config, { operators }: HandedSecrets): AdminTokenSource {
  const token = operators.SALLYPORT_ADMIN_TOKEN;
  if (token !== undefined) return { text: token, from: 'SALLYPORT_ADMIN_TOKEN' };
  return { file: adminTokenFile(config) };
}

/** The file of the admin token, unless its variable is set. */
export function adminTokenFile({ admin, stateDir }: Pick<Config, 'admin' | 'stateDir'>): string {
  return admin.tokenFile ?? join(secretPart(stateDirectory({ stateDir })), 'admin-token');
}

/** The key that seals the state: of its variable, otherwise of a file, by default in the state directory. */
export function stateKeySource(config: Config, { operators }: HandedSecrets): StateKeySource {
  const key = operators.SALLYPORT_STATE_KEY;
  if (key !== undefined) return { text: key, from: 'SALLYPORT_STATE_KEY' };
  return { file: config.stateKeyFile ?? join(secretPart(stateDirectory(config)), 'state.key') };
}

const MOVE_THE_STATE = 'mount a writable volume there, or set SALLYPORT_STATE_DIR to a writable directory';

/** Runs `work`, which may create files in `directory`; an error of the file system gets a message that says what to do. */
export async function writingTo<T>(
  directory: string,
  work: () => Promise<T>,
  hint: string = MOVE_THE_STATE,
): Promise<T> {
  try {
    return await readInput(work);
  } catch (error) {
    throw unwritableError(directory, error, hint) ?? error;
  }
}

function unwritableError(directory: string, cause: unknown, hint: string): InputError | undefined {
  const error = cause instanceof InputError ? cause.cause : cause;
  const reason = isOfCreation(error)
    ? 'no directory can be created there'
    : UNWRITABLE[String(codeOf(error))];
  if (reason === undefined) return undefined;
  return new InputError(`cannot write to ${directory} (${reason}): ${hint}`, { cause });
}

/** /proc and file systems like it have no place for a directory. Of another call, ENOENT is a file that is missing. */
function isOfCreation(error: unknown): boolean {
  return (
    codeOf(error) === 'ENOENT' && error instanceof Error && 'syscall' in error && error.syscall === 'mkdir'
  );
}

const UNWRITABLE: Readonly<Record<string, string>> = {
  EROFS: 'read-only file system',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  ENOSPC: 'no space left on the device',
  EDQUOT: 'the disk quota is used up',
  ENOTDIR: 'a part of the path is not a directory',
  EEXIST: 'a part of the path is not a directory',
  ENAMETOOLONG: 'the path is too long',
};

/** Runs `work`; an error of the file system about a file that a setting names gets the name of the setting. */
export async function namingSettings<T>(config: Config, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const words = error.message.split(/[\s',:]+/);
    const setting = fileSettings(config).find(([file]) => file !== undefined && words.includes(file))?.[1];
    // Other errors about a file say what is wrong inside it.
    const code = codeOf(error) ?? codeOf(error.cause);
    const isSystem = code !== undefined || / cannot be read: [A-Z]+$/.test(error.message);
    if (setting === undefined || !isSystem) throw error;
    throw new InputError(`${setting}: ${error.message}`, { cause: error });
  }
}

function fileSettings(config: Config): readonly (readonly [file: string | undefined, setting: string])[] {
  const { auth } = config;
  return [
    [config.proxyConfigFile, 'proxy_config (SALLYPORT_PROXY_CONFIG)'],
    [typeof auth === 'object' ? auth.tokenFile : undefined, 'auth.token_file (SALLYPORT_AUTH_TOKEN_FILE)'],
    [config.secretsDirectory, 'secrets.directory (SALLYPORT_SECRETS_DIR)'],
    [config.secretsFile, 'secrets.file (SALLYPORT_SECRETS_FILE)'],
    [config.admin.tokenFile, 'admin.token_file (SALLYPORT_ADMIN_TOKEN_FILE)'],
    [config.metrics.tokenFile, 'metrics.token_file (SALLYPORT_METRICS_TOKEN_FILE)'],
    [config.stateKeyFile, 'state_key_file (SALLYPORT_STATE_KEY_FILE)'],
    [config.recordForward?.tokenFile, 'records.forward.token_file (SALLYPORT_RECORDS_FORWARD_TOKEN_FILE)'],
    [config.ca?.certificateFile, 'ca.certificate (SALLYPORT_CA_CERT)'],
    [config.ca?.keyFile, 'ca.key (SALLYPORT_CA_KEY)'],
  ];
}
