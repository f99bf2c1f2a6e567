// What a configuration file names as a graph: a compiled graph, a builder, a promise of one, a wrapper around one, or a function
// of the config that makes one.
import { pathToFileURL } from 'node:url';
import { LoadError } from '../method.ts';
import type { ModuleExport } from '../protocol/messages.ts';
import type { CompiledGraph } from './library.ts';

/** Why a graph is asked for: a function that makes graphs gets it. */
export type GraphPurpose = 'threads.create_run' | 'threads.read' | 'threads.update' | 'assistants.read';

export type GraphRequest = {
  readonly config: Readonly<Record<string, unknown>>;
  readonly purpose: GraphPurpose;
  /** Of the run. */
  readonly context?: unknown;
};

export type GraphSource = (request: GraphRequest) => Promise<CompiledGraph>;

type Runtime = {
  readonly accessContext: GraphPurpose;
  readonly executionRuntime: { readonly context: unknown } | null;
};
type GraphFunction = (config: object, runtime: Runtime) => unknown;

/** Imports the bundled file. A LoadError names the key of the configuration and the export. */
export async function loadGraphExport(
  id: string,
  { file, name, source }: ModuleExport,
): Promise<GraphSource> {
  const key = `graphs.${id}`;
  const module = await importModule(key, source, file);
  const exported = await awaitExport(key, source, module[name]);
  if (exported === undefined || exported === null) {
    const names = Object.keys(module).join(', ') || 'nothing';
    throw new LoadError(key, `${source}: there is no export \`${name}\`. The file exports ${names}.`);
  }
  if (typeof exported === 'function' && !isClass(exported))
    return createFunctionSource(source, exported as GraphFunction);
  const graph = compileGraph(exported);
  if (graph === undefined) throw new LoadError(key, `${source}: \`${name}\` ${NO_GRAPH}`);
  return () => Promise.resolve(graph);
}

const NO_GRAPH =
  'is no graph: export a compiled graph, a builder with `compile`, a promise of one, or a function that returns one.';

async function importModule(key: string, source: string, file: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    throw new LoadError(key, `${source} cannot be loaded: ${describe(error)}`);
  }
}

async function awaitExport(key: string, source: string, exported: unknown): Promise<unknown> {
  try {
    return await exported;
  } catch (error) {
    throw new LoadError(key, `${source}: the promise that is exported failed: ${describe(error)}`);
  }
}

function createFunctionSource(source: string, create: GraphFunction): GraphSource {
  return async ({ config, purpose, context }) => {
    const executionRuntime = purpose === 'threads.create_run' ? { context } : null;
    const graph = compileGraph(await create(config, { accessContext: purpose, executionRuntime }));
    if (graph === undefined) throw new TypeError(`${source}: what the function returned ${NO_GRAPH}`);
    return graph;
  };
}

/** Undefined for what is no graph. */
function compileGraph(found: unknown): CompiledGraph | undefined {
  if (!isObject(found)) return undefined;
  const compiled: unknown = typeof found['compile'] === 'function' ? (found as Builder).compile() : found;
  if (!isObject(compiled)) return undefined;
  // A wrapper of agents looks like a compiled graph itself, but only the inner one has all methods.
  const graph =
    isObject(compiled['graph']) && isObject(compiled['graph']['builder']) ? compiled['graph'] : compiled;
  return isCompiled(graph) ? graph : undefined;
}

type Builder = { compile(): unknown };

function isCompiled(value: Record<string, unknown>): value is Record<string, unknown> & CompiledGraph {
  return ['stream', 'streamEvents', 'getState', 'withConfig'].every(
    (name) => typeof value[name] === 'function',
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isClass(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
