// The composition root of an agent server: a configuration file and variables in, one running process out. It runs on the ground
// of the platform (database, vault, pipeline of requests) without the modules of the platform.
import { join, resolve } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { Issue, Parsed } from '../../base/schema.ts';
import { createAgentServer } from '../agent-server/agent-server.ts';
import { INPUT_VARIABLE, MAX_INPUT_BYTES } from '../agent-server/contract.ts';
import { openBundleDirectory } from '../agent-server/configuration/bundle-directory.ts';
import { requireDataDirectory } from '../agent-server/configuration/data-directory.ts';
import { loadDeployment } from '../agent-server/configuration/deployment.ts';
import {
  type DeploymentInput,
  hostVariables,
  networkVariables,
  parseDeploymentInput,
  settingsIn,
} from '../agent-server/configuration/deployment-input.ts';
import { type GraphFile, parseGraphFile } from '../agent-server/configuration/graph-file.ts';
import {
  agentVariables,
  type AgentSettings,
  type AgentVariables,
  parseAgentVariables,
  toAgentSettings,
} from '../agent-server/configuration/settings.ts';
import { prepareGround } from '../agent-server/system/ground.ts';
import { WorkerStartError } from '../agent-server/workers/worker.ts';
import { parsePlatformConfig, type PlatformConfig, stateHome } from '../config.ts';
import { openPlatform, type Platform, type PlatformParts } from '../platform.ts';
import { openStorage, type Storage } from '../storage.ts';
import type { MasterKeySource } from '../vault/master-keys.ts';

export type AgentConfig = {
  /** The configuration file. */
  readonly path: string;
  readonly file: GraphFile;
  readonly variables: AgentVariables;
  readonly settings: AgentSettings;
  /** Database, vault and limits. */
  readonly ground: PlatformConfig;
  /** Of an instance of a deployment. */
  readonly input: DeploymentInput | undefined;
};

/** For the check of misspelt ones. */
export const knownVariables: readonly string[] = [...agentVariables, 'SALLYPORT_PLATFORM_'];

/** Where an instance of a deployment finds its input. */
export const inputDescriptor = { variable: INPUT_VARIABLE, maxBytes: MAX_INPUT_BYTES };

/** Variables of the platform that mean the same here. */
const SHARED = /^(?:DATABASE_URL$|SALLYPORT_PLATFORM_(?:DATABASE_|VAULT_|LIMITS_|TRUSTED_PROXIES$))/;

/** More than the platform allows: bodies are inputs of graphs, and there is one organization. */
const LIMITS = {
  ...{ body_bytes: 20 * 1024 * 1024, streams: 4096, organization_streams: 4096 },
  ...{ preparing: 2048, organization_preparing: 2048, organization_contended_reads: 4 },
  // Until a key is known: enough for hundreds of streams behind one address, and never all.
  ...{ connections: 8192, connections_per_address: 1024 },
};

export type GivenConfig = {
  /** The parsed configuration file at `path`. */
  readonly document: unknown;
  readonly path: string;
  /** What an instance of a deployment has read, as text. */
  readonly input?: string | undefined;
};

/** An issue of a variable names it. */
export function parseAgentConfig(
  { document, path, input: text }: GivenConfig,
  env: NodeJS.ProcessEnv,
): Parsed<AgentConfig> {
  const read = text === undefined ? undefined : parseDeploymentInput(text);
  if (read?.ok === false) return read;
  const input = read?.value;
  return parseWithInput({ document, path }, input, {
    ...env,
    ...(input && { ...settingsIn(input.variables), DATABASE_URL: input.databaseUrl }),
  });
}

