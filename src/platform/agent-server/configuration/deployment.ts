// What one process serves: the graphs of a configuration file, with what the file and the variables say about them. The files
// are bundled for the workers, which load them; this process never does.
import { dirname } from 'node:path';
import type { DeploymentToLoad, JsonObject } from '../../../agent-worker/protocol/messages.ts';
import type { Parsed } from '../../../base/schema.ts';
import { bundleDeployment } from './bundle.ts';
import { type CorsSettings, toCorsSettings } from './cors-document.ts';
import type { GraphFile } from './graph-file.ts';
import { withTracing } from './tracing-variables.ts';
import { readDeploymentEnvironment, readWorkerEnvironment } from './worker-environment.ts';

export type Deployment = {
  /** The directory of the configuration file: packages are resolved from there and from each source file. */
  readonly root: string;
  readonly graphs: ReadonlyMap<string, { readonly description: string | null }>;
  /** The bundled files, for workers. */
  readonly load: DeploymentToLoad;
  /** Variables of the workers: those of the file, and none of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Undefined without a handler in the configuration. */
  readonly auth: { readonly disableStudio: boolean } | undefined;
  readonly http: HttpSettings;
  /** `LANGGRAPH_CONFIG`: the config that every run of a graph begins with, by the id of the graph. */
  readonly defaultConfigs: ReadonlyMap<string, JsonObject>;
};

/** A part of the API that a configuration can leave out. */
export type Disabled = 'assistants' | 'threads' | 'runs' | 'meta';

export type HttpSettings = {
  readonly hasApp: boolean;
  /** The authentication handler is asked for the routes of the application too. */
  readonly enableCustomRouteAuth: boolean;
  readonly disabled: ReadonlySet<Disabled>;
  readonly cors: CorsSettings;
  /** Which fields of a request reach `configurable` of its runs. */
  readonly configurableHeaders: HeaderPatterns;
  /** `/prefix`, or empty. */
  readonly mountPrefix: string;
  readonly errorFormat: 'json' | 'text';
};

/** Lower-case names, in which `*` stands for any text. Undefined `includes`: those that every deployment passes on. */
export type HeaderPatterns = {
  readonly includes: readonly string[] | undefined;
  readonly excludes: readonly string[];
};

/** What the variables of the server add to the file. */
export type DeploymentVariables = {
  /** Without authentication on a listener of loopback. */
  readonly isOpenOnLoopback?: boolean;
  /** CORS_ALLOW_ORIGINS */
  readonly corsOrigins: readonly string[] | undefined;
  /** MOUNT_PREFIX */
  readonly mountPrefix: string | undefined;
  /** SALLYPORT_AGENT_ERROR_FORMAT */
  readonly errorFormat?: 'json' | 'text' | undefined;
  /** LANGGRAPH_CONFIG */
  readonly defaultConfigs: ReadonlyMap<string, JsonObject>;
};

/** `bundles`: an empty directory. Every problem is an issue that names the key, and for a source its line. */
export async function loadDeployment(
  file: GraphFile,
  path: string,
  given: {
    readonly bundles: string;
    readonly env: NodeJS.ProcessEnv;
    /** Of an instance of a deployment: the variables of its workers, in place of `env`. */
    readonly workerVariables?: Readonly<Record<string, string>> | undefined;
    /** Where its workers send their runs. */
    readonly tracesUrl?: string | undefined;
    readonly variables: DeploymentVariables;
  },
): Promise<Parsed<{ readonly deployment: Deployment; readonly warnings: readonly string[] }>> {
  const root = dirname(path);
  const unknown = [...given.variables.defaultConfigs.keys()].filter((id) => !file.graphs.has(id));
  const issues = unknown.map((id) => ({
    loc: ['LANGGRAPH_CONFIG', id],
    msg: 'The configuration has no graph of this name',
    type: 'value_error' as const,
  }));
  const env = await (given.workerVariables === undefined
    ? readWorkerEnvironment(file.env, root, given.env)
    : readDeploymentEnvironment(file.env, root, given.workerVariables));
  const bundled = await bundleDeployment(file, { root, output: given.bundles });
  if (!env.ok || !bundled.ok || issues.length > 0) {
    const others = [env, bundled].flatMap((one) => (one.ok ? [] : one.issues));
    return { ok: false, issues: [...issues, ...others] };
  }
  const graphs = new Map(Array.from(file.graphs, ([id, { description }]) => [id, { description }]));
  const deployment: Deployment = {
    ...{ root, graphs, load: bundled.value.load, env: withTracing(env.value, given.tracesUrl) },
    auth: file.auth && { disableStudio: file.auth.disableStudio },
    http: toHttpSettings(file, given.variables),
    defaultConfigs: given.variables.defaultConfigs,
  };
  return { ok: true, value: { deployment, warnings: [...file.warnings, ...bundled.value.warnings] } };
}

function toHttpSettings(
  { http, app }: GraphFile,
  { corsOrigins, mountPrefix, errorFormat, isOpenOnLoopback }: DeploymentVariables,
): HttpSettings {
  const parts = ['assistants', 'threads', 'runs', 'meta'] as const;
  return {
    hasApp: app !== undefined,
    enableCustomRouteAuth: http.enable_custom_route_auth,
    disabled: new Set(parts.filter((part) => http[`disable_${part}`])),
    cors: toCorsSettings(http.cors, corsOrigins, isOpenOnLoopback),
    configurableHeaders: {
      includes: http.configurable_headers?.includes ?? undefined,
      excludes: http.configurable_headers?.excludes ?? [],
    },
    mountPrefix: mountPrefix ?? http.mount_prefix ?? '',
    errorFormat: errorFormat ?? http.error_format,
  };
}
