// The settings of an agent server, besides its configuration file: variables and flags. Each is checked when the server starts.
import { availableParallelism } from 'node:os';
import { type ListenAddress, parseSocketListen, type SocketPath } from '../../../base/listen-address.ts';
import { type Issue, type Parsed, parseWith, z } from '../../../base/schema.ts';
import {
  asBoolean,
  asList,
  asText,
  overlayVariables,
  type Variable,
} from '../../../base/variable-overlay.ts';
import { INPUT_VARIABLE } from '../contract.ts';
import type { ServedAs } from './deployment-input.ts';
import { mountPrefix } from './graph-file.ts';

/**
 * Who is let in. `handler`: whom the authentication handler of the deployment accepts. `key_file`: whoever has a key of the
 * file. `gateway`: whom the gateway of the deployment has let in. `none`: everybody who reaches the listener.
 */
export type AgentAccess = 'handler' | 'key_file' | 'gateway' | 'none';

export type AgentSettings = {
  readonly access: AgentAccess;
  /** Of an instance of a deployment. */
  readonly servedAs: ServedAs | undefined;
  /** The listener is on loopback, which the browsers of the machine reach. */
  readonly isLoopback: boolean;
  /** One key a line. With a handler, these keys admit the studio. */
  readonly keyFile: string | undefined;
  /** `--studio`, on loopback alone: the header of the studio counts without a key. */
  readonly isStudio: boolean;
  /** Runs that one worker has at once. */
  readonly jobsPerWorker: number;
  /** Workers at most. */
  readonly workers: number;
  /** Runs of one thread that wait; another one is refused. */
  readonly threadPendingRuns: number;
  /** Runs of all threads that wait; another one is refused. */
  readonly pendingRuns: number;
  /** A run that takes longer ends as `timeout`. */
  readonly runTimeoutSeconds: number;
  /** For runs that are under way when the process begins to drain. */
  readonly drainSeconds: number;
  /** How long the events of a resumable run are kept after its end. */
  readonly resumableTtlSeconds: number;
  /** For test suites: `POST /internal/truncate` deletes everything. */
  readonly allowsTruncate: boolean;
};

/** The workspace whose data key seals the users of runs; made at the start. */
export const AGENT_WORKSPACE_ID = 'a6e27000-0000-4000-8000-000000000002';
export const AGENT_ORGANIZATION_ID = 'a6e27000-0000-4000-8000-000000000001';

const listen = z.string().transform((text, context) => {
  const parsed = parseSocketListen(text);
  if (typeof parsed !== 'string') return parsed;
  context.addIssue({ code: 'custom', message: parsed });
  return z.NEVER;
});

const LEVELS = {
  ...{ trace: 'trace', debug: 'debug', info: 'info', warn: 'warn', warning: 'warn' },
  ...{ error: 'error', critical: 'error', silent: 'silent' },
} as const;
const level = z
  .string()
  .toLowerCase()
  .pipe(z.enum(Object.keys(LEVELS) as (keyof typeof LEVELS)[]))
  .transform((name) => LEVELS[name]);

const json = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'must be JSON' });
    return z.NEVER;
  }
});

// A timer of Node has 31 bits of milliseconds.
const seconds = z.int().max(2_000_000);

const NO_KEYS = 'must be none: name the accepted keys by SALLYPORT_AGENT_KEY_FILE';

const schema = z.strictObject({
  listen: listen.prefault('127.0.0.1:2024'),
  data_dir: z.string().min(1).optional(),
  auth: z.custom<'none'>((text) => text === 'none', NO_KEYS).optional(),
  key_file: z.string().min(1).optional(),
  studio: z.boolean().default(false),
  jobs_per_worker: z.int().min(1).max(1000).default(10),
  workers: z.int().min(1).max(256).optional(),
  thread_pending_runs: z.int().min(1).max(1_000_000).default(1000),
  pending_runs: z.int().min(1).max(10_000_000).default(100_000),
  run_timeout_seconds: seconds.min(1).default(3600),
  drain_seconds: z.int().min(0).max(3600).default(180),
  resumable_ttl_seconds: seconds.min(1).default(120),
  error_format: z.enum(['json', 'text']).optional(),
  truncate: z.boolean().default(false),
  cors_origins: z.array(z.string().min(1)).optional(),
  mount_prefix: mountPrefix.optional(),
  log_level: level.prefault('info'),
  log_json: z.boolean().default(true),
  default_configs: json.pipe(z.record(z.string(), z.record(z.string(), z.unknown()))).prefault('{}'),
});

const asLowerCaseBoolean = (text: string): unknown => asBoolean(text.toLowerCase());

const variables: readonly Variable[] = (
  [
    ['SALLYPORT_AGENT_LISTEN', 'listen', asText],
    ['SALLYPORT_AGENT_DATA_DIR', 'data_dir', asText],
    ['SALLYPORT_AGENT_AUTH', 'auth', asText],
    ['SALLYPORT_AGENT_KEY_FILE', 'key_file', asText],
    ['SALLYPORT_AGENT_STUDIO', 'studio', asLowerCaseBoolean],
    ['SALLYPORT_AGENT_WORKERS', 'workers', Number],
    ['SALLYPORT_AGENT_THREAD_PENDING_RUNS', 'thread_pending_runs', Number],
    ['SALLYPORT_AGENT_PENDING_RUNS', 'pending_runs', Number],
    ['SALLYPORT_AGENT_ERROR_FORMAT', 'error_format', asText],
    ['SALLYPORT_AGENT_TRUNCATE', 'truncate', asLowerCaseBoolean],
    ['N_JOBS_PER_WORKER', 'jobs_per_worker', Number],
    ['BG_JOB_TIMEOUT_SECS', 'run_timeout_seconds', Number],
    ['BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS', 'drain_seconds', Number],
    ['RESUMABLE_STREAM_TTL_SECONDS', 'resumable_ttl_seconds', Number],
    ['CORS_ALLOW_ORIGINS', 'cors_origins', asList],
    ['MOUNT_PREFIX', 'mount_prefix', asText],
    ['LOG_LEVEL', 'log_level', asText],
    ['LOG_JSON', 'log_json', asLowerCaseBoolean],
    ['LANGGRAPH_CONFIG', 'default_configs', asText],
  ] as const
).map(([name, key, read]) => ({ name, path: [key], read }));

