// What the operator sets: a JSON file, then variables and flags over it; read once, frozen. Never mixed with
// proxy_config, which a tenant writes. Parsing opens no file.
import { parseListenAddress } from '../base/listen-address.ts';
import { type Issue, type Parsed, parseWith, toJsonSchema, z } from '../base/schema.ts';
import {
  type Variable,
  asBoolean,
  asList,
  asNumbers,
  asText,
  numericVariables,
  overlayVariables,
  toSnakeCase,
} from '../base/variable-overlay.ts';
import { isAllowable, parseCidr } from '../base/address.ts';
import { parseAuthority, parseHost } from '../policy/authority/authority.ts';
import { type Limits, type Timeouts, defaultLimits, defaultTimeouts } from '../proxy/limits.ts';
import { DEFAULT_RESERVED_HOST } from '../policy/document/reserved-host.ts';
import { parseCleartextDestination } from '../proxy/upstream/address-guard.ts';
import { exposureIssues, namespaceIssues, parseAdminListen } from './listen-address.ts';
import { recordVariables, recordsSchema } from './records/record-forward-config.ts';

type Failure = { readonly error: string };

/** A text that `parse` turns into a value, or into what is wrong with it. */
function parsedText<P>(parse: (text: string) => P | Failure): z.ZodType<Exclude<P, Failure>, string> {
  return z.string().transform((text, context) => {
    const value = parse(text);
    if (typeof value !== 'object' || value === null || !('error' in value))
      return value as Exclude<P, Failure>;
    context.addIssue({ code: 'custom', message: String(value.error) });
    return z.NEVER;
  });
}

const listenAddress = parsedText((text) => {
  const parsed = parseListenAddress(text);
  return typeof parsed === 'string' ? { error: parsed } : parsed;
});
const cidr = parsedText(
  (text) =>
    parseCidr(text) ?? { error: 'must be an address or a CIDR without host bits, for example 10.0.0.0/8' },
);
const cleartext = parsedText(
  (text) =>
    parseCleartextDestination(text) ?? {
      error: 'must be host:port or CIDR:port, for example mock.internal:8080 or 10.1.0.0/16:80',
    },
);
const hostName = z.string().refine((text) => typeof parseAuthority(`${text}:1`) !== 'string', {
  message: 'must be a host name or an address, without a port',
});
const reservedHost = parsedText((text) => {
  const parsed = parseHost(text);
  const isName = typeof parsed === 'object' && parsed.kind === 'name' && parsed.host.includes('.');
  return isName ? parsed.host : { error: 'must be a host name with a dot, for example sallyport.internal' };
});
const file = z.string().min(1);
const milliseconds = z.int().min(1).max(86_400_000);
const count = z.int().min(1).max(1_000_000);
const privateRange = parsedText((text) => {
  if (text === 'all' || text === 'loopback') return text;
  const range = parseCidr(text);
  if (range === undefined)
    return { error: 'must be "loopback", "all", an address or a CIDR without host bits, as in 10.0.0.0/8' };
  return isAllowable(range) ? range : { error: NO_EFFECT };
});
const NO_EFFECT =
  'has no effect, remove it: public addresses need no entry, and metadata services, link-local, unspecified, multicast and unassigned addresses are never reached';

const AUTH = 'must be "none" or {"token_file": path}; the variable of the path is SALLYPORT_AUTH_TOKEN_FILE';

const schema = z.strictObject({
  listen: listenAddress.prefault('127.0.0.1:3128'),
  auth: z.union([z.literal('none'), z.strictObject({ token_file: file })], AUTH).optional(),
  allow_clients: z.array(cidr).optional(),
  proxy_config: file.optional(),
  require_config: z.boolean().default(false),
  watch: z.boolean().default(true),
  reserved_host: reservedHost.prefault(DEFAULT_RESERVED_HOST),
  state_dir: file.optional(),
  state_key_file: file.optional(),
  admin: z
    .strictObject({
      listen: parsedText(parseAdminListen).prefault('127.0.0.1:3129'),
      token_file: file.optional(),
      exposed: z.boolean().default(false),
      hosts: z.array(hostName).default([]),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      listen: parsedText(parseAdminListen).prefault('off'),
      token_file: file.optional(),
      exposed: z.boolean().default(false),
      hosts: z.array(hostName).default([]),
    })
    .prefault({}),
  sandboxes: z.strictObject({ namespaces: z.boolean().default(false) }).prefault({}),
  secrets: z.strictObject({ directory: file.optional(), file: file.optional() }).prefault({}),
  ca: z.strictObject({ certificate: file, key: file }).optional(),
  upstream: z.strictObject({ ca_file: file.optional() }).prefault({}),
  egress: z
    .strictObject({
      allow_private: z.array(privateRange).default([]),
      private_by_rule: z.enum(['tls', 'never']).default('tls'),
      ports: z.array(z.int().min(1).max(65_535)).default([80, 443]),
    })
    .prefault({}),
  inject_cleartext: z.array(cleartext).default([]),
  allow_wildcards: z.array(z.string()).default([]),
  scrub: z.enum(['head', 'body']).default('head'),
  callback: z
    .strictObject({ allow_private: z.boolean().default(true), timeout_ms: milliseconds.default(10_000) })
    .prefault({}),
  drain: z.strictObject({ delay_ms: z.int().min(0).max(600_000).default(0) }).prefault({}),
  limits: z.strictObject(optionalKeys(defaultLimits, count)).prefault({}),
  timeouts: z.strictObject(optionalKeys(defaultTimeouts, milliseconds)).prefault({}),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
      records: z.boolean().default(true),
      when_blocked: z.enum(['refuse', 'drop']).default('refuse'),
    })
    .prefault({}),
  records: recordsSchema,
});

