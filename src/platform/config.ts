// What the operator of the platform sets: a JSON file, then variables and flags over it; read once, frozen. Parsing opens
// no file; the caller brings the document.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type ListenAddress, parseListenAddress } from '../base/listen-address.ts';
import type { LogLevel } from '../base/log.ts';
import { type Parsed, parseWith, z } from '../base/schema.ts';
import {
  type Variable,
  asBoolean,
  asList,
  asText,
  numericVariables,
  overlayVariables,
  toSnakeCase,
} from '../base/variable-overlay.ts';
import { type TrustedProxies, noProxies, parseTrustedProxies } from './api/client-address.ts';
import { type ServerLimits, defaultLimits } from './api/limits.ts';

export type PlatformConfig = {
  readonly listen: ListenAddress;
  /** Undefined: metrics are told nowhere. */
  readonly metricsListen: ListenAddress | undefined;
  readonly dataDirectory: string;
  readonly database: {
    /** Undefined: a server of our own in the data directory. It holds a password. */
    readonly url: string | undefined;
    /** For migrations, where another role owns the tables. */
    readonly ownerUrl: string | undefined;
    readonly maxConnections: number;
  };
  /** What an organization has that says nothing of it. */
  readonly defaultFeatures: { readonly can_use_audit_logs: boolean };
  readonly audit: {
    /** A file, or `s3://bucket/prefix`. */
    readonly checkpoints: string;
    readonly keyFile: string;
    readonly checkpointIntervalMs: number;
  };
  readonly limits: ServerLimits;
  readonly trustedProxies: TrustedProxies;
  readonly logLevel: LogLevel;
};

/** Reads the document of the config file (`{}` if there is none) with the variables of `env` over it. */
export function parsePlatformConfig(document: unknown, env: NodeJS.ProcessEnv): Parsed<PlatformConfig> {
  const base = parseWith(z.record(z.string(), z.unknown()), document);
  if (!base.ok) return base;
  const { document: merged, naming } = overlayVariables(base.value, variables, env);
  const parsed = parseWith(schema, merged);
  if (!parsed.ok) return { ok: false, issues: parsed.issues.map(naming) };
  return { ok: true, value: Object.freeze(toConfig(parsed.value, env)) };
}

/** Every variable and the key of the file that it sets. */
export function platformVariables(): readonly { readonly name: string; readonly key: string }[] {
  return variables.map(({ name, path }) => ({ name, key: path.join('.') }));
}

/** Whether others than this machine reach it. */
export function isExposedListen({ host }: Pick<ListenAddress, 'host'>): boolean {
  return !(host === 'localhost' || host === '::1' || host.startsWith('127.'));
}

const listenAddress = z.string().superRefine((text, context) => {
  const parsed = parseListenAddress(text);
  if (typeof parsed === 'string') context.addIssue({ code: 'custom', message: parsed });
});
const postgresUrl = z.string().refine((text) => /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text), {
  message: 'should be postgresql://user:password@host:port/database, with special characters percent-encoded',
});
const proxy = z.string().refine((text) => parseTrustedProxies([text]) !== undefined, {
  message: 'should be an address or a range, for example 10.0.0.0/8',
});
const checkpoints = z
  .string()
  .refine((text) => /^(?:s3:\/\/[a-z0-9][a-z0-9.-]+(?:\/.*)?|(?!s3:).+)$/s.test(text), {
    message: 'should be the path of a file or s3://bucket/prefix',
  });
const file = z.string().min(1);

