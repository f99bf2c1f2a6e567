// The metrics of a runner, on a listener of their own. Loaded only when they are configured.
import type { ListenAddress } from '../../../base/listen-address.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { type MetricsServer, openMetricsServer } from '../../api/metrics-server.ts';
import { createMetrics, type Meters } from '../../api/metrics.ts';
import type { RunnerEvents } from '../deployments/deployment-ground.ts';
import type { Pools } from '../../store/pools.ts';

export type RunnerMetrics = {
  readonly server: MetricsServer;
  readonly meters: Meters;
  readonly events: RunnerEvents;
};

export async function openRunnerMetrics(
  listen: ListenAddress,
  source: { readonly pools: Pools; readonly log: Log; isReady(): boolean },
): Promise<RunnerMetrics> {
  const { pools, log, isReady } = source;
  const none = (): number => 0;
  const metrics = createMetrics({
    ...{ running: none, streams: none, auditEvents: async () => 0, jobs: async () => ({}) },
    deployments: async () => [],
    onError: (error) => log.warn(describeBug(error), 'a metric could not be read'),
    pools: () => pools.connections(),
  });
  const starts = metrics.seconds(
    'agent_start_seconds',
    'From the start of an agent server until it is ready',
    [],
  );
  const switches = metrics.seconds('deployment_switch_seconds', 'Of the switch to a revision', ['outcome']);
  const restarts = metrics.counter('agent_restarts_total', 'Agent servers that are started again', []);
  return {
    meters: metrics,
    server: await openMetricsServer({ ...metrics, isReady }, listen, log),
    events: {
      onStarted: (seconds) => starts({}, seconds),
      onRestarted: () => restarts({}),
      onSwitched: (outcome, seconds) => switches({ outcome }, seconds),
    },
  };
}
