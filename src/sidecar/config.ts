// What an operator sets: a JSON file, then variables and flags over it; read once, frozen. Never mixed with
// proxy_config, which a tenant authors. Parsing opens no file; the caller brings the document.
import { type ListenAddress, parseListenAddress } from '../base/listen-address.ts';
import { type Issue, parseWith, z } from '../base/schema.ts';
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
import { type Cidr, parseCidr } from '../policy/authority/address.ts';
import { parseAuthority } from '../policy/authority/authority.ts';
import { type CleartextDestination, parseCleartextDestination } from '../proxy/upstream/address-guard.ts';
import { type Limits, type Timeouts, defaultLimits, defaultTimeouts } from '../proxy/limits.ts';
import { exposureIssues } from './exposure.ts';
import { type SocketPath, parseAdminListen } from './listen-address.ts';
import {
  type RecordForward,
  recordVariables,
  recordsSchema,
  toRecordForward,
} from './records/record-forward-config.ts';

export type Config = {
  readonly listen: ListenAddress;
  /** `none`: the operator says in so many words that anybody who reaches the port may use it. */
  readonly auth: 'none' | { readonly tokenFile: string } | undefined;
  readonly allowClients: readonly Cidr[] | undefined;
  readonly proxyConfigFile: string | undefined;
  readonly requireConfig: boolean;
  readonly stateDir: string | undefined;
  readonly stateKeyFile: string | undefined;
  readonly admin: {
    readonly listen: ListenAddress | SocketPath | 'off';
    readonly tokenFile: string | undefined;
    /** The operator says in so many words that it may listen where others reach it, in clear. */
    readonly isExposed: boolean;
    /** Names, besides those of loopback, by which requests without a token may call it. */
    readonly hosts: readonly string[];
  };
  readonly secretsDirectory: string | undefined;
  readonly secretsFile: string | undefined;
  readonly ca: { readonly certificateFile: string; readonly keyFile: string } | undefined;
  readonly upstreamCaFile: string | undefined;
  readonly egress: {
    readonly allowAllPrivate: boolean;
    /** Undefined: allowed exactly when the proxy itself listens on loopback. */
    readonly allowLoopback: boolean | undefined;
    readonly allowCidrs: readonly Cidr[];
    readonly privateByRule: 'tls' | 'never';
    readonly ports: readonly number[];
  };
  readonly injectCleartext: readonly CleartextDestination[];
  readonly allowWildcards: readonly string[];
  /** Where secrets are masked in answers; a rule can ask for more, not for less. */
  readonly scrub: 'head' | 'body';
  readonly callback: { readonly allowPrivate: boolean; readonly timeoutMs: number };
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';
  /** One record for each exchange, whatever the level; `silent` and `log.records: false` leave them out. */
  readonly isRecorded: boolean;
  /** One record for each change of the rules and the sandboxes; only `silent` leaves them out. */
  readonly areChangesRecorded: boolean;
  readonly whenBlocked: 'refuse' | 'drop';
  /** Where the records of exchanges go besides the log. */
  readonly recordForward: RecordForward | undefined;
};

export type ConfigResult =
  | { readonly ok: true; readonly value: Config }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** Reads the document of the config file (`{}` if there is none) with the variables of `env` over it. */
export function parseConfig(document: unknown, env: NodeJS.ProcessEnv): ConfigResult {
  const base = parseWith(z.record(z.string(), z.unknown()), document);
  if (!base.ok) return base;
  const { document: merged, naming } = overlayVariables(base.value, variables, env);
  const parsed = parseWith(schema, merged);
  if (!parsed.ok) return { ok: false, issues: parsed.issues.map(naming) };
  const config = toConfig(parsed.value);
  const exposed = exposureIssues(config);
  return exposed.length > 0 ? { ok: false, issues: exposed } : { ok: true, value: Object.freeze(config) };
}

/** Every variable and the key of the file that it sets. */
export function configVariables(): readonly { readonly name: string; readonly key: string }[] {
  return variables.map(({ name, path }) => ({ name, key: path.join('.') }));
}

const listenAddress = z.string().superRefine((text, context) => {
  const parsed = parseListenAddress(text);
  if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
});
const cidr = z.string().refine((text) => parseCidr(text) !== undefined, {
  message: 'should be an address or a CIDR without host bits, for example 10.0.0.0/8',
});
const cleartext = z.string().refine((text) => parseCleartextDestination(text) !== undefined, {
  message: 'should be host:port or CIDR:port, for example mock.internal:8080 or 10.1.0.0/16:80',
});
const adminListen = z.string().superRefine((text, context) => {
  const parsed = parseAdminListen(text);
  if (typeof parsed === 'object' && 'error' in parsed)
    context.addIssue({ code: 'custom', message: parsed.error });
});
const hostName = z.string().refine((text) => typeof parseAuthority(`${text}:1`) !== 'string', {
  message: 'should be a host name or an address, without a port',
});
const file = z.string().min(1);
const milliseconds = z.int().min(1).max(86_400_000);
const count = z.int().min(1).max(1_000_000);

