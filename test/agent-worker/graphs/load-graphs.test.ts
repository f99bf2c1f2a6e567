// Loading of what a configuration names as a graph, and the methods about graphs that do not run.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadGraphs } from '../../../src/agent-worker/graphs/load-graphs.ts';
import { createCall, loadTestGraphs, root, startRun } from '../../support/agent-runs.ts';

const input = { steps: ['in'] };
const call = createCall().context;

describe('the export that a configuration names', () => {
  it.each(['builder', 'promised', 'wrapped', 'asks'])('is a graph: %s', async (graph_id) => {
    const methods = await loadTestGraphs(graph_id);
    const { end } = await startRun(methods, { graph_id, input });
    expect(JSON.parse(end.values).steps[0]).toBe('in');
  });

  it('is a function, which gets the config and what the graph is for', async () => {
    const methods = await loadTestGraphs('made');
    const run = { graph_id: 'made', input, config: { configurable: { place: 'there' } }, context: { a: 1 } };
    const { end } = await startRun(methods, run);
    const runtime = { accessContext: 'threads.create_run', executionRuntime: { context: { a: 1 } } };
    expect(JSON.parse(end.values).steps).toEqual(['in', 'there', JSON.stringify(runtime)]);
  });

  it.each([
    [
      'absent',
      /test\/support\/agent-graphs\.ts:absent: there is no export `absent`\. The file exports .*builder/,
    ],
    ['notGraph', /`notGraph` is no graph: export a compiled graph/],
    ['failing', /the promise that is exported failed: Error: no key for the model/],
  ])('may be wrong: %s', async (name, message) => {
    const failure = { name: 'LoadError', key: `graphs.${name}`, message: expect.stringMatching(message) };
    await expect(loadTestGraphs(name)).rejects.toMatchObject(failure);
  });

  it('may be in a file that cannot be loaded', async () => {
    const file = fileURLToPath(new URL('./no-such-file.js', import.meta.url));
    const graphs = { agent: { file, name: 'graph', source: './src/agent.ts:graph' } };
    const failure = {
      key: 'graphs.agent',
      message: expect.stringContaining('./src/agent.ts:graph cannot be loaded'),
    };
    await expect(loadGraphs({ root, graphs })).rejects.toMatchObject(failure);
  });

  it('needs the library in the deployment', async () => {
    const failure = {
      name: 'LoadError',
      key: 'dependencies',
      message: expect.stringContaining('not installed'),
    };
    await expect(loadGraphs({ root: '/', graphs: {} })).rejects.toMatchObject(failure);
    expect((await loadGraphs({ root, graphs: {} })).library).toMatch(/^1\.\d+\.\d+$/);
  });

  it('is asked for by its id', async () => {
    const methods = await loadTestGraphs('builder');
    await expect(startRun(methods, { graph_id: 'other', input })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe('a drawing', () => {
  it('has the nodes of a graph, and with xray those of its subgraphs', async () => {
    const methods = await loadTestGraphs('nested');
    const draw = async (xray: boolean | number): Promise<readonly string[]> => {
      const text = await methods['graph.drawing']?.({ graph_id: 'nested', config: {}, xray }, call);
      return JSON.parse(text ?? '').nodes.map(({ id }: { id: string }) => id);
    };
    expect(await draw(false)).toEqual(['__start__', 'before', 'inner', '__end__']);
    expect(await draw(true)).toEqual(expect.arrayContaining(['inner:deep', 'inner:deeper']));
  });
});

describe('the schemas', () => {
  const read = async (graph_id: string): Promise<Record<string, unknown>> => {
    const methods = await loadTestGraphs(graph_id);
    return JSON.parse((await methods['graph.schemas']?.({ graph_id }, call)) ?? '');
  };

  it('are those of a state schema', async () => {
    const schemas = await read('described');
    expect(schemas).toMatchObject({
      input_schema: { type: 'object', properties: { name: { type: 'string' } } },
      output_schema: { properties: { name: { type: 'string' } } },
      state_schema: { properties: { name: { type: 'string' } } },
    });
  });

  it('are null where the graph has types alone', async () => {
    const none = { input_schema: null, output_schema: null, state_schema: null, config_schema: null };
    expect(await read('builder')).toEqual({ ...none, context_schema: null });
  });
});
