// The events of each mode, by name and shape, as the public server has them.
import { describe, expect, it } from 'vitest';
import { loadTestGraphs, startRun, type TestEvent } from '../../support/agent-runs.ts';

const methods = await loadTestGraphs('builder', 'chat', 'nested', 'fans');
const input = { steps: ['in'] };
const hello = { messages: [{ role: 'user', content: 'hi', id: 'u' }] };

async function stream(graph_id: string, graphInput: unknown, modes: readonly string[], subgraphs = false) {
  const run = { graph_id, input: graphInput, stream_mode: modes, stream_subgraphs: subgraphs };
  return (await startRun(methods, run)).events;
}

const namesOf = (events: readonly TestEvent[]): string => events.map(({ event }) => event).join(' ');

describe('the mode', () => {
  it('updates has what each node wrote', async () => {
    expect(await stream('builder', input, ['updates'])).toEqual([
      { event: 'updates', data: { first: { steps: ['first'] } } },
      { event: 'updates', data: { second: { steps: ['second'] } } },
    ]);
  });

  it('custom has what nodes send', async () => {
    expect(await stream('builder', input, ['custom'])).toEqual([{ event: 'custom', data: { at: 'first' } }]);
  });

  it('messages-tuple has pieces with their metadata, of models that are not silent', async () => {
    const events = await stream('chat', hello, ['messages-tuple']);
    expect(namesOf(events)).toBe(Array.from({ length: 6 }, () => 'messages').join(' '));
    expect(events[0]?.data).toMatchObject([
      { id: 'said', type: 'ai', content: 'one' },
      { langgraph_node: 'say', run_attempt: 1 },
    ]);
    const nodes = events.map(({ data }) => (data as [unknown, { langgraph_node: string }])[1].langgraph_node);
    expect(new Set(nodes)).toEqual(new Set(['say', 'hide']));
  });

  it('messages has messages as they grow, and once as a whole', async () => {
    const events = await stream('chat', hello, ['messages']);
    expect(namesOf(events)).toBe(
      'messages/complete messages/metadata messages/partial messages/partial messages/partial messages/complete',
    );
    const contents = events
      .flatMap(({ data }) => (Array.isArray(data) ? data : []))
      .map(({ content }) => content);
    expect(contents).toEqual(['hi', 'one', 'one two', 'one two three', 'one two three']);
    expect(events[1]?.data).toMatchObject({ said: { metadata: { langgraph_node: 'say' } } });
  });

  it('events has what happens inside of nodes, but nothing of hidden ones', async () => {
    const events = await stream('chat', hello, ['events']);
    expect(new Set(namesOf(events).split(' '))).toEqual(new Set(['events']));
    const inner = events.map(({ data }) => (data as { event: string }).event);
    expect(inner.filter((name) => name === 'on_chat_model_stream')).toHaveLength(6);
    expect(inner[0]).toBe('on_chain_start');
    expect(inner.at(-1)).toBe('on_chain_end');
  });

  it('tasks, checkpoints and debug tell of each step', async () => {
    const tasks = await stream('builder', input, ['tasks']);
    expect(tasks[0]?.data).toMatchObject({ name: 'first', input: { steps: ['in'] }, interrupts: [] });
    expect(tasks[1]?.data).toMatchObject({ name: 'first', result: { steps: ['first'] } });
    const checkpoints = await stream('builder', input, ['checkpoints']);
    expect(checkpoints.map(({ data }) => data)).toMatchObject([
      { values: { steps: [] }, metadata: { step: -1, source: 'input' }, next: ['__start__'] },
      { values: { steps: ['in'] }, next: ['first'] },
      { values: { steps: ['in', 'first'] }, next: ['second'] },
      { values: { steps: ['in', 'first', 'second'] }, next: [] },
    ]);
    const debug = await stream('builder', input, ['debug']);
    expect(debug.map(({ data }) => (data as { type: string }).type)).toEqual(
      'checkpoint checkpoint task task_result checkpoint task task_result checkpoint'.split(' '),
    );
    expect(debug[2]?.data).toMatchObject({ step: 1, payload: { name: 'first' } });
    expect(debug[1]?.data).toMatchObject({
      payload: {
        checkpoint: { checkpoint_ns: '', checkpoint_map: null },
        parent_checkpoint: { checkpoint_ns: '' },
        config: { configurable: { checkpoint_ns: '' } },
      },
    });
    expect(JSON.stringify(debug)).not.toMatch(/"__pregel_\w+":/);
  });
});

describe('several modes at once', () => {
  it('come in the order of the graph', async () => {
    const events = await stream('builder', input, ['values', 'updates', 'custom']);
    expect(namesOf(events)).toBe('values custom updates values updates values');
  });

  it('have the namespace of subgraphs in their names', async () => {
    const events = await stream('nested', input, ['updates', 'custom'], true);
    const short = events.map(({ event }) => event.replace(/:[0-9a-f-]{36}/, ':id'));
    expect(short.join(' ')).toBe('updates custom|inner:id updates|inner:id updates|inner:id updates');
  });

  it('have envelopes of checkpoints beside values of subgraphs, and nothing of them otherwise', async () => {
    const events = await stream('nested', input, ['values'], true);
    const envelope = events.find(({ event }) => event === 'checkpoints');
    expect(envelope?.data).toMatchObject({ id: expect.any(String), step: 0, source: 'loop' });
    expect(namesOf(await stream('nested', input, ['values']))).toBe('values values values');
  });
});
