// JSON Schemas of a graph: what it takes, gives and holds, as far as it was built with schemas. A graph whose state has TypeScript
// types alone has none at run time: null.
import type { Method } from '../method.ts';
import type { GraphSource } from './graph-export.ts';
import { writeJson } from './json-text.ts';
import type { CompiledGraph, Library } from './library.ts';

type Schemas = {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly state?: unknown;
  readonly config?: unknown;
};
type Builder = {
  readonly _schemaRuntimeDefinition?: unknown;
  readonly _inputRuntimeDefinition?: unknown;
  readonly _outputRuntimeDefinition?: unknown;
  readonly _configRuntimeSchema?: unknown;
};
type StateSchema = { getJsonSchema(): unknown; getInputJsonSchema(): unknown };
type Convert = (value: unknown) => unknown;

/** The input is the state, of which every field may be missing. */
const PARTIAL_STATE = Symbol.for('langgraph.state.partial');

export function createSchemasMethod(
  library: Library,
  findGraph: (graphId: string) => GraphSource,
): Method<'graph.schemas'> {
  return async ({ graph_id, config: given = { configurable: {} } }) => {
    const graph = await findGraph(graph_id)({ config: given, purpose: 'assistants.read' });
    const found = await readSchemas(graph, library);
    const { input = null, output = null, state = null, config = null } = found ?? {};
    const schemas = { input_schema: input, output_schema: output, state_schema: state };
    // The library knows one schema for both.
    return writeJson(
      { ...schemas, config_schema: config, context_schema: config },
      'The schemas of the graph',
    );
  };
}

async function readSchemas(graph: CompiledGraph, library: Library): Promise<Schemas | undefined> {
  const builder = graph.builder as Builder | undefined;
  if (builder === undefined) return undefined;
  return (
    readStateSchemas(builder) ??
    (await readRegistered(graph, library)) ??
    (await convertZodSchemas(builder, library))
  );
}

function readStateSchemas(builder: Builder): Schemas | undefined {
  const {
    _schemaRuntimeDefinition: state,
    _inputRuntimeDefinition: input,
    _outputRuntimeDefinition: output,
  } = builder;
  if (![state, input, output].some(isStateSchema)) return undefined;
  const inputSource = input === PARTIAL_STATE ? state : input;
  return {
    state: isStateSchema(state) ? tryTo(() => state.getJsonSchema()) : undefined,
    input: isStateSchema(inputSource) ? tryTo(() => inputSource.getInputJsonSchema()) : undefined,
    output: isStateSchema(output) ? tryTo(() => output.getJsonSchema()) : undefined,
  };
}

/** Of Zod schemas with what the library adds to them, such as reducers and extra keywords. */
async function readRegistered(graph: CompiledGraph, library: Library): Promise<Schemas | undefined> {
  const module = await library.importOptional('@langchain/langgraph/zod/schema');
  const read = (name: string): unknown => {
    const get = module?.[name] as Convert | undefined;
    return get === undefined ? undefined : tryTo(() => get(graph));
  };
  const schemas = {
    state: read('getUpdateTypeSchema'),
    input: read('getInputTypeSchema'),
    output: read('getOutputTypeSchema'),
    config: read('getConfigTypeSchema'),
  };
  return isEmpty(schemas) ? undefined : schemas;
}

async function convertZodSchemas(builder: Builder, library: Library): Promise<Schemas | undefined> {
  const conversion = await library.importOptional('@langchain/core/utils/json_schema');
  const types = await library.importOptional('@langchain/core/utils/types');
  const toJsonSchema = conversion?.['toJsonSchema'] as Convert | undefined;
  const checks = ['isZodSchemaV3', 'isZodSchemaV4'].map((name) => types?.[name] as Convert | undefined);
  if (toJsonSchema === undefined) return undefined;
  const convert = (schema: unknown): unknown => {
    const isZod = schema !== undefined && checks.some((check) => check?.(schema) === true);
    return isZod ? tryTo(() => toJsonSchema(schema)) : undefined;
  };
  const state = convert(builder._schemaRuntimeDefinition) as Record<string, unknown> | undefined;
  const schemas = {
    state,
    input: convert(builder._inputRuntimeDefinition) ?? (state && { ...state, required: undefined }),
    output: convert(builder._outputRuntimeDefinition),
    config: convert(builder._configRuntimeSchema),
  };
  return isEmpty(schemas) ? undefined : schemas;
}

function isStateSchema(value: unknown): value is StateSchema {
  if (typeof value !== 'object' || value === null) return false;
  const { getJsonSchema, getInputJsonSchema } = value as Partial<StateSchema>;
  return typeof getJsonSchema === 'function' && typeof getInputJsonSchema === 'function';
}

function isEmpty(schemas: Schemas): boolean {
  return Object.values(schemas).every((schema) => schema === undefined);
}

/** Not every type has a JSON Schema: such a graph runs all the same. */
function tryTo(read: () => unknown): unknown {
  try {
    return read() ?? undefined;
  } catch {
    return undefined;
  }
}