const variables: readonly Variable[] = [
  { name: 'SALLYPORT_LISTEN', path: ['listen'], read: asText },
  { name: 'SALLYPORT_AUTH', path: ['auth'], read: asText },
  { name: 'SALLYPORT_AUTH_TOKEN_FILE', path: ['auth', 'token_file'], read: asText },
  { name: 'SALLYPORT_ALLOW_CLIENTS', path: ['allow_clients'], read: asList },
  { name: 'SALLYPORT_PROXY_CONFIG', path: ['proxy_config'], read: asText },
  { name: 'SALLYPORT_REQUIRE_CONFIG', path: ['require_config'], read: asBoolean },
  { name: 'SALLYPORT_WATCH', path: ['watch'], read: asBoolean },
  { name: 'SALLYPORT_RESERVED_HOST', path: ['reserved_host'], read: asText },
  { name: 'SALLYPORT_STATE_DIR', path: ['state_dir'], read: asText },
  { name: 'SALLYPORT_STATE_KEY_FILE', path: ['state_key_file'], read: asText },
  { name: 'SALLYPORT_ADMIN_LISTEN', path: ['admin', 'listen'], read: asText },
  { name: 'SALLYPORT_ADMIN_TOKEN_FILE', path: ['admin', 'token_file'], read: asText },
  { name: 'SALLYPORT_ADMIN_EXPOSED', path: ['admin', 'exposed'], read: asBoolean },
  { name: 'SALLYPORT_ADMIN_HOSTS', path: ['admin', 'hosts'], read: asList },
  { name: 'SALLYPORT_METRICS_LISTEN', path: ['metrics', 'listen'], read: asText },
  { name: 'SALLYPORT_METRICS_TOKEN_FILE', path: ['metrics', 'token_file'], read: asText },
  { name: 'SALLYPORT_METRICS_EXPOSED', path: ['metrics', 'exposed'], read: asBoolean },
  { name: 'SALLYPORT_METRICS_HOSTS', path: ['metrics', 'hosts'], read: asList },
  { name: 'SALLYPORT_SANDBOXES_NAMESPACES', path: ['sandboxes', 'namespaces'], read: asBoolean },
  { name: 'SALLYPORT_SECRETS_DIR', path: ['secrets', 'directory'], read: asText },
  { name: 'SALLYPORT_SECRETS_FILE', path: ['secrets', 'file'], read: asText },
  { name: 'SALLYPORT_CA_CERT', path: ['ca', 'certificate'], read: asText },
  { name: 'SALLYPORT_CA_KEY', path: ['ca', 'key'], read: asText },
  { name: 'SALLYPORT_UPSTREAM_CA', path: ['upstream', 'ca_file'], read: asText },
  { name: 'SALLYPORT_EGRESS_ALLOW_PRIVATE', path: ['egress', 'allow_private'], read: asList },
  { name: 'SALLYPORT_EGRESS_PRIVATE_BY_RULE', path: ['egress', 'private_by_rule'], read: asText },
  { name: 'SALLYPORT_EGRESS_PORTS', path: ['egress', 'ports'], read: asNumbers },
  { name: 'SALLYPORT_INJECT_CLEARTEXT', path: ['inject_cleartext'], read: asList },
  { name: 'SALLYPORT_ALLOW_WILDCARDS', path: ['allow_wildcards'], read: asList },
  { name: 'SALLYPORT_SCRUB', path: ['scrub'], read: asText },
  { name: 'SALLYPORT_CALLBACK_ALLOW_PRIVATE', path: ['callback', 'allow_private'], read: asBoolean },
  { name: 'SALLYPORT_CALLBACK_TIMEOUT_MS', path: ['callback', 'timeout_ms'], read: Number },
  { name: 'SALLYPORT_DRAIN_DELAY_MS', path: ['drain', 'delay_ms'], read: Number },
  { name: 'SALLYPORT_LOG_LEVEL', path: ['log', 'level'], read: asText },
  { name: 'SALLYPORT_LOG_RECORDS', path: ['log', 'records'], read: asBoolean },
  { name: 'SALLYPORT_LOG_WHEN_BLOCKED', path: ['log', 'when_blocked'], read: asText },
  ...recordVariables,
  ...numericVariables('SALLYPORT_', 'limits', defaultLimits),
  ...numericVariables('SALLYPORT_', 'timeouts', defaultTimeouts),
];

/** Every variable and the key of the file that it sets. */
export function configVariables(): readonly { readonly name: string; readonly key: string }[] {
  return variables.map(({ name, path }) => ({ name, key: path.join('.') }));
}