function parseWithInput(
  { document, path }: GivenConfig,
  input: DeploymentInput | undefined,
  env: NodeJS.ProcessEnv,
): Parsed<AgentConfig> {
  const file = parseGraphFile(document, Number(process.versions.node.split('.')[0]));
  const variables = parseAgentVariables(env);
  if (!file.ok || !variables.ok) return { ok: false, issues: issuesOf(file, variables) };
  const settings = toAgentSettings(variables.value, file.value.auth !== undefined, input?.deployment);
  const ground = parsePlatformConfig(
    {
      data_dir: variables.value.data_dir ?? join(stateHome(env), 'sallyport', 'agent-server'),
      limits: LIMITS,
      runner: { start: false },
      log: { level: variables.value.log_level },
    },
    Object.fromEntries(Object.entries(env).filter(([name]) => SHARED.test(name))),
  );
  if (!settings.ok || !ground.ok) return { ok: false, issues: issuesOf(settings, ground) };
  const parts = { file: file.value, variables: variables.value, settings: settings.value };
  // A deployment has its database for itself, on a server that it shares with the platform.
  const database = { ...ground.value.database, hasRuntimeRole: input === undefined };
  return { ok: true, value: { path: resolve(path), ...parts, ground: { ...ground.value, database }, input } };
}

function issuesOf(...all: readonly Parsed<unknown>[]): readonly Issue[] {
  return all.flatMap((one) => (one.ok ? [] : one.issues));
}

export type AgentServerParts = Pick<PlatformParts, 'log' | 'writeRequest' | 'version' | 'program'> & {
  readonly env: NodeJS.ProcessEnv;
};

/** Throws an Error that says what the operator must change; issues are of the configuration file. */
export async function openAgentServer(
  { path, file, variables, settings, ground, input }: AgentConfig,
  parts: AgentServerParts,
): Promise<Parsed<Platform>> {
  const { log, env, ...rest } = parts;
  await using opened = new AsyncDisposableStack();
  await requireDataDirectory(ground.dataDirectory, { hasDatabase: ground.database.url === undefined });
  const bundles = opened.adopt(await openBundleDirectory(ground.dataDirectory), (one) => one.close());
  const loaded = await loadDeployment(file, path, {
    ...{ bundles: bundles.path, env },
    workerVariables: input && {
      ...networkVariables(env),
      ...input.variables,
      ...hostVariables(input.deployment),
    },
    tracesUrl: input?.deployment.tracesUrl,
    variables: {
      isOpenOnLoopback: settings.access === 'none' && settings.isLoopback,
      corsOrigins: variables.cors_origins,
      mountPrefix: variables.mount_prefix,
      errorFormat: variables.error_format,
      defaultConfigs: new Map(Object.entries(variables.default_configs)),
    },
  });
  if (!loaded.ok) return loaded;
  for (const warning of loaded.value.warnings) log.warn(warning);
  const { deployment } = loaded.value;
  const { module, ...service } = createAgentServer({ deployment, settings });
  const masterKeys: MasterKeySource = { ...ground.vault, masterKey: input?.masterKey };
  const storage = openGround(ground, masterKeys, log);
  const opening = openPlatform(ground, {
    ...{ ...rest, log, storage, masterKeys, modules: [module] },
    service: {
      ...{ ...service, isBehindProxy: input !== undefined },
      ...{ listen: variables.listen, listenSetting: '--listen or SALLYPORT_AGENT_LISTEN' },
    },
  });
  const platform = await opening.catch(toIssue);
  if ('loc' in platform) return { ok: false, issues: [platform] };
  opened.move();
  return {
    ok: true,
    value: {
      ...platform,
      async close() {
        await platform.close();
        await bundles.close();
      },
    },
  };
}

/** What a worker says about an export is about the configuration file; throws any other error again. */
function toIssue(error: unknown): Issue {
  if (!(error instanceof WorkerStartError) || error.failure === undefined) throw error;
  return { loc: [error.failure.key], msg: error.failure.message, type: 'value_error' };
}

async function openGround(ground: PlatformConfig, masterKeys: MasterKeySource, log: Log): Promise<Storage> {
  const storage = await openStorage(ground, log);
  try {
    await prepareGround(storage.pools.writes, masterKeys);
    return storage;
  } catch (error) {
    await storage.close();
    throw error;
  }
}
