// What an agent server that is an instance of a deployment reads at its start, as JSON: the variables of its workers, its database, its
// master key, and who speaks to it. Messages name the member and never quote it. Pure.
import { type Parsed, parseWith, withoutPrototype, z } from '../../../base/schema.ts';
import { Secret } from '../../../base/secret.ts';
import { type AgentInput, INPUT_VARIABLE } from '../contract.ts';
import { mountPrefix } from './graph-file.ts';

export type DeploymentInput = {
  readonly variables: Readonly<Record<string, string>>;
  readonly databaseUrl: string;
  readonly masterKey: Secret;
  readonly deployment: ServedAs;
};

/** Which deployment the server is an instance of. */
export type ServedAs = Omit<AgentInput['deployment'], 'gatewayToken' | 'mountPrefix'> & {
  readonly gatewayToken: Secret;
  /** Empty: clients reach it without one. */
  readonly mountPrefix: string;
};

const MAX_VARIABLES = 2_000;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
const BASE64_KEY = /^[A-Za-z0-9+/]{43}=$/;
const BASE64URL_KEY = /^[A-Za-z0-9_-]{43}$/;

const secret = (pattern: RegExp, message: string) =>
  z
    .string()
    .regex(pattern, message)
    .transform((text) => new Secret(text));

const schema = z.strictObject({
  variables: withoutPrototype(
    z.record(
      z.string().regex(NAME, 'must be the name of a variable'),
      z.string().refine((text) => !text.includes('\0'), 'must not contain U+0000'),
    ),
  ).refine((all) => Object.keys(all).length <= MAX_VARIABLES, `has more than ${MAX_VARIABLES} variables`),
  databaseUrl: z.string().regex(/^postgres(?:ql)?:\/\//, 'must be the URL of a PostgreSQL database'),
  masterKey: secret(BASE64_KEY, 'must be 32 bytes in base64'),
  deployment: z.strictObject({
    id: z.uuid(),
    name: z.string().min(1).max(255),
    revisionId: z.uuid(),
    gatewayToken: secret(BASE64URL_KEY, 'must be 32 bytes in base64url'),
    access: z.enum(['gateway', 'handler']),
    mountPrefix: mountPrefix.prefault(''),
    tracesUrl: z
      .string()
      .regex(/^http:\/\/127\.0\.0\.1:\d+$/, 'must be on its loopback')
      .optional(),
  }),
});

/** `text`: what was read on the descriptor. */
export function parseDeploymentInput(text: string): Parsed<DeploymentInput> {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // The text of the error quotes the input.
    return { ok: false, issues: [{ loc: [INPUT_VARIABLE], msg: 'must be JSON', type: 'json_invalid' }] };
  }
  return parseWith(schema, document, [INPUT_VARIABLE]);
}

/** Variables that the documentation of deployments names as settings of the server: their author sets them as any other. */
const SETTINGS: readonly string[] = [
  ...['N_JOBS_PER_WORKER', 'BG_JOB_TIMEOUT_SECS', 'RESUMABLE_STREAM_TTL_SECONDS'],
  ...['CORS_ALLOW_ORIGINS', 'LANGGRAPH_CONFIG', 'LOG_LEVEL'],
];

/** Those of the given variables that are settings of the server. */
export function settingsIn(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    SETTINGS.flatMap((name) => {
      const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** What the platform tells the workers of the deployment that they are of, by the names that its libraries read. */
export function hostVariables({
  id,
  name,
  revisionId,
  mountPrefix: prefix,
}: ServedAs): Readonly<Record<string, string>> {
  return {
    LANGSMITH_DEPLOYMENT_NAME: name,
    LANGSMITH_HOST_PROJECT_NAME: name,
    LANGSMITH_HOST_PROJECT_ID: id,
    LANGSMITH_HOST_REVISION_ID: revisionId,
    // Of its traces.
    LANGSMITH_PROJECT: name,
    LANGCHAIN_PROJECT: name,
    LANGCHAIN_REVISION_ID: revisionId,
    ...(prefix !== '' && { MOUNT_PREFIX: prefix }),
  };
}

/** Of the server's own variables, those that are no matter of its workers. */
const OWN = /^(?:SALLYPORT_.*|DATABASE_URL|NODE_OPTIONS|NODE_COMPILE_CACHE|UV_THREADPOOL_SIZE|PATH|HOME)$/;

/** What an isolated program was given to reach the network: its proxy, the certificates of that, and placeholders for keys. */
export function networkVariables(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const all = Object.entries(env).filter(([name]) => !OWN.test(name));
  return Object.fromEntries(all.filter((one): one is [string, string] => one[1] !== undefined));
}
