// The metrics of a runner, as a scraper reads them.
import { expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { openRunnerMetrics } from '../../../../src/platform/runner/program/metrics.ts';
import type { Pools } from '../../../../src/platform/store/pools.ts';

it('tell what the runner runs, how long builds and starts take, and what is started again', async () => {
  const pools = { connections: () => ({ long: { size: 2, idle: 1, waiting: 0 } }) } as unknown as Pools;
  const log = createLog('silent', { write: () => undefined });
  const listen = { host: '127.0.0.1', port: 0 };
  const { server, events, onBuilt, watch } = await openRunnerMetrics(listen, {
    ...{ pools, log, isReady: () => true },
  });
  try {
    watch({ deployments: 2, instances: 3 });
    onBuilt('ready', 4);
    events.onStarted(1);
    events.onRestarted();
    events.onSwitched('deployed', 2);
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const lines = text.split('\n');
    for (const line of [
      ...['runner_deployments 2', 'agent_servers 3', 'agent_restarts_total 1', 'agent_start_seconds_count 1'],
      'build_seconds_sum{outcome="ready"} 4',
      'deployment_switch_seconds_count{outcome="deployed"} 1',
      'pool_connections{pool="long",state="busy"} 1',
    ])
      expect(lines).toContain(`sallyport_platform_${line}`);
  } finally {
    await server.close();
  }
});

it('have nothing that only a platform knows, and name their own setting when they cannot listen', async () => {
  const pools = { connections: () => ({}) };
  const source = { pools, log: createLog('silent', { write: () => undefined }), isReady: () => true };
  const { server } = await openRunnerMetrics({ host: '127.0.0.1', port: 0 }, source);
  try {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    expect(text).not.toMatch(/sallyport_platform_(?:audit_events|jobs|requests_running|deployments)/);
    const taken = { host: '127.0.0.1', port: Number(new URL(server.url).port) };
    await expect(openRunnerMetrics(taken, source)).rejects.toThrow(
      'SALLYPORT_PLATFORM_RUNNER_METRICS_LISTEN',
    );
  } finally {
    await server.close();
  }
});