/** Every variable, for the check of misspelt ones. */
export const agentVariables: readonly string[] = [...variables.map(({ name }) => name), INPUT_VARIABLE];

export type AgentVariables = z.output<typeof schema>;

/** An issue names the variable. */
export function parseAgentVariables(env: NodeJS.ProcessEnv): Parsed<AgentVariables> {
  const { document, naming } = overlayVariables({}, variables, env);
  const parsed = parseWith(schema, document);
  return parsed.ok ? parsed : { ok: false, issues: parsed.issues.map(naming) };
}

/** An open server must be a decision, never a default. */
export function toAgentSettings(
  given: AgentVariables,
  hasHandler: boolean,
  servedAs?: ServedAs,
): Parsed<AgentSettings> {
  const isExposed = isExposedListen(given.listen);
  const issues =
    servedAs === undefined
      ? accessIssues(given, { hasHandler, isExposed })
      : deploymentIssues(given, { hasHandler, servedAs });
  if (issues.length > 0) return { ok: false, issues };
  const alone = given.key_file === undefined ? 'none' : 'key_file';
  return {
    ok: true,
    value: {
      access: hasHandler ? 'handler' : (servedAs?.access ?? alone),
      servedAs,
      isLoopback: !isExposed && !('path' in given.listen),
      keyFile: given.key_file,
      isStudio: given.studio,
      jobsPerWorker: given.jobs_per_worker,
      workers: given.workers ?? Math.max(2, availableParallelism()),
      threadPendingRuns: given.thread_pending_runs,
      pendingRuns: given.pending_runs,
      runTimeoutSeconds: given.run_timeout_seconds,
      drainSeconds: given.drain_seconds,
      resumableTtlSeconds: given.resumable_ttl_seconds,
      allowsTruncate: given.truncate,
    },
  };
}

function accessIssues(
  { auth, key_file: keyFile, studio }: AgentVariables,
  { hasHandler, isExposed }: { readonly hasHandler: boolean; readonly isExposed: boolean },
): readonly Issue[] {
  const issue = (name: string, msg: string): readonly Issue[] => [{ loc: [name], msg, type: 'value_error' }];
  if (keyFile !== undefined && auth !== undefined)
    return issue(
      'SALLYPORT_AGENT_AUTH',
      `${auth} and SALLYPORT_AGENT_KEY_FILE exclude each other: set one of them`,
    );
  if (hasHandler && auth === 'none')
    return issue(
      'SALLYPORT_AGENT_AUTH',
      'none contradicts auth.path of the configuration: remove one of them',
    );
  if (studio && isExposed)
    return issue(
      '--studio',
      'admits everybody who sends the header of the studio: listen on loopback, or give the studio a key',
    );
  if (isExposed && !hasHandler && keyFile === undefined && auth === undefined)
    return issue(
      'SALLYPORT_AGENT_LISTEN',
      'is reachable from other machines, and nobody is authenticated: configure auth.path, set SALLYPORT_AGENT_KEY_FILE, or SALLYPORT_AGENT_AUTH to none',
    );
  return [];
}

/** Its gateway lets callers in, and nothing else does. */
function deploymentIssues(
  { auth, key_file: keyFile, studio, listen }: AgentVariables,
  { hasHandler, servedAs }: { readonly hasHandler: boolean; readonly servedAs: ServedAs },
): readonly Issue[] {
  const issue = (name: string, msg: string): Issue => ({ loc: [name], msg, type: 'value_error' });
  const others = [
    ['SALLYPORT_AGENT_AUTH', auth !== undefined],
    ['SALLYPORT_AGENT_KEY_FILE', keyFile !== undefined],
    ['--studio', studio],
  ] as const;
  const isAsConfigured = hasHandler === (servedAs.access === 'handler');
  return [
    ...others.flatMap(([name, isSet]) =>
      isSet ? [issue(name, `has no meaning for an instance of a deployment: remove it`)] : [],
    ),
    ...(isAsConfigured ? [] : [issue(INPUT_VARIABLE, hasHandler ? HANDLER_UNUSED : HANDLER_MISSING)]),
    ...('path' in listen ? [] : [issue('SALLYPORT_AGENT_LISTEN', NO_SOCKET)]),
  ];
}

const HANDLER_UNUSED =
  'deployment.access must be handler, because the configuration has auth.path: remove that, or start it so';
const HANDLER_MISSING = 'deployment.access is handler, and the configuration has no auth.path: add it';
const NO_SOCKET = 'must be unix: and a path: an instance of a deployment is reached by its gateway alone';

/** Whether other machines can reach it. */
function isExposedListen(at: ListenAddress | SocketPath): boolean {
  if ('path' in at) return false;
  return !(at.host === 'localhost' || at.host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(at.host));
}
