// The settings of the platform: a JSON file, with environment variables and flags over it; read once, then frozen.
// Parsing reads no file: the caller passes the document.
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ListenAddress } from '../base/listen-address.ts';
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
import { noProxies, parseTrustedProxies } from './api/client-address.ts';
import { type ServerLimits, defaultLimits } from './api/limits.ts';
import {
  deploymentSettings,
  deploymentVariables,
  toDeploymentConfig,
} from './settings/deployment-settings.ts';
import { runnerSchema, runnerVariables, serverConnectionsOf, toRunnerSettings } from './runner-settings.ts';
import { gatewaySettings, gatewayVariables, toGatewayConfig } from './settings/gateway-settings.ts';
import {
  exportConnectionsOf,
  exportSettings,
  exportVariables,
  toExportConfig,
} from './settings/export-settings.ts';
import { toTraceConfig, traceSettings, traceVariables } from './settings/trace-settings.ts';
import { file, limit, listenAddress, publicUrl } from './setting-schemas.ts';
import { MIN_CONNECTIONS } from './store/pool-sizes.ts';

export type PlatformConfig = Readonly<ReturnType<typeof toConfig>>;

/** Reads the document of the config file (`{}` without a file) with the variables of `env` over it. */
export function parsePlatformConfig(document: unknown, env: NodeJS.ProcessEnv): Parsed<PlatformConfig> {
  const base = parseWith(z.record(z.string(), z.unknown()), document);
  if (!base.ok) return base;
  const { document: merged, naming } = overlayVariables(base.value, variables, env);
  const parsed = parseWith(schema, merged);
  if (!parsed.ok) return { ok: false, issues: parsed.issues.map(naming) };
  return { ok: true, value: Object.freeze(toConfig(parsed.value, env)) };
}

/** Every variable and the key of the config file that it sets. */
export function platformVariables(): readonly { readonly name: string; readonly key: string }[] {
  return variables.map(({ name, path }) => ({ name, key: path.join('.') }));
}

/** Whether other machines can reach the address. */
export function isExposedListen({ host }: Pick<ListenAddress, 'host'>): boolean {
  return !(host === 'localhost' || host === '::1' || host.startsWith('127.'));
}

const postgresUrl = z.string().refine((text) => /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text), {
  message: 'must be postgresql://user:password@host:port/database, with special characters percent-encoded',
});
const RANGE = 'must be an address or a range, for example 10.0.0.0/8';
const proxy = z.string().refine((text) => parseTrustedProxies([text]) !== undefined, RANGE);
const checkpoints = z
  .string()
  .refine(
    (text) => /^(?:s3:\/\/[a-z0-9][a-z0-9.-]+(?:\/.*)?|(?!s3:|[A-Za-z][A-Za-z0-9+.-]*:\/\/).+)$/s.test(text),
    'must be the path of a file or s3://bucket/prefix',
  );
const quota = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const GIB = 1024 ** 3;
/** What a caller may ask for, too. */
const MAX_MILLICORES = 1_024_000;
const bytes = z.int().max(2 ** 44);
/** The kernel refuses a smaller file system. */
const MIN_STORAGE_BYTES = 8 * 1024 ** 2;

