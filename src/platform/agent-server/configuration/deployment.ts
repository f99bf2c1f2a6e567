// What one process serves: the graphs of a configuration file, with what the file and the variables say about them. The files
// are bundled for the workers, which load them; this process never does.
import type { DeploymentToLoad, JsonObject } from '../../../agent-worker/protocol/messages.ts';

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
};

export type CorsSettings = {
  readonly origins: readonly string[];
  readonly originPattern: RegExp | undefined;
  /** Undefined: what the request asks for. */
  readonly methods: readonly string[] | undefined;
  readonly headers: readonly string[] | undefined;
  readonly exposed: readonly string[];
  readonly allowsCredentials: boolean;
  readonly maxAgeSeconds: number;
};

/** Lower-case names, in which `*` stands for any text. Undefined `includes`: those that every deployment passes on. */
export type HeaderPatterns = {
  readonly includes: readonly string[] | undefined;
  readonly excludes: readonly string[];
};
