// Runs of real graphs: events of each mode, interrupts, commands, cancellation, later attempts, and what must not leave the run.
import { describe, expect, it } from 'vitest';
import { loadTestGraphs, startRun } from '../../support/agent-runs.ts';

const methods = await loadTestGraphs(
  'builder',
  'chat',
  'asks',
  'fans',
  'nested',
  'fails',
  'values',
  'sees',
  'waits',
);
const input = { steps: ['in'] };

describe('a run', () => {
  it('streams the values, and ends with the last', async () => {
    const { events, end } = await startRun(methods, { graph_id: 'builder', input });
    const steps = [['in'], ['in', 'first'], ['in', 'first', 'second']];
    expect(events).toEqual(steps.map((one) => ({ event: 'values', data: { steps: one } })));
    expect(end).toEqual({ status: 'success', values: JSON.stringify({ steps: steps[2] }), interrupts: '{}' });
  });
});
