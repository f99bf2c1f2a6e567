// What is counted, and that no label can be chosen by a client.
import { describe, expect, it } from 'vitest';
import { createLog } from '../../../src/base/log.ts';
import { openMetricsServer } from '../../../src/platform/api/metrics-server.ts';
import { type Metrics, type Readings, createMetrics } from '../../../src/platform/api/metrics.ts';

const readings: Readings = {
  running: () => 2,
  streams: () => 1,
  pools: () => ({ reads: { size: 5, idle: 3, waiting: 1 } }),
  auditEvents: async () => 42,
  jobs: async () => ({ created: 7 }),
  deployments: async () => [{ kind: 'revision', state: 'DEPLOYED', count: 3 }],
  exports: async () => [{ kind: 'run', state: 'CREATED', count: 4 }],
  onError: () => undefined,
};
const log = createLog('silent', { write: () => {} });

async function read(metrics: Metrics): Promise<readonly string[]> {
  return (await metrics.read()).split('\n').filter((line) => line.startsWith('sallyport_'));
}

describe('metrics', () => {
  it('count requests by route template and status, and tell what is asked for', async () => {
    const metrics = createMetrics(readings);
    metrics.onFinished({ method: 'GET', route: '/v2/listeners/{listener_id}', status: 404, seconds: 0.003 });
    metrics.onFinished({ method: 'POST', route: undefined, status: 401, seconds: 0.1 });
    const lines = await read(metrics);
    expect(lines).toEqual(
      expect.arrayContaining([
        'sallyport_platform_requests_total{method="GET",route="/v2/listeners/{listener_id}",status="404"} 1',
        'sallyport_platform_requests_total{method="POST",route="none",status="401"} 1',
        'sallyport_platform_failed_authentications_total 1',
        'sallyport_platform_requests_running 2',
        'sallyport_platform_pool_connections{pool="reads",state="busy"} 2',
        'sallyport_platform_pool_connections{pool="reads",state="idle"} 3',
        'sallyport_platform_pool_connections{pool="reads",state="awaited"} 1',
        'sallyport_platform_audit_events 42',
        'sallyport_platform_jobs{state="created"} 7',
        'sallyport_platform_deployments{kind="revision",state="DEPLOYED"} 3',
        'sallyport_platform_exports{kind="run",state="CREATED"} 4',
      ]),
    );
    expect(
      lines.some((line) => line.startsWith('sallyport_platform_request_duration_seconds_bucket{le="0.005"')),
    ).toBe(true);
    expect(await metrics.read()).toContain('process_resident_memory_bytes');
  });

  it('leave out what the database does not report', async () => {
    const errors: unknown[] = [];
    let isAway = false;
    const away = new Error('away');
    const metrics = createMetrics({
      ...readings,
      auditEvents: () => (isAway ? Promise.reject(away) : readings.auditEvents()),
      jobs: () => (isAway ? Promise.reject(away) : readings.jobs()),
      deployments: () => (isAway ? Promise.reject(away) : readings.deployments()),
      exports: () => (isAway ? Promise.reject(away) : readings.exports()),
      onError: (error) => void errors.push(error),
    });
    expect(await read(metrics)).toContain('sallyport_platform_audit_events 42');
    isAway = true;
    const lines = await read(metrics);
    expect(lines).toContain('sallyport_platform_requests_running 2');
    expect(lines.filter((line) => /_(audit_events|jobs|deployments|exports)[ {]/.test(line))).toEqual([]);
    expect(errors).toEqual([away, away, away, away]);
  });

  it('are served on a listener of their own, at one path', async () => {
    const source = { ...createMetrics(readings), isReady: () => true };
    const server = await openMetricsServer(source, { host: '127.0.0.1', port: 0 }, log);
    const response = await fetch(`${server.url}/metrics`);
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      expect.stringMatching(/^text\/plain; version=/),
    ]);
    expect(await response.text()).toContain('sallyport_platform_audit_events 42');
    const elsewhere = await fetch(`${server.url}/`);
    expect([elsewhere.status, await elsewhere.json()]).toMatchObject([404, { code: 'no_route' }]);
    await server.close();
  });

  it('have the readiness of their process beside them', async () => {
    let isReady = true;
    const source = { ...createMetrics(readings), isReady: () => isReady };
    const server = await openMetricsServer(source, { host: '127.0.0.1', port: 0 }, log);
    const ready = await fetch(`${server.url}/ok`);
    expect([ready.status, await ready.json()]).toEqual([200, { ok: true }]);
    isReady = false;
    const draining = await fetch(`${server.url}/ok`);
    expect([draining.status, await draining.json()]).toEqual([
      503,
      { detail: 'This process is starting or shutting down', code: 'unavailable' },
    ]);
    await server.close();
  });

  it('that cannot be read are a 503, and the reason is for the log alone', async () => {
    const failing = { read: () => Promise.reject(new Error('hush')), isReady: () => true };
    const broken = { contentType: 'text/plain', ...failing };
    const lines: string[] = [];
    const own = createLog('info', { write: (line) => void lines.push(line) });
    const server = await openMetricsServer(broken, { host: '127.0.0.1', port: 0 }, own);
    const response = await fetch(`${server.url}/metrics`);
    expect([response.status, await response.json()]).toEqual([
      503,
      { detail: 'The metrics are temporarily unavailable: try again', code: 'unavailable' },
    ]);
    expect(lines).toHaveLength(1);
    await server.close();
  });
});
