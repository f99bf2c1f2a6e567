// `sallyport runner`: builds, runs and reaches the deployments of a platform until it is stopped, or the platform that started it is gone.
// SIGTERM and SIGINT drain; a second signal ends the process at once.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isObject } from '../../base/json/json-document.ts';
import { InputError } from '../../base/input-error.ts';
import { createFdSink, createLog, type Log } from '../../base/log.ts';
import { inheritedVariables } from '../../base/variables/inherited-variables.ts';
import { DirectoryInUse } from '../../box-host/directory-lock.ts';
import { isExposedListen, type PlatformConfig } from '../../platform/config.ts';
import type { RunnerProgram } from '../../platform/runner-program.ts';
import { runnerCommand } from '../command/runner-command.ts';
import { readDocument } from '../document.ts';
import { packageRoot } from '../package-root.ts';
import { findBuildHostIssues } from './build-hosts.ts';
import type { ParentLink } from './parent-input.ts';
import { type ProgramSettings, readProgramSettings } from './program-settings.ts';
import { waitForSignal } from '../process/stop-signal.ts';

/** Exit code 0 after a signal or without its platform, 2 for what must be corrected. */
export async function run(args: string[]): Promise<number> {
  const settings = await readProgramSettings(runnerCommand, args, ({ runner }, variables) =>
    findBuildHostIssues(runner.builds.allowHosts, variables),
  );
  return settings === undefined ? 2 : serve(settings);
}

async function serve({ config, parent, warnings }: ProgramSettings): Promise<number> {
  const sink = createFdSink(1);
  const log = createLog(config.logLevel, sink);
  for (const warning of [...warnings, ...weaknesses(config)]) log.warn(warning);
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
