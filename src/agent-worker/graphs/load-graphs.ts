// The part of a worker that knows LangGraph: it loads the graphs of the deployment and brings the methods about them.
import { dirname, join } from 'node:path';
import { createSaverClass } from '../checkpoints/saver.ts';
import { type Method, type Methods, Refusal } from '../method.ts';
import type { DeploymentToLoad } from '../protocol/messages.ts';
import { createResolve } from './deployment-packages.ts';
import { type GraphSource, loadGraphExport } from './graph-export.ts';
import { createSchemasMethod } from './graph-schemas.ts';
import { writeJson } from './json-text.ts';
import { type Library, loadLibrary } from './library.ts';
import { runGraph } from './run-graph.ts';
import { createStateMethods } from './state-methods.ts';

export type LoadedGraphs = {
  readonly methods: Methods;
  /** Version of `@langchain/langgraph`. */
  readonly library: string;
};

/** A LoadError names the key of the configuration to correct. */
export async function loadGraphs(deployment: DeploymentToLoad): Promise<LoadedGraphs> {
  const library = await loadLibrary(createResolve(folderOfSources(deployment)));
  const sources = new Map<string, GraphSource>();
  for (const [id, found] of Object.entries(deployment.graphs))
    sources.set(id, await loadGraphExport(id, found));
  return { methods: createMethods(library, sources), library: library.version };
}

/** The graphs of one deployment share a library: the one that the first of them finds. */
function folderOfSources({ root, graphs }: DeploymentToLoad): string {
  const [first] = Object.values(graphs);
  const file = first?.source.replace(/:[^:/]*$/, '');
  return file === undefined ? root : dirname(join(root, file));
}

function createMethods(library: Library, sources: ReadonlyMap<string, GraphSource>): Methods {
  const createSaver = createSaverClass(library);
  const findGraph = (id: string): GraphSource => {
    const source = sources.get(id);
    if (source === undefined) throw new Refusal('not_found', `The deployment has no graph \`${id}\`.`);
    return source;
  };
  return {
    'run.start': async (params, context) => {
      const source = findGraph(params.graph_id);
      return await runGraph(params, context, { library, createSaver, source });
    },
    ...createStateMethods({ createSaver, findGraph }),
    'graph.schemas': createSchemasMethod(library, findGraph),
    'graph.drawing': createDrawingMethod(findGraph),
  };
}

function createDrawingMethod(findGraph: (id: string) => GraphSource): Method<'graph.drawing'> {
  return async ({ graph_id, config, xray }) => {
    const graph = await findGraph(graph_id)({ config, purpose: 'assistants.read' });
    const drawing = await graph.getGraphAsync({ ...config, xray });
    return writeJson(drawing.toJSON(), 'The drawing of the graph');
  };
}
