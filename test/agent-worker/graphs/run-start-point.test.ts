// A run whose worker is lost at any of its checkpoint calls, and that a later attempt finishes: no node's writes are lost or
// there twice, and no interrupt is passed.
import { describe, expect, it } from 'vitest';
import { createMemoryCheckpoints } from '../../support/agent-checkpoints.ts';
import {
  createCall,
  loadTestGraphs,
  type RunFields,
  startRun,
  type TestRun,
} from '../../support/agent-runs.ts';

const methods = await loadTestGraphs('builder', 'fans', 'nested', 'asks', 'asksTwice', 'asksSideBySide');
const input = { steps: ['in'] };

/** What a thread holds before the run, by runs that were not lost. */
type Case = { readonly before?: RunFields; readonly run: RunFields };

const cases: Readonly<Record<string, Case>> = {
  'an input': { run: { graph_id: 'builder', input } },
  'an input, with sync': { run: { graph_id: 'builder', input, durability: 'sync' } },
  'an input, with exit': { run: { graph_id: 'builder', input, durability: 'exit' } },
  'an input on a used thread': {
    before: { graph_id: 'builder', input },
    run: { graph_id: 'builder', input },
  },
  'tasks side by side': { run: { graph_id: 'fans', input } },
  'a subgraph': { run: { graph_id: 'nested', input } },
  'an interrupt': { run: { graph_id: 'asks', input } },
  'a resume': {
    before: { graph_id: 'asks', input },
    run: { graph_id: 'asks', command: { resume: 'me' } },
  },
  'a resume that comes to the next question': {
    before: { graph_id: 'asksTwice', input },
    run: { graph_id: 'asksTwice', command: { resume: 'bob' } },
  },
  'a resume of one of two questions': {
    before: { graph_id: 'asksSideBySide', input },
    run: { graph_id: 'asksSideBySide', command: { resume: 'bob' } },
  },
  'a resume of one of two questions, with exit': {
    before: { graph_id: 'asksSideBySide', input },
    run: { graph_id: 'asksSideBySide', command: { resume: 'bob' }, durability: 'exit' },
  },
  'a resume with an empty text that comes to the next question': {
    before: { graph_id: 'asksTwice', input },
    run: { graph_id: 'asksTwice', command: { resume: '' } },
  },
  'a resume of two questions with false': {
    before: { graph_id: 'asksSideBySide', input },
    run: { graph_id: 'asksSideBySide', command: { resume: false } },
  },
  'an update and a target': {
    before: { graph_id: 'builder', input },
    run: { graph_id: 'builder', command: { update: { steps: ['up'] }, goto: 'second' } },
  },
  'a stop before a node': { run: { graph_id: 'builder', input, interrupt_before: ['second'] } },
  'a stop before the first node': { run: { graph_id: 'builder', input, interrupt_before: ['first'] } },
  'a stop after a node': { run: { graph_id: 'builder', input, interrupt_after: ['first'] } },
  'a stop after tasks side by side': { run: { graph_id: 'fans', input, interrupt_after: ['work'] } },
};

async function runLosing(
  { before, run }: Case,
  callsUntilLost: number,
): Promise<TestRun & { readonly wasLost: boolean }> {
  const memory = createMemoryCheckpoints();
  if (before !== undefined) await startRun(methods, { ...before, run_id: 'before' }, createCall(memory));
  let left = callsUntilLost;
  let wasLost = false;
  // What a lost worker sends after that is seen by nobody.
  memory.onCall = () => {
    left -= 1;
    if (left >= 0) return;
    wasLost = true;
    throw new Error('the worker is lost');
  };
  const first = await startRun(methods, run, createCall(memory)).catch(() => undefined);
  memory.onCall = () => {};
  if (first !== undefined && !wasLost) {
    // Its end was not stored: it is all there, and another attempt comes.
    const again = await startRun(methods, { ...run, attempt: 2, is_resumed: true }, createCall(memory));
    return { ...again, wasLost };
  }
  return {
    ...(await startRun(methods, { ...run, attempt: 2, is_resumed: true }, createCall(memory))),
    wasLost,
  };
}

describe('a later attempt', () => {
  it.each(Object.entries(cases))('ends as the first would have: %s', async (_name, one) => {
    const memory = createMemoryCheckpoints();
    if (one.before !== undefined)
      await startRun(methods, { ...one.before, run_id: 'before' }, createCall(memory));
    const expected = (await startRun(methods, one.run, createCall(memory))).end;
    const shape = ({ end }: Pick<TestRun, 'end'>): unknown => {
      const { steps, ...rest } = JSON.parse(end.values);
      return [end.status, steps, rest, Object.values(JSON.parse(end.interrupts)).length];
    };
    for (let calls = 1; ; calls += 1) {
      const found = await runLosing(one, calls);
      expect(shape(found), `lost after ${calls} calls`).toEqual(shape({ end: expected }));
      if (!found.wasLost) break;
      expect(calls).toBeLessThan(60);
    }
  });

  it('tells clients of the stop that it finds', async () => {
    const call = createCall();
    const run = {
      graph_id: 'builder',
      input,
      interrupt_before: ['second'],
      stream_mode: ['values', 'updates'],
    };
    const { events } = await startRun(methods, run, call);
    const again = createCall(call.memory);
    await startRun(methods, { ...run, attempt: 2, is_resumed: true }, again);
    expect(again.events).toEqual([
      { event: 'values', data: { steps: ['in', 'first'] } },
      { event: 'updates', data: { __interrupt__: [] } },
      { event: 'values', data: { __interrupt__: [] } },
    ]);
    expect(events.slice(-2)).toEqual(again.events.slice(-2));
  });
});