const schema = z.strictObject({
  listen: listenAddress.default('127.0.0.1:8080'),
  metrics_listen: listenAddress.optional(),
  data_dir: file.optional(),
  database: z
    .strictObject({
      url: postgresUrl.optional(),
      owner_url: postgresUrl.optional(),
      max_connections: z.int().min(2).max(1000).default(20),
    })
    .prefault({}),
  default_org_features: z.strictObject({ can_use_audit_logs: z.boolean().default(false) }).prefault({}),
  audit: z
    .strictObject({
      checkpoints: checkpoints.optional(),
      key_file: file.optional(),
      checkpoint_interval_ms: z.int().min(1000).max(86_400_000).default(60_000),
    })
    .prefault({}),
  limits: z
    .strictObject(
      Object.fromEntries(
        Object.keys(defaultLimits).map((key) => [
          toSnakeCase(key),
          z.int().min(1).max(1_000_000_000).optional(),
        ]),
      ),
    )
    .prefault({}),
  trusted_proxies: z.array(proxy).default([]),
  log: z
    .strictObject({ level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info') })
    .prefault({}),
});

const variables: readonly Variable[] = [
  { name: 'SALLYPORT_PLATFORM_LISTEN', path: ['listen'], read: asText },
  { name: 'SALLYPORT_PLATFORM_METRICS_LISTEN', path: ['metrics_listen'], read: asText },
  { name: 'SALLYPORT_PLATFORM_DATA_DIR', path: ['data_dir'], read: asText },
  { name: 'DATABASE_URL', path: ['database', 'url'], read: asText },
  { name: 'SALLYPORT_PLATFORM_DATABASE_OWNER_URL', path: ['database', 'owner_url'], read: asText },
  {
    name: 'SALLYPORT_PLATFORM_DATABASE_MAX_CONNECTIONS',
    path: ['database', 'max_connections'],
    read: Number,
  },
  {
    name: 'DEFAULT_ORG_FEATURE_CAN_USE_AUDIT_LOGS',
    path: ['default_org_features', 'can_use_audit_logs'],
    read: (text) => asBoolean(text.toLowerCase()),
  },
  { name: 'SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS', path: ['audit', 'checkpoints'], read: asText },
  { name: 'SALLYPORT_PLATFORM_AUDIT_KEY_FILE', path: ['audit', 'key_file'], read: asText },
  {
    name: 'SALLYPORT_PLATFORM_AUDIT_CHECKPOINT_INTERVAL_MS',
    path: ['audit', 'checkpoint_interval_ms'],
    read: Number,
  },
  { name: 'SALLYPORT_PLATFORM_TRUSTED_PROXIES', path: ['trusted_proxies'], read: asList },
  { name: 'SALLYPORT_PLATFORM_LOG_LEVEL', path: ['log', 'level'], read: asText },
  ...numericVariables('SALLYPORT_PLATFORM_', 'limits', defaultLimits),
];

function toConfig(document: z.infer<typeof schema>, env: NodeJS.ProcessEnv): PlatformConfig {
  const { database, audit, limits } = document;
  const dataDirectory = resolve(document.data_dir ?? join(stateHome(env), 'sallyport', 'platform'));
  // Every text below was checked by the schema; an entry that does not parse is one it refused.
  return {
    listen: parseListenAddress(document.listen) as ListenAddress,
    metricsListen: document.metrics_listen
      ? (parseListenAddress(document.metrics_listen) as ListenAddress)
      : undefined,
    dataDirectory,
    database: { url: database.url, ownerUrl: database.owner_url, maxConnections: database.max_connections },
    defaultFeatures: document.default_org_features,
    audit: {
      checkpoints: audit.checkpoints ?? join(dataDirectory, 'audit-checkpoints.jsonl'),
      keyFile: audit.key_file ?? join(dataDirectory, 'audit-signing.key'),
      checkpointIntervalMs: audit.checkpoint_interval_ms,
    },
    limits: toLimits(limits),
    trustedProxies: parseTrustedProxies(document.trusted_proxies) ?? noProxies,
    logLevel: document.log.level,
  };
}

function toLimits(given: Readonly<Record<string, number | undefined>>): ServerLimits {
  const entries = Object.entries(defaultLimits).map(([key, value]) => [
    key,
    given[toSnakeCase(key)] ?? value,
  ]);
  // The keys are those of the defaults, and every value is a number.
  return Object.freeze(Object.fromEntries(entries)) as ServerLimits;
}

/** Root's is the machine's: the database runs as another user, who may not enter root's home. */
function stateHome(env: NodeJS.ProcessEnv): string {
  const own = process.getuid?.() === 0 ? '/var/lib' : join(homedir(), '.local', 'state');
  return env['XDG_STATE_HOME'] ?? own;
}
