// An agent server that is ready at once, and that no process belongs to.
import type { AgentProcess } from '../../src/platform/runner/instances/agent-process.ts';

export type FakeAgent = AgentProcess & {
  /** As if its process had ended. */
  end(reason: string): void;
  isHealthy: boolean;
  isDrained: boolean;
  readonly status: { draining: boolean; requests: number; streams: number; runs: number };
  /** How often it was asked for its status. */
  looks: number;
  /** The graces of what stopped it. */
  readonly stops: number[];
  /** The versions of the policies that it was given. */
  readonly policies: number[];
};

export function createFakeAgent(id = 'one'): FakeAgent {
  const ended = Promise.withResolvers<string>();
  const fake: FakeAgent = {
    served: { id, socketPath: `/${id}`, gatewayToken: 'token' },
    control: {
      isReady: async () => fake.isHealthy,
      drain: async () => void (fake.isDrained = true),
      async status() {
        fake.looks += 1;
        return { ...fake.status };
      },
    },
    workload: {
      pid: 1,
      applyPolicy: async ({ version }) => void fake.policies.push(version),
      memoryBytes: async () => undefined,
    },
    ended: ended.promise,
    async stop(graceMs) {
      fake.stops.push(graceMs);
      ended.resolve('it was stopped');
    },
    end: (reason) => ended.resolve(reason),
    ...{ isHealthy: true, isDrained: false, looks: 0, stops: [], policies: [] },
    status: { draining: false, requests: 0, streams: 0, runs: 0 },
  };
  return fake;
}
