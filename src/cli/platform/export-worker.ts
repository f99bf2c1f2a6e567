// `sallyport export-worker`: executes the bulk exports of a platform until it is stopped, or the platform that started it is gone. SIGTERM and
// SIGINT stop what runs, which is requeued; a second signal ends the process at once.
import { createFdSink, createLog } from '../../base/log.ts';
import { parsePlatformConfig, type PlatformConfig } from '../../platform/config.ts';
import { claimSecrets, exposedVariables, handOverSecretVariables } from '../../sidecar/secret-environment.ts';
import { parseCommandLine, type Values } from '../command/declaration.ts';
import { exportWorkerCommand } from '../command/export-worker-command.ts';
import { readDocument } from '../document.ts';
import { formatIssues } from '../issue-lines.ts';
import { misspeltVariables } from '../platform.ts';
import { preventCoreDumps } from '../process/core-dumps.ts';
import { refuseRuntimeSwitches } from '../process/runtime-switches.ts';
import { waitForSignal } from '../process/stop-signal.ts';
import { PARENT_INPUT_VARIABLE, type ParentLink, readParentInput } from './parent-input.ts';

type Flags = Values<typeof exportWorkerCommand.options>;

/** Exit code 0 after a signal or without its platform, 2 for what must be corrected. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  handOverSecretVariables(undefined, exposedVariables(process.env));
  // Before anything that can fail: secrets that are not claimed stay behind in a file.
  const { operators } = claimSecrets(process.env);
  const { values } = parseCommandLine(exportWorkerCommand, args);
  const descriptor = process.env[PARENT_INPUT_VARIABLE];
  const parent = descriptor === undefined ? undefined : await readParentInput(Number(descriptor));
  const config = await readConfig(values, parent, { ...process.env, ...operators });
  if (config === undefined) return 2;
  const cores = preventCoreDumps();
  return serve(config, parent, [...cores.warnings, ...misspeltVariables()]);
}

/** Undefined: it is invalid, and every issue was written to standard error. */
async function readConfig(
  { config: file, ...given }: Flags,
  parent: ParentLink | undefined,
  env: NodeJS.ProcessEnv,
): Promise<PlatformConfig | undefined> {
  const document = parent?.input.document ?? (file === undefined ? {} : await readDocument(file));
  // Of destinations that use the credentials of this installation.
  Object.assign(process.env, parent?.input.environment);
  const { options } = exportWorkerCommand;
  const flags = Object.fromEntries(
    (['data-dir', 'runs'] as const).flatMap((name) => {
      const value = given[name];
      return value === undefined ? [] : [[options[name].variable, value]];
    }),
  );
  const variables = { ...env, ...parent?.input.variables, ...flags };
  const parsed = parsePlatformConfig(document, variables);
  if (parsed.ok) return parsed.value;
  process.stderr.write(formatIssues(file ?? 'sallyport', parsed.issues));
  return undefined;
}

/** What runs is stopped within ten seconds, and stored. */
const STOP_MS = 20_000;

async function serve(
  config: PlatformConfig,
  parent: ParentLink | undefined,
  warnings: readonly string[],
): Promise<number> {
  const sink = createFdSink(1);
  const log = createLog(config.logLevel, sink);
  for (const warning of warnings) log.warn(warning);
  const stopped = waitForSignal(STOP_MS, () =>
    log.error('shutdown timed out; exiting with runs of exports that are not stopped'),
  );
  const gone = parent?.ended.then(() => 'parent' as const) ?? new Promise<never>(() => undefined);
  try {
    const { openExportWorkerProgram } = await import('../../platform/programs/export-worker-program.ts');
    const opened = await Promise.race([openExportWorkerProgram(config, log), stopped, gone]);
    if (typeof opened === 'string') return 0;
    const { metricsUrl: metrics, places } = opened;
    log.info({ metrics, runs: places, pid: process.pid }, 'the export worker is ready');
    const reason = await Promise.race([stopped, gone]);
    log.info(reason === 'parent' ? 'the platform is gone' : 'the export worker is stopping');
    await opened.close();
    return 0;
  } finally {
    await sink.close();
  }
}
