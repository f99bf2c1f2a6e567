// The metrics of a runner, on a listener of their own. Loaded only when they are configured.
import type { ListenAddress } from '../../../base/listen-address.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { type MetricsServer, openMetricsServer } from '../../api/metrics-server.ts';
import { createProcessMetrics, type Meters } from '../../api/metrics.ts';
import type { RunnerEvents } from '../deployments/deployment-ground.ts';
import type { Pools } from '../../store/pools.ts';

export type RunnerMetrics = {
  readonly server: MetricsServer;
  readonly meters: Meters;
  readonly events: RunnerEvents;
  onBuilt(outcome: string, seconds: number): void;
  /** Once it runs. */
  watch(runner: { readonly deployments: number; readonly instances: number }): void;
};

export async function openRunnerMetrics(
  listen: ListenAddress,
  source: { readonly pools: Pick<Pools, 'connections'>; readonly log: Log; isReady(): boolean },
): Promise<RunnerMetrics> {
  const { pools, log, isReady } = source;
  const metrics = createProcessMetrics({
    pools: () => pools.connections(),
    onError: (error) => log.warn(describeBug(error), 'a metric could not be read'),
  });
  const starts = metrics.seconds(
    'agent_start_seconds',
    'From the start of an agent server until it is ready',
    [],
  );
  const builds = metrics.seconds('build_seconds', 'Of a build, from its claim to its end', ['outcome']);
  const switches = metrics.seconds('deployment_switch_seconds', 'Of the switch to a revision', ['outcome']);
  const restarts = metrics.counter('agent_restarts_total', 'Agent servers that are started again', []);
  return {
    meters: metrics,
    onBuilt: (outcome, seconds) => builds({ outcome }, seconds),
    watch(runner) {
      metrics.gauge('runner_deployments', 'Deployments of this machine', () => runner.deployments);
      metrics.gauge('agent_servers', 'Agent servers of this machine that may serve', () => runner.instances);
    },
    server: await openMetricsServer({ ...metrics, isReady }, listen, log, {
      setting: 'runner.metrics_listen or SALLYPORT_PLATFORM_RUNNER_METRICS_LISTEN',
    }),
    events: {
      onStarted: (seconds) => starts({}, seconds),
      onRestarted: () => restarts({}),
      onSwitched: (outcome, seconds) => switches({ outcome }, seconds),
    },
  };
}
