// Two machines with clocks of their own: what the second one stores of a thread must come after what the first one has stored.
import { afterEach, expect, it, vi } from 'vitest';
import { timeOf } from '../../../src/agent-worker/checkpoints/checkpoint-clock.ts';
import { createCall, loadTestGraphs, type RunFields, startRun } from '../../support/agent-runs.ts';

const methods = await loadTestGraphs('builder');
afterEach(() => vi.restoreAllMocks());

const RUN: RunFields = { graph_id: 'builder', input: { steps: ['in'] } };
const ONE_RUN = ['in', 'first', 'second'];

/** Of a machine whose clock is so far ahead. */
async function runAhead(ms: number) {
  const call = createCall();
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + ms);
  await startRun(methods, RUN, call);
  clock.mockRestore();
  return call.memory;
}

it('a run whose machine is behind by little waits, and goes on from the state that there is', async () => {
  const memory = await runAhead(150);
  const call = createCall(memory);
  const logged: string[] = [];
  const log = (_: unknown, message: string): number => logged.push(message);
  await startRun(methods, { ...RUN, run_id: 'second' }, { ...call, context: { ...call.context, log } });
  const state = await methods['state.get']?.(
    { graph_id: 'builder', thread_id: THREAD, config: '{}' },
    call.context,
  );
  expect(JSON.parse(state ?? '').values.steps).toEqual([...ONE_RUN, ...ONE_RUN]);
  expect(logged).toEqual([
    expect.stringMatching(/^run second waits \d+ ms: the clock of this machine is behind/),
  ]);
});

it('a run or an update whose machine is far behind fails, and nothing is stored', async () => {
  const memory = await runAhead(3_600_000);
  const { length } = memory.calls;
  const message = expect.stringMatching(
    /made 3\d{3} seconds from now .*: set the clocks of all machines by NTP/,
  );
  const error = { name: 'ClockError', message };
  await expect(startRun(methods, RUN, createCall(memory))).rejects.toMatchObject(error);
  const place = { graph_id: 'builder', thread_id: THREAD, config: '{}' };
  const update = methods['state.update']?.(
    { ...place, values: '{"steps":["x"]}' },
    createCall(memory).context,
  );
  await expect(update).rejects.toMatchObject(error);
  const state = await methods['state.get']?.(place, createCall(memory).context);
  expect(JSON.parse(state ?? '').values.steps).toEqual(ONE_RUN);
  expect(memory.calls.slice(length).filter(({ method }) => method !== 'checkpoint.get')).toEqual([]);
});

/** An update at the first checkpoint of the run that was made so far ahead. */
async function forkAhead(ms: number) {
  const memory = await runAhead(0);
  const put = memory.calls.find(({ method }) => method === 'checkpoint.put');
  if (put === undefined) throw new Error('nothing was put');
  const { checkpoint_id } = put.params as { readonly checkpoint_id: string };
  const now = Date.now.bind(Date);
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + ms);
  await startRun(methods, { ...RUN, run_id: 'ahead' }, createCall(memory));
  clock.mockRestore();
  const place = { graph_id: 'builder', thread_id: THREAD };
  const config = JSON.stringify({ configurable: { checkpoint_id } });
  const calls = memory.calls.length;
  const update = methods['state.update']?.(
    { ...place, config, values: '{"steps":["fork"]}', as_node: 'first' },
    createCall(memory).context,
  );
  return { memory, calls, checkpoint_id, update };
}

it('an update at an old checkpoint is the latest state, also where its machine is behind', async () => {
  const { memory, update } = await forkAhead(150);
  const state = JSON.parse((await update)?.state ?? '');
  expect(state.values.steps.at(-1)).toBe('fork');
  const place = { graph_id: 'builder', thread_id: THREAD, config: '{}' };
  const latest = await methods['state.get']?.(place, createCall(memory).context);
  expect(JSON.parse(latest ?? '').values.steps).toEqual(state.values.steps);
});

it('an update or a run at an old checkpoint of a machine that is far behind fails, and nothing is stored', async () => {
  const { memory, calls, checkpoint_id, update } = await forkAhead(3_600_000);
  await expect(update).rejects.toMatchObject({ name: 'ClockError' });
  const run = startRun(methods, { ...RUN, checkpoint: { checkpoint_id } }, createCall(memory));
  await expect(run).rejects.toMatchObject({ name: 'ClockError' });
  expect(memory.calls.slice(calls).filter(({ method }) => method !== 'checkpoint.get')).toEqual([]);
});

const THREAD = '22222222-2222-4222-8222-222222222222';

it.each([
  // RFC 9562, appendix A.5
  ['1EC9414C-232A-6B00-B3C8-9F6BDECED846', 1_645_557_742_000],
  ['0190b1a0-5d9c-7c80-8000-000000000000', undefined],
  ['not-an-id', undefined],
])('the time of %s is %s', (id, ms) => expect(timeOf(id)).toBe(ms));
