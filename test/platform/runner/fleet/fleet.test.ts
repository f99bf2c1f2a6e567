// The agent servers of a revision with fakes: how many there are, who may serve, and how they retire.
import { expect, it } from 'vitest';
import { createCapacity } from '../../../../src/platform/runner/fleet/capacity.ts';
import { Fleet } from '../../../../src/platform/runner/fleet/fleet.ts';
import { createFakeAgent, type FakeAgent } from '../../../support/fake-agent.ts';

const size = { memoryBytes: 1, cpuMillicores: 1 };

function open(instances = 10, drainMs = 10_000) {
  const capacity = createCapacity({ instances, memoryBytes: 100, cpuMillicores: 100 });
  const agents: FakeAgent[] = [];
  const waiting = new Set<string>();
  const fleet = new Fleet({
    async start() {
      const agent = createFakeAgent(`agent-${agents.length}`);
      agents.push(agent);
      return agent;
    },
    take: () => capacity.take(size),
    onChange: () => undefined,
    onRestart: () => undefined,
    targets: {
      handedOver: async () => undefined,
      inFlight: (id) => ({ requests: waiting.has(id) ? 1 : 0, upgraded: 0 }),
      async drained(id, signal) {
        const { promise, resolve } = Promise.withResolvers<void>();
        signal?.addEventListener('abort', () => resolve(), { once: true });
        if (waiting.has(id) && signal?.aborted !== true) await promise;
      },
    },
    drainMs,
  });
  return { fleet, agents, capacity, waiting };
}

it('has as many as are wanted, and gives back what those took that are gone', async () => {
  const { fleet, agents, capacity } = open();
  expect(fleet.scaleTo(3)).toBeUndefined();
  expect(await fleet.whenReady()).toBeUndefined();
  expect(fleet.served.map(({ id }) => id)).toEqual(['agent-0', 'agent-1', 'agent-2']);
  fleet.scaleTo(1);
  expect(fleet.served.map(({ id }) => id)).toEqual(['agent-0']);
  await expect.poll(() => capacity.used.instances).toBe(1);
  expect(agents.map(({ isDrained, stops }) => [isDrained, stops.length])).toEqual([
    [false, 0],
    [true, 1],
    [true, 1],
  ]);
  await fleet.close(0);
  expect(capacity.used.instances).toBe(0);
});

it('says why there cannot be more, and has those that there can be', async () => {
  const { fleet } = open(2);
  expect(fleet.scaleTo(3)).toContain('runner.limits.instances');
  expect(fleet.size).toBe(2);
  await fleet.close(0);
});

it('one that retires goes on while a request or a run of it does', async () => {
  const { fleet, agents } = open();
  fleet.scaleTo(1);
  await fleet.whenReady();
  const [agent] = agents;
  if (agent === undefined) throw new Error('none was started');
  agent.status.runs = 1;
  let isOver = false;
  const retired = fleet.retire().then(() => (isOver = true));
  await expect.poll(() => agent.looks).toBeGreaterThan(1);
  expect([isOver, agent.stops]).toEqual([false, []]);
  agent.status.runs = 0;
  await retired;
  expect(agent.stops).toHaveLength(1);
});

it.each(['a request', 'a run'])('%s that does not end is not waited for for ever', async (what) => {
  const { fleet, agents, waiting } = open(1, 300);
  fleet.scaleTo(1);
  await fleet.whenReady();
  if (what === 'a request') waiting.add('agent-0');
  else if (agents[0] !== undefined) agents[0].status.runs = 1;
  await fleet.retire();
  expect(agents[0]?.stops).toHaveLength(1);
});

it('those that retire end at once with the fleet', async () => {
  const { fleet, agents, waiting } = open();
  fleet.scaleTo(1);
  await fleet.whenReady();
  waiting.add('agent-0');
  const retired = fleet.retire();
  await fleet.close(0);
  await retired;
  expect(agents[0]?.stops).toEqual([0]);
});

it('a policy reaches each one that runs', async () => {
  const { fleet, agents } = open();
  fleet.scaleTo(2);
  await fleet.whenReady();
  await fleet.applyPolicy({ version: 2, document: {}, secrets: {} });
  expect(agents.map(({ policies }) => policies)).toEqual([[2], [2]]);
  await fleet.close(0);
});
