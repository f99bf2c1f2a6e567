// `sallyport platform [serve]`, `init` and `recover`: settings in, one running platform out, or a key of it.
// SIGTERM and SIGINT drain; a second one ends at once.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { InputError } from '../base/input-error.ts';
import { type LogSink, createFdSink, createLog } from '../base/log.ts';
import { z } from '../base/schema.ts';
import {
  type PlatformConfig,
  isExposedListen,
  parsePlatformConfig,
  platformVariables,
} from '../platform/config.ts';
import {
  claimSecrets,
  handOverSecretVariables,
  platformSecretVariables,
} from '../sidecar/secret-environment.ts';
import { preventCoreDumps } from './process/core-dumps.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import { packageRoot } from './package-root.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';
import { unknownVariableWarnings } from './unknown-variables.ts';

const USAGE =
  'usage: sallyport platform [serve | init | recover] [--config FILE] [--listen HOST:PORT] [--data-dir DIR]\n';

const flags = {
  config: { type: 'string' },
  listen: { type: 'string' },
  'metrics-listen': { type: 'string' },
  'data-dir': { type: 'string' },
  /** Of `init`. */
  name: { type: 'string' },
  /** Of `recover`. */
  organization: { type: 'string' },
} as const;
type Flags = Partial<Record<keyof typeof flags, string>>;

/** Exit code 0 after a clean drain, 2 for settings that should be mended. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  handOverSecretVariables(undefined, exposedVariables(process.env));
  // Before anything that can fail: what is not claimed stays behind as a file.
  const { operators } = claimSecrets(process.env);
  const { values, positionals } = parseArgs({ args, options: flags, allowPositionals: true });
  const [command = 'serve', ...more] = positionals;
  if (more.length > 0 || !['serve', 'init', 'recover'].includes(command)) {
    process.stderr.write(USAGE);
    return 2;
  }
  const env = { ...process.env, ...operators };
  const config = await readPlatformConfig(values, env);
  if (!config) return 2;
  const cores = preventCoreDumps();
  const known = [...platformVariables().map(({ name }) => name), 'SALLYPORT_BOOTSTRAP_API_KEY'];
  const warnings = [...cores.warnings, ...unknownVariableWarnings(process.env, known), ...exposure(config)];
  if (command === 'init') return init(config, { name: values.name, key: env['SALLYPORT_BOOTSTRAP_API_KEY'] });
  if (command === 'recover') return recover(config, values.organization);
  return serve(config, warnings);
}

/** The config by file, variables and flags. Undefined: it was refused, and every issue is on standard error. */
export async function readPlatformConfig(
  { config: file, ...given }: Flags,
  env: NodeJS.ProcessEnv,
): Promise<PlatformConfig | undefined> {
  const parsed = parsePlatformConfig(file === undefined ? {} : await readDocument(file), {
    ...env,
    ...(given.listen === undefined ? {} : { SALLYPORT_PLATFORM_LISTEN: given.listen }),
    ...(given['metrics-listen'] === undefined
      ? {}
      : { SALLYPORT_PLATFORM_METRICS_LISTEN: given['metrics-listen'] }),
    ...(given['data-dir'] === undefined ? {} : { SALLYPORT_PLATFORM_DATA_DIR: given['data-dir'] }),
  });
  if (parsed.ok) return parsed.value;
  process.stderr.write(formatIssues(file ?? 'configuration', parsed.issues));
  return undefined;
}

async function serve(config: PlatformConfig, warnings: readonly string[]): Promise<number> {
  const sink = createFdSink(1);
  const log = createLog(config.logLevel, sink);
  for (const warning of warnings) log.warn(warning);
  // Once for requests, and as long again for all else.
  const asked = awaitSignal(2 * config.limits.drainMs, () =>
    log.error('something hangs and is left as it is: the end does not wait for it'),
  );
  const storage = import('../platform/storage.ts').then(({ openStorage }) => openStorage(config, log));
  // Whoever waits for it is told.
  storage.catch(() => undefined);
  try {
    const { openPlatform } = await import('../platform/platform.ts');
    const platform = await openPlatform(config, { log, version: await readVersion(), storage });
    const { url: api, metricsUrl: metrics, storage: database } = platform;
    log.info({ api, ...(metrics === undefined ? {} : { metrics }), database, pid: process.pid }, 'ready');
    const reason = await Promise.race([asked, platform.ended.then(() => 'database' as const)]);
    if (reason === 'database') log.error('the database server ended by itself');
    else log.info('draining');
    await platform.close();
    return reason === 'database' ? 1 : 0;
  } finally {
    await sink.close();
  }
}

/**
 * The first signal; the second one does not wait for what the first has begun. Nor does anything after `maxMs`: a start
 * may hang as well as an end, at a database that says nothing, and what it leaves then is what a crash leaves.
 */
function awaitSignal(maxMs: number, onHanging: () => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isAsked = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    const end = (): never => process.exit(signal === 'SIGINT' ? 130 : 143);
    if (isAsked) end();
    isAsked = true;
    const atLast = (): void => {
      onHanging();
      end();
    };
    setTimeout(atLast, maxMs).unref();
    resolve(signal);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return promise;
}

/** The key goes to standard output, alone, so that a script can keep it; all else goes to standard error. */
async function init(
  config: PlatformConfig,
  given: { readonly name: string | undefined; readonly key: string | undefined },
): Promise<number> {
  const sink: Pick<LogSink, 'write'> = { write: (line) => void process.stderr.write(line) };
  const log = createLog(config.logLevel === 'info' ? 'warn' : config.logLevel, sink);
  const { initialize } = await import('../platform/initialization.ts');
  const made = await initialize(config, { log, name: given.name ?? 'Default', key: given.key || undefined });
  if (made === 'there') {
    process.stderr.write('There is an organization already, and the key opens it: nothing was changed.\n');
    return 0;
  }
  process.stderr.write(`organization ${made.organizationId}\nworkspace    ${made.workspaceId}\n`);
  if (made.createdKey !== undefined) {
    process.stderr.write('The key is told here, once:\n');
    process.stdout.write(`${made.createdKey}\n`);
  }
  return 0;
}

async function recover(config: PlatformConfig, organization: string | undefined): Promise<number> {
  if (organization !== undefined && !z.uuid().safeParse(organization).success)
    throw new InputError('--organization should be the id of an organization');
  const { recoverKey } = await import('../platform/recovery.ts');
  const { organizationId, text } = await recoverKey(config, organization);
  process.stderr.write(`organization ${organizationId}\nA key that manages it is told here, once:\n`);
  process.stdout.write(`${text}\n`);
  return 0;
}

/** A URL without a password is no secret, and replacing the process for it would cost a second start. */
function exposedVariables(env: NodeJS.ProcessEnv): readonly string[] {
  return platformSecretVariables.filter((name) => {
    const value = env[name] ?? '';
    if (value === '' || !name.endsWith('_URL') || !URL.canParse(value)) return value !== '';
    const url = new URL(value);
    return url.password !== '' || url.searchParams.has('password');
  });
}

function exposure({ listen, metricsListen }: PlatformConfig): readonly string[] {
  const open = [listen, metricsListen].filter((one) => one !== undefined && isExposedListen(one));
  return open.map(
    (one) =>
      `others reach ${one?.host}:${one?.port}, and keys pass there in clear: put TLS in front, or listen on loopback`,
  );
}

async function readVersion(): Promise<string> {
  const document: unknown = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8'));
  if (typeof document === 'object' && document !== null && 'version' in document)
    return String(document.version);
  throw new InputError('package.json has no version: install the package again');
}
