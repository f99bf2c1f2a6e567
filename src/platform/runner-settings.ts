// The settings of the runner, which are a part of those of the platform: where clients reach deployments, how deployments are isolated,
// and what all of them together may take of the machine.
import { availableParallelism, totalmem } from 'node:os';
import { resolve } from 'node:path';
import type { ListenAddress } from '../base/listen-address.ts';
import { z } from '../base/schema.ts';
import { asBoolean, asList, asText, type Variable } from '../base/variable-overlay.ts';
import { domain, file, gatewayUrl, limit, listenAddress } from './setting-schemas.ts';

const GIB = 1024 ** 3;
/** With less, no package manager runs. */
const size = z.int().min(64 * 1024 ** 2);

export const runnerSchema = z
  .strictObject({
    start: z.boolean().default(true),
    isolation: z.enum(['auto', 'bubblewrap', 'user', 'none']).default('auto'),
    sidecar_config: file.optional(),
    metrics_listen: listenAddress.optional(),
    drain_ms: z.int().min(0).max(600_000).default(180_000),
    platform_url: gatewayUrl.optional(),
    gateway: z
      .strictObject({
        listen: listenAddress.optional(),
        public_url: gatewayUrl.optional(),
        domain: domain.optional(),
        connections: limit.default(4_096),
        connections_per_address: limit.default(1_024),
        organization_requests: limit.default(1_024),
      })
      .prefault({}),
    builds: z
      .strictObject({
        concurrency: limit.max(1_000).optional(),
        timeout_ms: z.int().min(1_000).max(86_400_000).default(900_000),
        memory_bytes: size.default(2 * GIB),
        disk_bytes: size.default(4 * GIB),
        cache_bytes: z
          .int()
          .min(0)
          .default(8 * GIB),
        kept_bytes: z
          .int()
          .min(0)
          .default(32 * GIB),
        allow_hosts: z.array(z.string().min(1)).max(1_000).default([]),
      })
      .prefault({}),
    limits: z
      .strictObject({
        instances: limit.max(10_000).default(64),
        memory_bytes: z.int().min(1).optional(),
        cpu_millicores: limit.optional(),
        database_connections: limit.max(10_000).default(200),
        agent_connections: z.int().min(5).max(200).default(10),
        database_bytes: size.default(10 * GIB),
      })
      .prefault({}),
  })
  .prefault({});

const asLowerCaseBoolean = (text: string): unknown => asBoolean(text.toLowerCase());

export const runnerVariables: readonly (readonly [name: string, key: string, read: Variable['read']])[] = [
  ['SALLYPORT_PLATFORM_RUNNER_START', 'runner.start', asLowerCaseBoolean],
  ['SALLYPORT_PLATFORM_RUNNER_ISOLATION', 'runner.isolation', asText],
  ['SALLYPORT_PLATFORM_RUNNER_SIDECAR_CONFIG', 'runner.sidecar_config', asText],
  ['SALLYPORT_PLATFORM_RUNNER_METRICS_LISTEN', 'runner.metrics_listen', asText],
  ['SALLYPORT_PLATFORM_RUNNER_DRAIN_MS', 'runner.drain_ms', Number],
  ['SALLYPORT_PLATFORM_RUNNER_PLATFORM_URL', 'runner.platform_url', asText],
  ['SALLYPORT_PLATFORM_RUNNER_GATEWAY_LISTEN', 'runner.gateway.listen', asText],
  ['SALLYPORT_PLATFORM_RUNNER_GATEWAY_PUBLIC_URL', 'runner.gateway.public_url', asText],
  ['SALLYPORT_PLATFORM_RUNNER_GATEWAY_DOMAIN', 'runner.gateway.domain', asText],
  ['SALLYPORT_PLATFORM_RUNNER_GATEWAY_CONNECTIONS', 'runner.gateway.connections', Number],
  [
    'SALLYPORT_PLATFORM_RUNNER_GATEWAY_CONNECTIONS_PER_ADDRESS',
    'runner.gateway.connections_per_address',
    Number,
  ],
  ['SALLYPORT_PLATFORM_RUNNER_GATEWAY_ORGANIZATION_REQUESTS', 'runner.gateway.organization_requests', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_CONCURRENCY', 'runner.builds.concurrency', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_TIMEOUT_MS', 'runner.builds.timeout_ms', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_MEMORY_BYTES', 'runner.builds.memory_bytes', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_DISK_BYTES', 'runner.builds.disk_bytes', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_CACHE_BYTES', 'runner.builds.cache_bytes', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_KEPT_BYTES', 'runner.builds.kept_bytes', Number],
  ['SALLYPORT_PLATFORM_RUNNER_BUILDS_ALLOW_HOSTS', 'runner.builds.allow_hosts', asList],
  ['SALLYPORT_PLATFORM_RUNNER_LIMITS_INSTANCES', 'runner.limits.instances', Number],
  ['SALLYPORT_PLATFORM_RUNNER_LIMITS_MEMORY_BYTES', 'runner.limits.memory_bytes', Number],
  ['SALLYPORT_PLATFORM_RUNNER_LIMITS_CPU_MILLICORES', 'runner.limits.cpu_millicores', Number],
  ['SALLYPORT_PLATFORM_RUNNER_LIMITS_DATABASE_CONNECTIONS', 'runner.limits.database_connections', Number],
  ['SALLYPORT_PLATFORM_RUNNER_LIMITS_AGENT_CONNECTIONS', 'runner.limits.agent_connections', Number],
  ['SALLYPORT_PLATFORM_RUNNER_LIMITS_DATABASE_BYTES', 'runner.limits.database_bytes', Number],
];