const schema = z.strictObject({
  listen: listenAddress.default('127.0.0.1:3128'),
  auth: z
    .union([z.literal('none'), z.strictObject({ token_file: file })], '"none" or {"token_file": path}')
    .optional(),
  allow_clients: z.array(cidr).optional(),
  proxy_config: file.optional(),
  require_config: z.boolean().default(false),
  state_dir: file.optional(),
  state_key_file: file.optional(),
  admin: z
    .strictObject({
      listen: adminListen.default('127.0.0.1:3129'),
      token_file: file.optional(),
      exposed: z.boolean().default(false),
      hosts: z.array(hostName).default([]),
    })
    .prefault({}),
  secrets: z.strictObject({ directory: file.optional(), file: file.optional() }).prefault({}),
  ca: z.strictObject({ certificate: file, key: file }).optional(),
  upstream: z.strictObject({ ca_file: file.optional() }).prefault({}),
  egress: z
    .strictObject({
      allow_private: z
        .array(z.union([z.enum(['all', 'loopback']), cidr], '"loopback", "all", an address or a CIDR'))
        .default([]),
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
  { name: 'SALLYPORT_STATE_DIR', path: ['state_dir'], read: asText },
  { name: 'SALLYPORT_STATE_KEY_FILE', path: ['state_key_file'], read: asText },
  { name: 'SALLYPORT_ADMIN_LISTEN', path: ['admin', 'listen'], read: asText },
  { name: 'SALLYPORT_ADMIN_TOKEN_FILE', path: ['admin', 'token_file'], read: asText },
  { name: 'SALLYPORT_ADMIN_EXPOSED', path: ['admin', 'exposed'], read: asBoolean },
  { name: 'SALLYPORT_ADMIN_HOSTS', path: ['admin', 'hosts'], read: asList },
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
  { name: 'SALLYPORT_LOG_LEVEL', path: ['log', 'level'], read: asText },
  { name: 'SALLYPORT_LOG_RECORDS', path: ['log', 'records'], read: asBoolean },
  { name: 'SALLYPORT_LOG_WHEN_BLOCKED', path: ['log', 'when_blocked'], read: asText },
  ...recordVariables,
  ...numericVariables('SALLYPORT_', 'limits', defaultLimits),
  ...numericVariables('SALLYPORT_', 'timeouts', defaultTimeouts),
];

function toConfig(document: z.infer<typeof schema>): Config {
  const { egress, auth, ca } = document;
  const cidrs = egress.allow_private.filter((entry) => entry !== 'all' && entry !== 'loopback');
  // Every text below was checked by the schema; an entry that does not parse is one it refused.
  return {
    listen: parseListenAddress(document.listen) as ListenAddress,
    auth: auth === undefined || auth === 'none' ? auth : { tokenFile: auth.token_file },
    allowClients: document.allow_clients && toCidrs(document.allow_clients),
    proxyConfigFile: document.proxy_config,
    requireConfig: document.require_config,
    stateDir: document.state_dir,
    stateKeyFile: document.state_key_file,
    admin: {
      listen: parseAdminListen(document.admin.listen) as Config['admin']['listen'],
      tokenFile: document.admin.token_file,
      isExposed: document.admin.exposed,
      hosts: document.admin.hosts,
    },
    secretsDirectory: document.secrets.directory,
    secretsFile: document.secrets.file,
    ca: ca && { certificateFile: ca.certificate, keyFile: ca.key },
    upstreamCaFile: document.upstream.ca_file,
    egress: {
      allowAllPrivate: egress.allow_private.includes('all'),
      allowLoopback:
        egress.allow_private.some((entry) => entry === 'all' || entry === 'loopback') || undefined,
      allowCidrs: toCidrs(cidrs),
      privateByRule: egress.private_by_rule,
      ports: egress.ports,
    },
    injectCleartext: document.inject_cleartext.flatMap((entry) => parseCleartextDestination(entry) ?? []),
    allowWildcards: document.allow_wildcards,
    scrub: document.scrub,
    callback: { allowPrivate: document.callback.allow_private, timeoutMs: document.callback.timeout_ms },
    limits: withDefaults(defaultLimits, document.limits),
    timeouts: withDefaults(defaultTimeouts, document.timeouts),
    logLevel: document.log.level,
    isRecorded: document.log.records && document.log.level !== 'silent',
    areChangesRecorded: document.log.level !== 'silent',
    whenBlocked: document.log.when_blocked,
    recordForward: toRecordForward(document.records),
  };
}

function toCidrs(entries: readonly string[]): Cidr[] {
  return entries.flatMap((entry) => parseCidr(entry) ?? []);
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