const schema = z.strictObject({
  role: z.enum(['serve', 'work', 'both']).default('both'),
  listen: listenAddress.prefault('127.0.0.1:8080'),
  metrics_listen: listenAddress.optional(),
  data_dir: file.optional(),
  database: z
    .strictObject({
      url: postgresUrl.optional(),
      owner_url: postgresUrl.optional(),
      max_connections: z.int().min(MIN_CONNECTIONS).max(1000).default(20),
      named_statements: z.boolean().default(true),
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
  vault: z.strictObject({ master_key_file: file.optional() }).prefault({}),
  sandboxes: z
    .strictObject({
      runtime: z.enum(['attached', 'bubblewrap', 'auto', 'none']).default('auto'),
      attached_listen: file.optional(),
      sidecar_config: file.optional(),
      private_callbacks: z.boolean().default(true),
      default_cpu_millicores: z.int().min(1).max(MAX_MILLICORES).default(2_000),
      default_memory_bytes: bytes.min(1).default(2 * GIB),
      default_storage_bytes: bytes.min(MIN_STORAGE_BYTES).default(2 * GIB),
      snapshot_directories: z
        .array(z.string().regex(/^\/./, 'must be an absolute path'))
        .max(100)
        .default([]),
      // Of boxes of the default sizes, as many as `max_boxes`.
      machine_lost_after_seconds: z.int().min(60).max(31_622_400).default(86_400),
      max_boxes: quota.default(100),
      max_cpu_millicores: quota.default(200_000),
      max_memory_bytes: quota.default(200 * GIB),
      max_storage_bytes: quota.default(512 * GIB),
      max_snapshot_bytes: quota.default(64 * GIB),
    })
    .prefault({}),
  gateway: gatewaySettings,
  deployments: deploymentSettings,
  runner: runnerSchema,
  traces: traceSettings,
  exports: exportSettings,
  limits: z
    .strictObject(
      Object.fromEntries(
        Object.entries(defaultLimits).map(([key, value]) => [toSnakeCase(key), limit.default(value)]),
      ),
    )
    .prefault({}),
  trusted_proxies: z.array(proxy).default([]),
  public_url: publicUrl.optional(),
  log: z
    .strictObject({ level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info') })
    .prefault({}),
});

const asLowerCaseBoolean = (text: string): unknown => asBoolean(text.toLowerCase());

const named: readonly (readonly [name: string, key: string, read: Variable['read']])[] = [
  ['SALLYPORT_PLATFORM_ROLE', 'role', asText],
  ['SALLYPORT_PLATFORM_LISTEN', 'listen', asText],
  ['SALLYPORT_PLATFORM_METRICS_LISTEN', 'metrics_listen', asText],
  ['SALLYPORT_PLATFORM_DATA_DIR', 'data_dir', asText],
  ['DATABASE_URL', 'database.url', asText],
  ['SALLYPORT_PLATFORM_DATABASE_OWNER_URL', 'database.owner_url', asText],
  ['SALLYPORT_PLATFORM_DATABASE_MAX_CONNECTIONS', 'database.max_connections', Number],
  ['SALLYPORT_PLATFORM_DATABASE_NAMED_STATEMENTS', 'database.named_statements', asLowerCaseBoolean],
  ['DEFAULT_ORG_FEATURE_CAN_USE_AUDIT_LOGS', 'default_org_features.can_use_audit_logs', asLowerCaseBoolean],
  ['SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS', 'audit.checkpoints', asText],
  ['SALLYPORT_PLATFORM_AUDIT_KEY_FILE', 'audit.key_file', asText],
  ['SALLYPORT_PLATFORM_AUDIT_CHECKPOINT_INTERVAL_MS', 'audit.checkpoint_interval_ms', Number],
  ['SALLYPORT_PLATFORM_VAULT_MASTER_KEY_FILE', 'vault.master_key_file', asText],
  ['SALLYPORT_PLATFORM_SANDBOXES_RUNTIME', 'sandboxes.runtime', asText],
  ['SALLYPORT_PLATFORM_SANDBOXES_ATTACHED_LISTEN', 'sandboxes.attached_listen', asText],
  ['SALLYPORT_PLATFORM_SANDBOXES_SIDECAR_CONFIG', 'sandboxes.sidecar_config', asText],
  ['SALLYPORT_PLATFORM_SANDBOXES_PRIVATE_CALLBACKS', 'sandboxes.private_callbacks', asLowerCaseBoolean],
  ['SALLYPORT_PLATFORM_SANDBOXES_DEFAULT_CPU_MILLICORES', 'sandboxes.default_cpu_millicores', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_DEFAULT_MEMORY_BYTES', 'sandboxes.default_memory_bytes', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_DEFAULT_STORAGE_BYTES', 'sandboxes.default_storage_bytes', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_MACHINE_LOST_AFTER_SECONDS', 'sandboxes.machine_lost_after_seconds', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_SNAPSHOT_DIRECTORIES', 'sandboxes.snapshot_directories', asList],
  ['SALLYPORT_PLATFORM_SANDBOXES_MAX_BOXES', 'sandboxes.max_boxes', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_MAX_CPU_MILLICORES', 'sandboxes.max_cpu_millicores', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_MAX_MEMORY_BYTES', 'sandboxes.max_memory_bytes', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_MAX_STORAGE_BYTES', 'sandboxes.max_storage_bytes', Number],
  ['SALLYPORT_PLATFORM_SANDBOXES_MAX_SNAPSHOT_BYTES', 'sandboxes.max_snapshot_bytes', Number],
  ['SALLYPORT_PLATFORM_TRUSTED_PROXIES', 'trusted_proxies', asList],
  ['SALLYPORT_PLATFORM_PUBLIC_URL', 'public_url', asText],
  ['SALLYPORT_PLATFORM_LOG_LEVEL', 'log.level', asText],
];
const variables: readonly Variable[] = [
  ...[
    ...named,
    ...gatewayVariables,
    ...deploymentVariables,
    ...runnerVariables,
    ...traceVariables,
    ...exportVariables,
  ].map(([name, key, read]) => ({
    name,
    path: key.split('.'),
    read,
  })),
  ...numericVariables('SALLYPORT_PLATFORM_', 'limits', defaultLimits),
];

function toConfig(document: z.infer<typeof schema>, env: NodeJS.ProcessEnv) {
  const { database, audit, vault, sandboxes } = document;
  const dataDirectory = resolve(document.data_dir ?? join(stateHome(env), 'sallyport', 'platform'));
  return {
    /** `serve`: requests. `work`: jobs, schedules and other background work. */
    role: document.role,
    listen: document.listen,
    /** Undefined: no metrics listener. */
    metricsListen: document.metrics_listen,
    dataDirectory,
    database: {
      /** Contains a password. Undefined: an embedded server in the data directory. */
      url: database.url,
      /** For migrations, when another role owns the tables. */
      ownerUrl: database.owner_url,
      /** Of one process: all pools together. */
      maxConnections: database.max_connections,
      /** Of an embedded server: those of the export worker, of the runner and of all deployments, too. */
      serverConnections:
        database.max_connections +
        serverConnectionsOf(document.runner) +
        exportConnectionsOf(document.exports),
      /** False in a database that one program has for itself, whose user must not get the privileges of the role of others. */
      hasRuntimeRole: true,
      /** False behind a pooler that gives each transaction another connection. */
      hasNamedStatements: database.named_statements,
    },
    /** For organizations that do not set a feature themselves. */
    defaultFeatures: document.default_org_features,
    audit: {
      /** The path of a file, or `s3://bucket/prefix`. */
      checkpoints: audit.checkpoints ?? join(dataDirectory, 'audit-checkpoints.jsonl'),
      keyFile: audit.key_file ?? join(dataDirectory, 'audit-signing.key'),
      checkpointIntervalMs: audit.checkpoint_interval_ms,
    },
    vault: {
      /** The operator provides the file; otherwise init creates it. */
      isProvided: vault.master_key_file !== undefined,
      masterKeyFile: vault.master_key_file ?? join(dataDirectory, 'vault-master.key'),
    },
    sandboxes: {
      /**
       * `attached`: somebody else runs the box, and its proxy is here. `bubblewrap`: isolated on this machine. `auto`: isolated where
       * the machine can, else attached. `none`: no box can be created.
       */
      runtime: sandboxes.runtime,
      /** Where attached boxes find their proxy: `ADDRESS:PORT` or `ADDRESS:FIRST-LAST`. Undefined: on loopback. */
      attachedListen: sandboxes.attached_listen,
      /** The config file of the sidecars of boxes. */
      sidecarConfigFile: sandboxes.sidecar_config && resolve(sandboxes.sidecar_config),
      /** Of their rules: whether a callback may name loopback or a private address. */
      allowsPrivateCallbacks: sandboxes.private_callbacks,
      /** Of a box whose creator asks for none. */
      defaultSizes: {
        cpuMillicores: sandboxes.default_cpu_millicores,
        memoryBytes: sandboxes.default_memory_bytes,
        /** Undefined: nothing holds it, because somebody else runs the box. */
        storageBytes: sandboxes.runtime === 'attached' ? undefined : sandboxes.default_storage_bytes,
      },
      /** The boxes of a machine that was not seen for so long have failed. */
      machineLostAfterSeconds: sandboxes.machine_lost_after_seconds,
      /** Snapshots are made of these and what is below them, for every workspace; of nothing else. */
      snapshotDirectories: sandboxes.snapshot_directories.map((one) => resolve(one)),
      /** Of each workspace. */
      quotas: {
        boxes: sandboxes.max_boxes,
        cpuMillicores: sandboxes.max_cpu_millicores,
        memoryBytes: sandboxes.max_memory_bytes,
        storageBytes: sandboxes.max_storage_bytes,
        snapshotBytes: sandboxes.max_snapshot_bytes,
      },
    },
    gateway: toGatewayConfig(document.gateway, document.listen),
    deployments: toDeploymentConfig(document.deployments),
    runner: toRunnerSettings(document.runner, document.listen),
    traces: toTraceConfig(document.traces, dataDirectory),
    exports: toExportConfig(document.exports),
    limits: toLimits(document.limits),
    // The schema has checked every entry.
    trustedProxies: parseTrustedProxies(document.trusted_proxies) ?? noProxies,
    /** Where browsers find the platform; undefined: as the trusted proxies say. */
    publicUrl: document.public_url,
    logLevel: document.log.level,
  };
}

function toLimits(given: Readonly<Record<string, number>>): ServerLimits {
  const entries = Object.keys(defaultLimits).map((key) => [key, given[toSnakeCase(key)]]);
  // Its keys are those of the defaults, and the schema fills in every value.
  return Object.freeze(Object.fromEntries(entries)) as ServerLimits;
}

/** Where programs keep their data. For root outside its home: the embedded database runs as another user, who may not enter it. */
export function stateHome(env: NodeJS.ProcessEnv): string {
  const home = process.getuid?.() === 0 ? '/var/lib' : join(homedir(), '.local', 'state');
  return env['XDG_STATE_HOME'] ?? home;
}
