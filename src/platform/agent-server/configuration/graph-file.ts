// The graph configuration file (langgraph.json): which graphs, which handler, which application, and how they are served. What
// this version does not have stops the start by the name of its key; keys that build container images have no effect here.
import { type Issue, type Parsed, parseWith, withoutPrototype, z } from '../../../base/schema.ts';
import { corsDocument } from './cors-document.ts';
import { parseSource, type SourceExport } from './source-export.ts';

export type GraphFile = {
  readonly graphs: ReadonlyMap<
    string,
    { readonly source: SourceExport; readonly description: string | null }
  >;
  readonly env: EnvironmentDocument;
  readonly auth: { readonly source: SourceExport; readonly disableStudio: boolean } | undefined;
  readonly http: z.output<typeof http>;
  readonly app: SourceExport | undefined;
  /** What has no effect here, as sentences. */
  readonly warnings: readonly string[];
};

/** A map, names of variables of the server, or the path of a file. */
export type EnvironmentDocument = string | readonly string[] | Readonly<Record<string, string>>;

/** Every problem of the document at once. */
export function parseGraphFile(document: unknown, nodeMajor: number): Parsed<GraphFile> {
  const refused = laterKeys(document);
  if (refused.length > 0) return { ok: false, issues: refused };
  const parsed = parseWith(schema, document);
  if (!parsed.ok) return parsed;
  const { graphs, env, auth, http: settings, node_version: version } = parsed.value;
  if (version !== undefined && version > nodeMajor)
    return failed(['node_version'], `asks for Node ${version}, and this server runs Node ${nodeMajor}`);
  const warnings = Object.entries(WITHOUT_EFFECT).filter(([key]) => valueAt(document, key) !== undefined);
  return {
    ok: true,
    value: {
      graphs: new Map(Object.entries(graphs)),
      env,
      auth: auth && { source: auth.path, disableStudio: auth.disable_studio_auth },
      http: settings,
      app: settings.app,
      warnings: warnings.map(([key, reason]) => `${key} has no effect: ${reason}`),
    },
  };
}

const source = z.string().transform((text, context) => {
  const parsed = parseSource(text);
  if (typeof parsed !== 'string') return parsed;
  context.addIssue({ code: 'custom', message: parsed });
  return z.NEVER;
});

const graph = z.union([z.string(), z.strictObject({ path: z.string(), description: z.string().nullish() })], {
  error: 'Input must be file:export, or an object with path and description',
});

const graphs = withoutPrototype(
  z.record(
    z.string().min(1).max(255),
    graph.transform((given, context) => {
      const [text, description] =
        typeof given === 'string' ? [given, null] : [given.path, given.description ?? null];
      const parsed = parseSource(text);
      if (typeof parsed !== 'string') return { source: parsed, description };
      context.addIssue({
        code: 'custom',
        message: parsed,
        ...(typeof given === 'string' ? {} : { path: ['path'] }),
      });
      return z.NEVER;
    }),
  ),
).refine((all) => Object.keys(all).length > 0, 'At least one graph is required');

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const variable = z.string().regex(NAME, 'must be the name of a variable');
const variables = withoutPrototype(
  z.record(
    variable,
    z.union([z.string(), z.number(), z.boolean()]).transform((value) => String(value)),
  ),
);
const env = z.union([z.string().min(1), z.array(variable), variables], {
  error: 'Input must be an object of variables, a list of names, or the path of a file',
});

/** `/prefix`, or empty. */
export const mountPrefix = z
  .string()
  .transform((text) => text.replace(/\/$/, ''))
  .refine(
    (text) => /^(?:\/[\w.~-]+)*$/.test(text) && !/\/\.{1,2}(?:\/|$)/.test(text),
    'must be a path such as /agents',
  );

const patterns = z.array(z.string().min(1).toLowerCase()).nullish();
const flag = z.boolean().default(false);

const http = z.strictObject({
  app: source.optional(),
  disable_assistants: flag,
  disable_threads: flag,
  disable_runs: flag,
  disable_meta: flag,
  disable_store: flag,
  disable_mcp: flag,
  disable_a2a: flag,
  disable_ui: flag,
  disable_webhooks: flag,
  cors: corsDocument.optional(),
  configurable_headers: z.strictObject({ includes: patterns, excludes: patterns }).nullish(),
  logging_headers: z.unknown().optional(),
  middleware_order: z.unknown().optional(),
  enable_custom_route_auth: flag,
  mount_prefix: mountPrefix.optional(),
  error_format: z.enum(['json', 'text']).default('json'),
});

const version = z
  .union([z.string(), z.number()])
  .transform(Number)
  .pipe(z.int('Input must be a major version of Node, for example 24').min(20));

const schema = z.strictObject({
  $schema: z.string().optional(),
  graphs,
  dependencies: z.array(z.string()).default([]),
  env: env.prefault({}),
  node_version: version.optional(),
  auth: z
    .strictObject({
      path: source,
      disable_studio_auth: flag,
      openapi: z.unknown().optional(),
      cache: z.unknown().optional(),
    })
    .optional(),
  http: http.prefault({}),
  // For images of containers.
  ...Object.fromEntries(
    [
      'python_version',
      'api_version',
      'base_image',
      'image_distro',
      'dockerfile_lines',
      'pip_config_file',
      'pip_installer',
      'source',
    ].map((key) => [key, z.unknown().optional()]),
  ),
});

/** What a later version has: to serve without it would not be what the author of the file expects. */
const LATER: Readonly<Record<string, string>> = {
  store: 'the store',
  checkpointer: 'settings of the checkpointer',
  webhooks: 'webhooks',
  encryption: 'custom encryption',
  ui: 'user interface components',
  ui_config: 'user interface components',
};

const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  'auth.cache': 'the authentication handler is asked for each request',
  'auth.openapi': 'the description of the API is that of this server',
  'http.logging_headers': 'no field of a request is logged',
  'http.middleware_order': 'the middleware of the application runs for its own routes alone',
};

function laterKeys(document: unknown): readonly Issue[] {
  return Object.entries(LATER)
    .filter(([key]) => (valueAt(document, key) ?? null) !== null)
    .map(([key, what]) => issue([key], `This version does not support ${what}: remove the key`));
}

function valueAt(document: unknown, path: string): unknown {
  let value = document;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

function failed(loc: Issue['loc'], msg: string): { readonly ok: false; readonly issues: readonly Issue[] } {
  return { ok: false, issues: [issue(loc, msg)] };
}

function issue(loc: Issue['loc'], msg: string): Issue {
  return { loc, msg, type: 'value_error' };
}