export type RunnerSettings = ReturnType<typeof toRunnerSettings>;

/** Most agent servers wait most of the time, and use a part of the memory that they may use. */
const CPU_FACTOR = 16;
const MEMORY_FACTOR = 4;

export function toRunnerSettings(given: z.infer<typeof runnerSchema>, api: ListenAddress) {
  const { gateway, builds, limits } = given;
  return {
    /** The platform starts it, as soon as there is a deployment. */
    isStarted: given.start,
    isolation: given.isolation,
    sidecarConfigFile: given.sidecar_config && resolve(given.sidecar_config),
    metricsListen: given.metrics_listen,
    /** For what has begun in an agent server that is replaced. */
    drainMs: given.drain_ms,
    /** Where the runner reaches the API; undefined: where the platform that started it listens, or at `listen`. */
    platformUrl: given.platform_url?.replace(/\/$/, ''),
    builds: {
      /** That run at once. */
      concurrency: builds.concurrency ?? availableParallelism(),
      /** Of one build. */
      timeoutMs: builds.timeout_ms,
      memoryBytes: builds.memory_bytes,
      diskBytes: builds.disk_bytes,
      /** Of installed packages that are kept. */
      cacheBytes: builds.cache_bytes,
      /** Of builds of one workspace. */
      keptBytes: builds.kept_bytes,
      /** What builds reach besides the registries. */
      allowHosts: builds.allow_hosts,
    },
    gateway: {
      listen: gateway.listen ?? besideApi(api),
      publicUrl: gateway.public_url?.replace(/\/$/, ''),
      domain: gateway.domain,
      connections: gateway.connections,
      connectionsPerAddress: gateway.connections_per_address,
      organizationRequests: gateway.organization_requests,
    },
    /** Of this machine. */
    limits: {
      instances: limits.instances,
      memoryBytes: limits.memory_bytes ?? MEMORY_FACTOR * totalmem(),
      cpuMillicores: limits.cpu_millicores ?? CPU_FACTOR * 1000 * availableParallelism(),
    },
    /** Of all deployments of this machine to their databases. */
    databaseConnections: limits.database_connections,
    /** Of one agent server. */
    agentConnections: limits.agent_connections,
    /** Of the database of one deployment. */
    databaseBytes: limits.database_bytes,
  };
}

/** Of the runner itself. */
export const RUNNER_CONNECTIONS = 10;

/** What an embedded server has for the runner and the deployments. */
export function serverConnectionsOf({ start, limits }: z.infer<typeof runnerSchema>): number {
  return start ? RUNNER_CONNECTIONS + limits.database_connections : 0;
}

/** On loopback, ten ports after that of the API: two platforms of a machine have two of each. */
function besideApi({ port }: ListenAddress): ListenAddress {
  return { host: '127.0.0.1', port: port === 0 ? 0 : port + (port > 65_525 ? -10 : 10) };
}
