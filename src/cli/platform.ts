// `sallyport platform [serve]`, `migrate`, `init`, `recover`, `rewrap` and `organization`: runs a platform until it is stopped, or manages its keys.
// SIGTERM and SIGINT drain; a second signal ends the process at once.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { type Log, type LogSink, createFdSink, createLineWriter, createLog } from '../base/log.ts';
import { z } from '../base/schema.ts';
import {
  type PlatformConfig,
  isExposedListen,
  parsePlatformConfig,
  platformVariables,
} from '../platform/config.ts';
import { claimSecrets, exposedVariables, handOverSecretVariables } from '../sidecar/secret-environment.ts';
import { parseCommandLine, unexpected, type Values } from './command/declaration.ts';
import { platformCommand } from './command/platform-commands.ts';
import { readVersion } from './command/version.ts';
import { preventCoreDumps } from './process/core-dumps.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';
import { waitForSignal } from './process/stop-signal.ts';
import { runOrganization } from './platform/organization.ts';
import { findBuildHostIssues } from './platform/build-hosts.ts';
import { misspeltVariables } from './platform/misspelt-variables.ts';
import { type ParentInput, toParentInput } from './platform/parent-input.ts';
import { startPrograms } from './platform/started-programs.ts';
import { packageRoot } from './package-root.ts';

type Flags = Values<typeof platformCommand.options>;

type Option = keyof Flags & string;

/** The options of each command, besides the settings, which every command reads. */
const OWN_OPTIONS: ReadonlyMap<string, readonly Option[]> = new Map<string, readonly Option[]>([
  ['serve', []],
  ['migrate', []],
  ['init', ['name']],
  ['recover', ['organization']],
  ['rewrap', ['new-master-key']],
  ['organization', ['name', 'organization', 'plan', 'personal', 'audit-logs']],
]);

/** Exit code 0 after a clean drain, 1 when the database server ended, 2 for invalid settings. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  handOverSecretVariables(undefined, exposedVariables(process.env));
  // Before anything that can fail: secrets that are not claimed stay behind in a file.
  const { operators } = claimSecrets(process.env);
  const { values, operands } = parseCommandLine(platformCommand, args);
  const [command = 'serve', ...more] = operands;
  const isOrganization = command === 'organization';
  refuseArguments(command, isOrganization ? [] : more, values);
  const env = { ...process.env, ...operators };
  const config = await readPlatformConfig(values, env);
  if (!config) return 2;
  const cores = preventCoreDumps();
  const misspelt = misspeltVariables();
  if (command === 'serve')
    return serve(config, {
      warnings: [...cores.warnings, ...misspelt, ...exposureWarnings(config)],
      input: await createInput(config, values, env),
    });
  for (const warning of misspelt) process.stderr.write(`sallyport: ${warning}\n`);
  if (command === 'init') return init(config, { name: values.name, key: env['SALLYPORT_BOOTSTRAP_API_KEY'] });
  if (command === 'recover') return recover(config, values.organization);
  if (isOrganization) return runOrganization(config, more, values);
  if (command === 'rewrap') return rewrap(config, values['new-master-key'] ?? false);
  return migrate(config);
}

/** Throws an InputError: what another command would do with an option is not what the operator gets. */
function refuseArguments(command: string, more: readonly string[], values: Flags): void {
  const own = OWN_OPTIONS.get(command);
  const [extra] = own === undefined ? [command] : more;
  if (own === undefined || extra !== undefined) throw unexpected(platformCommand, extra ?? command);
  const others = new Set([...OWN_OPTIONS.values()].flat());
  const foreign = Object.keys(values).find(
    (name) => others.has(name as Option) && !own.includes(name as Option),
  );
  if (foreign === undefined) return;
  const owners = [...OWN_OPTIONS].filter(([, options]) => options.includes(foreign as Option));
  throw new InputError(
    `--${foreign} is no option of ${command}: it belongs to ${owners.map(([name]) => name).join(' and ')}`,
  );
}

/** The config from file, variables and flags. Undefined: it is invalid, and every issue was written to standard error. */
export async function readPlatformConfig(
  { config: file, ...given }: Flags,
  env: NodeJS.ProcessEnv,
): Promise<PlatformConfig | undefined> {
  const document = file === undefined ? {} : await readDocument(file);
  const overrides = overridesOf(given);
  const parsed = parsePlatformConfig(document, { ...env, ...withFlags(given) });
  const found = parsed.ok
    ? await findBuildHostIssues(parsed.value.runner.builds.allowHosts, env)
    : parsed.issues;
  if (parsed.ok && found.length === 0) return parsed.value;
  const byVariable = new Map<unknown, string>(overrides.map(({ option, variable }) => [variable, option]));
  const issues = found.map((issue) => {
    const option = byVariable.get(issue.loc[0]);
    return option === undefined ? issue : { ...issue, loc: [`--${option}`, ...issue.loc.slice(1)] };
  });
  process.stderr.write(formatIssues(file ?? 'sallyport', issues));
  return undefined;
}

function overridesOf(given: Flags) {
  const options = ['role', 'listen', 'metrics-listen', 'data-dir'] as const;
  return options.flatMap((option) => {
    const value = given[option];
    return value === undefined ? [] : [{ option, variable: platformCommand.options[option].variable, value }];
  });
}

/** The flags, as the variables that they stand for. */
function withFlags(given: Flags): Readonly<Record<string, string>> {
  return Object.fromEntries(overridesOf(given).map(({ variable, value }) => [variable, value]));
}

/** The line of a request has level info. */
const LEVELS_WITH_REQUESTS: ReadonlySet<string> = new Set(['trace', 'debug', 'info']);