/** The JSON Schema of the config file. */
export function configJsonSchema(): unknown {
  return toJsonSchema(schema);
}

export type Config = Readonly<ReturnType<typeof toConfig>>;

/** Parses the document of the config file (`{}` if there is none) with the variables of `env` over it. */
export function parseConfig(document: unknown, env: NodeJS.ProcessEnv): Parsed<Config> {
  const base = parseWith(z.record(z.string(), z.unknown()), document);
  if (!base.ok) return base;
  // Not the value of the record, which zod makes without `__proto__`: the schema must see it.
  const whole = document as Readonly<Record<string, unknown>>;
  const { document: merged, naming } = overlayVariables(whole, variables, env);
  const parsed = parseWith(schema, merged);
  if (!parsed.ok) return { ok: false, issues: parsed.issues.map((issue) => naming(withVariable(issue))) };
  const config = toConfig(parsed.value);
  const issues = [...exposureIssues(config), ...namespaceIssues(config)];
  return issues.length > 0 ? { ok: false, issues } : { ok: true, value: Object.freeze(config) };
}

/** What a variable or the file requires may be set by a variable too. */
function withVariable(issue: Issue): Issue {
  if (issue.type !== 'missing') return issue;
  const variable = variables.find(({ path }) => path.join('.') === issue.loc.join('.'));
  return variable === undefined ? issue : { ...issue, msg: `${issue.msg}: set it, or ${variable.name}` };
}

function toConfig(document: z.infer<typeof schema>) {
  const { admin, auth, ca, callback, egress, log, metrics, secrets } = document;
  return {
    listen: document.listen,
    /** `none`: the operator explicitly lets every client that reaches the port use it. */
    auth: auth === undefined || auth === 'none' ? auth : { tokenFile: auth.token_file },
    allowClients: document.allow_clients,
    proxyConfigFile: document.proxy_config,
    requireConfig: document.require_config,
    /** Rules and secrets are read again when their files have changed. */
    watchesFiles: document.watch,
    /** How long a process that ends goes on as before, although it is not ready any more. */
    drainDelayMs: document.drain.delay_ms,
    /** The name under which the proxy itself is reached through the proxy. Canonical. */
    reservedHost: document.reserved_host,
    stateDir: document.state_dir,
    stateKeyFile: document.state_key_file,
    admin: {
      listen: admin.listen,
      tokenFile: admin.token_file,
      /** The operator explicitly lets it listen, in plaintext, where other machines reach it. */
      isExposed: admin.exposed,
      /** Host names, besides those of loopback, that requests without a token may use. */
      hosts: admin.hosts,
    },
    metrics: {
      listen: metrics.listen,
      /** Readers must send the token in it. */
      tokenFile: metrics.token_file,
      /** The operator explicitly lets other machines read them. */
      isExposed: metrics.exposed,
      hosts: metrics.hosts,
    },
    /** The parent process may hand over listeners in the network namespaces of sandboxes. */
    hasNamespaces: document.sandboxes.namespaces,
    secretsDirectory: secrets.directory,
    secretsFile: secrets.file,
    ca: ca && { certificateFile: ca.certificate, keyFile: ca.key },
    upstreamCaFile: document.upstream.ca_file,
    egress: {
      allowAllPrivate: egress.allow_private.includes('all'),
      /** Undefined: allowed exactly if the proxy itself listens on loopback. */
      allowLoopback:
        egress.allow_private.some((entry) => entry === 'all' || entry === 'loopback') || undefined,
      allowCidrs: egress.allow_private.filter((entry) => typeof entry === 'object'),
      privateByRule: egress.private_by_rule,
      ports: egress.ports,
    },
    injectCleartext: document.inject_cleartext,
    allowWildcards: document.allow_wildcards,
    /** Where secrets are masked in responses; a rule can ask for more, not for less. */
    scrub: document.scrub,
    callback: { allowPrivate: callback.allow_private, timeoutMs: callback.timeout_ms },
    limits: withDefaults(defaultLimits, document.limits),
    timeouts: withDefaults(defaultTimeouts, document.timeouts),
    logLevel: log.level,
    /** One record for each exchange, at every log level except `silent`. */
    isRecorded: log.records && log.level !== 'silent',
    /** One record for each change of rules and sandboxes, at every log level except `silent`. */
    areChangesRecorded: log.level !== 'silent',
    whenBlocked: log.when_blocked,
    /** Where the records of exchanges go besides the log. */
    recordForward: document.records.forward,
  };
}

function optionalKeys<S extends z.ZodType>(defaults: object, each: S): Record<string, z.ZodOptional<S>> {
  return Object.fromEntries(Object.keys(defaults).map((key) => [toSnakeCase(key), each.optional()]));
}

function withDefaults<T extends Limits | Timeouts>(
  defaults: T,
  given: Record<string, number | undefined>,
): T {
  const entries = Object.entries(defaults).map(([key, value]) => [key, given[toSnakeCase(key)] ?? value]);
  // The keys are those of `defaults`, and every value is a number.
  return Object.freeze(Object.fromEntries(entries)) as T;
}
