// `sallyport agent-server`: serves the graphs of a configuration file until it is stopped. SIGTERM and SIGINT drain; a second
// signal ends the process at once.
import { join } from 'node:path';
import { InputError } from '../base/input-error.ts';
import { type Log, type LogSink, createFdSink, createLineWriter, createLog } from '../base/log.ts';
import { formatAddress } from '../base/listen-address.ts';
import type { Issue } from '../base/schema.ts';
import {
  type AgentConfig,
  type AgentServerParts,
  inputDescriptor,
  knownVariables,
  parseAgentConfig,
} from '../platform/programs/agent-server-program.ts';
import { isExposedListen } from '../platform/config.ts';
import type { Platform } from '../platform/platform.ts';
import {
  claimSecrets,
  exposedVariables,
  handOverSecretVariables,
  platformSecretVariables,
} from '../sidecar/secret-environment.ts';
import { agentServerCommand } from './command/agent-server-command.ts';
import { parseCommandLine, type Values } from './command/declaration.ts';
import { readVersion } from './command/version.ts';
import { readDocument } from './document.ts';
import { formatIssues } from './issue-lines.ts';
import { packageRoot } from './package-root.ts';
import { preventCoreDumps } from './process/core-dumps.ts';
import { readInputDescriptor } from './process/input-descriptor.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';
import { waitForSignal } from './process/stop-signal.ts';
import { unknownVariableWarnings } from './unknown-variables.ts';

type Flags = Values<typeof agentServerCommand.options>;

/** Exit code 0 after a clean drain, 1 when the database server ended, 2 for what must be corrected. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  // First: a process that is replaced, and every other one that is started, would lose or inherit the descriptor.
  const input = readInputDescriptor(process.env, inputDescriptor);
  if (input !== undefined) refuseOtherSecrets(process.env);
  handOverSecretVariables(undefined, exposedVariables(process.env));
  // Before anything that can fail: secrets that are not claimed stay behind in a file.
  const { operators } = claimSecrets(process.env);
  const { values } = parseCommandLine(agentServerCommand, args);
  const file = values.config ?? 'langgraph.json';
  const { env, flagOf } = withFlags(values, { ...process.env, ...operators });
  const parsed = parseAgentConfig({ document: await readDocument(file), path: file, input }, env);
  if (!parsed.ok) return report(file, parsed.issues.map(flagOf));
  const cores = preventCoreDumps();
  const warnings = [...cores.warnings, ...unknownVariableWarnings(process.env, knownVariables)];
  return serve(parsed.value, { file, env, warnings });
}

/** In a variable they could be read from outside of the process, which is why there is a descriptor. */
function refuseOtherSecrets(env: NodeJS.ProcessEnv): void {
  const [name] = platformSecretVariables.filter((one) => env[one] !== undefined);
  if (name !== undefined)
    throw new InputError(`${name} and ${inputDescriptor.variable} exclude each other: remove ${name}`);
}

/** Flags go before variables; an issue names what the operator has set. */
function withFlags(values: Flags, given: NodeJS.ProcessEnv) {
  const options = ['listen', 'data-dir', 'auth', 'key-file'] as const;
  const overrides = options.flatMap((option) => {
    const value = values[option];
    return value === undefined
      ? []
      : [{ option, variable: agentServerCommand.options[option].variable, value }];
  });
  const studio = values.studio === true ? { SALLYPORT_AGENT_STUDIO: 'true' } : {};
  const env = {
    ...given,
    ...Object.fromEntries(overrides.map(({ variable, value }) => [variable, value])),
    ...studio,
  };
  const byVariable = new Map<unknown, string>(
    overrides.map(({ option, variable }) => [variable, `--${option}`]),
  );
  const flagOf = (issue: Issue): Issue => {
    const [first = '', ...below] = issue.loc;
    return { ...issue, loc: [byVariable.get(first) ?? first, ...below] };
  };
  return { env, flagOf };
}

/** Of a variable or a flag, or of the configuration file. */
function report(file: string, issues: readonly Issue[]): number {
  const isSetting = ({ loc: [first = ''] }: Issue): boolean => /^(?:--|[A-Z])/.test(String(first));
  for (const issue of issues)
    process.stderr.write(formatIssues(isSetting(issue) ? 'sallyport' : file, [issue]));
  return 2;
}

/** The line of a request has level info. */
const LEVELS_WITH_REQUESTS: ReadonlySet<string> = new Set(['trace', 'debug', 'info']);

/** Of a deployment, debug: the log is that of its author, whose own lines it is for. */
function requestWriter(
  { ground, input }: AgentConfig,
  sink: LogSink,
  log: Log,
): AgentServerParts['writeRequest'] {
  if (input !== undefined) return (line, msg) => log.debug(line, msg);
  return LEVELS_WITH_REQUESTS.has(ground.logLevel) ? createLineWriter(sink) : undefined;
}

type Started = {
  readonly file: string;
  readonly env: NodeJS.ProcessEnv;
  readonly warnings: readonly string[];
};

async function serve(config: AgentConfig, { file, env, warnings }: Started): Promise<number> {
  const { ground, settings } = config;
  const sink = createFdSink(1);
  const log = createLog(ground.logLevel, sink);
  for (const warning of accessWarnings(config)) log.warn(warning);
  // Those of the machine are, for a deployment, matters of whoever runs it, who has them in a log of their own.
  for (const warning of warnings) log[config.input === undefined ? 'warn' : 'debug'](warning);
  // Runs may take their time to drain, then requests, and everything else together another.
  const timeoutMs = settings.drainSeconds * 1000 + 2 * ground.limits.drainMs;
  const stopped = waitForSignal(timeoutMs, () =>
    log.error('shutdown timed out; exiting with work still running'),
  );
  try {
    const { openAgentServer } = await import('../platform/programs/agent-server-program.ts');
    const writeRequest = requestWriter(config, sink, log);
    const program = [process.execPath, join(packageRoot, 'bin', 'sallyport.js')];
    const version = await readVersion();
    const opened = await openAgentServer(config, { log, writeRequest, version, program, env });
    if (!opened.ok) return report(file, opened.issues);
    return await runToEnd(opened.value, stopped, log);
  } finally {
    await sink.close();
  }
}

async function runToEnd(server: Platform, stopped: Promise<unknown>, log: Log): Promise<number> {
  log.info({ api: server.url, database: server.storage, pid: process.pid }, 'ready');
  const reason = await Promise.race([stopped, server.ended.then(() => 'database' as const)]);
  if (reason === 'database') log.error('the database server ended by itself');
  else log.info('draining');
  await server.close();
  return reason === 'database' ? 1 : 0;
}

function accessWarnings({ settings, variables }: AgentConfig): readonly string[] {
  const { listen } = variables;
  const isOpen = settings.access === 'none' && 'port' in listen && isExposedListen(listen);
  return [
    ...(isOpen
      ? [
          `everybody who reaches ${formatAddress(listen)} may use every thread and run: SALLYPORT_AGENT_AUTH is none`,
        ]
      : []),
    ...(settings.allowsTruncate ? ['POST /internal/truncate deletes everything: for test suites alone'] : []),
    ...(variables.log_json ? [] : ['LOG_JSON=false has no effect: the log has one JSON object a line']),
  ];
}