type Served = {
  readonly warnings: readonly string[];
  /** Of the programs that the platform starts. Undefined: the operator starts them, or another process of the platform. */
  readonly input: ParentInput | undefined;
};

async function createInput(
  config: PlatformConfig,
  values: Flags,
  env: NodeJS.ProcessEnv,
): Promise<ParentInput | undefined> {
  if (config.role === 'serve') return undefined;
  const document = values.config === undefined ? {} : await readDocument(values.config);
  const given = { ...env, ...withFlags(values), SALLYPORT_PLATFORM_DATA_DIR: config.dataDirectory };
  return toParentInput(document, given, new Set(platformVariables().map(({ name }) => name)));
}

async function serve(config: PlatformConfig, { warnings, input }: Served): Promise<number> {
  const sink = createFdSink(1);
  const log = createLog(config.logLevel, sink);
  for (const warning of warnings) log.warn(warning);
  // The deployments may take one drain time, requests another, and everything else together a third.
  const stopped = waitForSignal(3 * config.limits.drainMs, () =>
    log.error('shutdown timed out; exiting with work still running'),
  );
  const storage = import('../platform/storage.ts').then(({ openStorage }) => openStorage(config, log));
  // A failure is handled where the promise is awaited.
  storage.catch(() => undefined);
  try {
    const { openPlatform } = await import('../platform/platform.ts');
    const writeRequest = LEVELS_WITH_REQUESTS.has(config.logLevel) ? createLineWriter(sink) : undefined;
    const program = [process.execPath, join(packageRoot, 'bin', 'sallyport.js')];
    const parts = { log, writeRequest, version: await readVersion(), program, storage };
    const platform = await openPlatform(config, parts);
    const { url: api, metricsUrl: metrics, storage: database } = platform;
    // A field that is undefined is left out.
    log.info({ api, metrics, database, role: config.role, pid: process.pid }, 'ready');
    const { pools } = await storage;
    const children = input ? startPrograms(config, { input, api, program, pools, log, sink }) : [];
    const reason = await Promise.race([stopped, platform.ended.then(() => 'database' as const)]);
    if (reason === 'database') log.error('the database server ended by itself');
    else log.info('draining');
    const graceMs = reason === 'database' ? 0 : config.limits.drainMs;
    await Promise.all(children.map((one) => one.close(graceMs)));
    await platform.close();
    return reason === 'database' ? 1 : 0;
  } finally {
    await sink.close();
  }
}

async function migrate(config: PlatformConfig): Promise<number> {
  const { migrateStorage } = await import('../platform/storage.ts');
  const { all, applied } = await migrateStorage(config, createQuietLog(config));
  process.stderr.write(`The schema of the database is current: ${all} migrations, ${applied} of them new.\n`);
  return 0;
}

/** On standard error, and only what went wrong. */
function createQuietLog({ logLevel }: PlatformConfig): Log {
  const sink: Pick<LogSink, 'write'> = { write: (line) => void process.stderr.write(line) };
  return createLog(logLevel === 'info' ? 'warn' : logLevel, sink);
}

/** Only the key goes to standard output, so that a script can store it; everything else goes to standard error. */
async function init(
  config: PlatformConfig,
  given: { readonly name: string | undefined; readonly key: string | undefined },
): Promise<number> {
  const { initialize } = await import('../platform/initialization.ts');
  const created = await initialize(config, {
    log: createQuietLog(config),
    name: given.name ?? 'Default',
    key: given.key || undefined,
  });
  const isThere = created === 'there';
  if (isThere)
    process.stderr.write('An organization already exists, and the key is valid: nothing was changed.\n');
  else {
    process.stderr.write(`organization ${created.organizationId}\nworkspace    ${created.workspaceId}\n`);
    if (created.createdKey !== undefined) {
      process.stderr.write('API key (shown only once):\n');
      process.stdout.write(`${created.createdKey}\n`);
    }
  }
  const { prepareSandboxes } = await import('./boxes/machine-preparation.ts');
  return prepareSandboxes(config, isThere);
}

async function recover(config: PlatformConfig, organization: string | undefined): Promise<number> {
  if (organization !== undefined && !z.uuid().safeParse(organization).success)
    throw new InputError('--organization must be the id of an organization');
  const { recoverKey } = await import('../platform/recovery.ts');
  const { organizationId, text } = await recoverKey(config, organization);
  process.stderr.write(`organization ${organizationId}\nAPI key of an administrator (shown only once):\n`);
  process.stdout.write(`${text}\n`);
  return 0;
}

async function rewrap(config: PlatformConfig, addsKey: boolean): Promise<number> {
  const { rewrapVault } = await import('../platform/rewrapping.ts');
  const { masterKeyId, rewrapped, unopened, retired, needed } = await rewrapVault(config, addsKey);
  const lines = [
    `data keys wrapped with master key ${masterKeyId}: ${rewrapped}`,
    ...unopened.map(
      (id) => `not wrapped: the data key of workspace ${id} was changed or moved, and does not open`,
    ),
    ...[...needed].map(
      ([id, count]) => `master key ${id} is still needed by ${count} data keys: run rewrap again`,
    ),
    ...retired.map(
      (id) => `master key ${id} is needed by this database no more; keep it as long as backups from before`,
    ),
  ];
  process.stderr.write(`${lines.join('\n')}\n`);
  return needed.size > 0 ? 1 : 0;
}

function exposureWarnings({ role, listen, metricsListen }: PlatformConfig): readonly string[] {
  const served = role === 'work' ? undefined : listen;
  const listeners = [served, metricsListen].filter((one) => one !== undefined);
  return listeners
    .filter(isExposedListen)
    .map(
      ({ host, port }) =>
        `${host}:${port} is reachable from other machines and receives API keys in plaintext: put TLS in front of it, or listen on loopback`,
    );
}
