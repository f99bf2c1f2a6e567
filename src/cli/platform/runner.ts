// `sallyport runner`: builds, runs and reaches the deployments of a platform until it is stopped, or the platform that started it is gone.
// SIGTERM and SIGINT drain; a second signal ends the process at once.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isObject } from '../../base/json/json-document.ts';
import { InputError } from '../../base/input-error.ts';
import { createFdSink, createLog, type Log } from '../../base/log.ts';
import { inheritedVariables } from '../../base/variables/inherited-variables.ts';
import { DirectoryInUse } from '../../box-host/directory-lock.ts';
import { isExposedListen, parsePlatformConfig, type PlatformConfig } from '../../platform/config.ts';
import type { RunnerProgram } from '../../platform/runner-program.ts';
import { claimSecrets, exposedVariables, handOverSecretVariables } from '../../sidecar/secret-environment.ts';
import { parseCommandLine, type Values } from '../command/declaration.ts';
import { runnerCommand } from '../command/runner-command.ts';
import { readDocument } from '../document.ts';
import { formatIssues } from '../issue-lines.ts';
import { packageRoot } from '../package-root.ts';
import { misspeltVariables } from '../platform.ts';
import { findBuildHostIssues } from './build-hosts.ts';
import { type ParentLink, readParentInput, PARENT_INPUT_VARIABLE } from './parent-input.ts';
import { preventCoreDumps } from '../process/core-dumps.ts';
import { refuseRuntimeSwitches } from '../process/runtime-switches.ts';
import { waitForSignal } from '../process/stop-signal.ts';

type Flags = Values<typeof runnerCommand.options>;

/** Exit code 0 after a signal or without its platform, 2 for what must be corrected. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  handOverSecretVariables(undefined, exposedVariables(process.env));
  // Before anything that can fail: secrets that are not claimed stay behind in a file.
  const { operators } = claimSecrets(process.env);
  const { values } = parseCommandLine(runnerCommand, args);
  const descriptor = process.env[PARENT_INPUT_VARIABLE];
  const parent = descriptor === undefined ? undefined : await readParentInput(Number(descriptor));
  const config = await readConfig(values, parent, { ...process.env, ...operators });
  if (config === undefined) return 2;
  const cores = preventCoreDumps();
  return serve(config, parent, [...cores.warnings, ...misspeltVariables(), ...weaknesses(config)]);
}

/** Undefined: it is invalid, and every issue was written to standard error. */
async function readConfig(
  { config: file, ...given }: Flags,
  parent: ParentLink | undefined,
  env: NodeJS.ProcessEnv,
): Promise<PlatformConfig | undefined> {
  const document = parent?.input.document ?? (file === undefined ? {} : await readDocument(file));
  Object.assign(process.env, parent?.input.environment);
  const overrides = Object.entries(runnerCommand.options).flatMap(([option, declaration]) => {
    const value = given[option as keyof typeof given];
    return 'variable' in declaration && value !== undefined ? [[declaration.variable, value]] : [];
  });
  const variables = { ...env, ...parent?.input.variables, ...Object.fromEntries(overrides) };
  const parsed = parsePlatformConfig(document, variables);
  const issues = parsed.ok
    ? await findBuildHostIssues(parsed.value.runner.builds.allowHosts, variables)
    : parsed.issues;
  if (parsed.ok && issues.length === 0) return parsed.value;
  process.stderr.write(formatIssues(file ?? 'sallyport', issues));
  return undefined;
}

async function serve(
  config: PlatformConfig,
  parent: ParentLink | undefined,
  warnings: readonly string[],
): Promise<number> {
  const sink = createFdSink(1);
  const log = createLog(config.logLevel, sink);
  for (const warning of warnings) log.warn(warning);
  const { drainMs } = config.limits;
  const stopped = waitForSignal(2 * drainMs, () =>
    log.error('shutdown timed out; exiting with work still running'),
  );
  const gone = parent?.ended.then(() => 'parent' as const) ?? new Promise<never>(() => undefined);
  try {
    const opened = await Promise.race([open(config, parent, log), stopped, gone]);
    if (typeof opened === 'string') return 0;
    const { url: gateway, metricsUrl: metrics, isolation } = opened;
    log.info({ gateway, metrics, isolation, pid: process.pid }, 'the runner is ready');
    const reason = await Promise.race([stopped, gone]);
    log.info(reason === 'parent' ? 'the platform is gone' : 'the runner is draining');
    await opened.close(reason === 'parent' ? AbortSignal.abort() : AbortSignal.timeout(drainMs));
    return 0;
  } finally {
    await sink.close();
  }
}

const RETRY_MS = 100;

/** A platform that was killed and started again finds the runner before, which is about to end. */
async function open(
  config: PlatformConfig,
  parent: ParentLink | undefined,
  log: Log,
): Promise<RunnerProgram> {
  const { openRunnerProgram } = await import('../../platform/runner-program.ts');
  const parts = {
    ...{ log, env: inheritedVariables(), sidecarConfig: await readSidecarConfig(config) },
    program: [process.execPath, join(packageRoot, 'bin', 'sallyport.js')],
  };
  for (let isReported = false; ; isReported = true)
    try {
      return await openRunnerProgram(config, parts);
    } catch (error) {
      if (!(error instanceof DirectoryInUse) || parent === undefined) throw error;
      if (!isReported) log.info('another runner uses the directory: this one waits for its end');
      await delay(RETRY_MS);
    }
}

async function readSidecarConfig({ runner }: PlatformConfig): Promise<Readonly<Record<string, unknown>>> {
  const file = runner.sidecarConfigFile;
  const document = file === undefined ? {} : await readDocument(file);
  if (!isObject(document)) throw new InputError(`${file}: must be a JSON object`);
  return document;
}

/** What the operator has chosen, and must know. */
function weaknesses({ listen, runner }: PlatformConfig): readonly string[] {
  const isExposed = isExposedListen(listen) || isExposedListen(runner.gateway.listen);
  const { host, port } = runner.gateway.listen;
  return [
    ...(runner.isolation === 'none'
      ? [
          `deployments are not isolated (runner.isolation is none): their code can read what this process can${isExposed ? ', and other machines can reach them' : ''}`,
        ]
      : []),
    ...(isExposedListen(runner.gateway.listen)
      ? [
          `${host}:${port} is reachable from other machines and receives API keys in plaintext: put TLS in front of it, or listen on loopback`,
        ]
      : []),
  ];
}
