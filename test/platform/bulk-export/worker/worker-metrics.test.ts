// The metrics of an export worker, as a scraper reads them.
import { expect, it } from 'vitest';
import { createLog } from '../../../../src/base/log.ts';
import { openWorkerMetrics } from '../../../../src/platform/bulk-export/worker/worker-metrics.ts';

it('tell what runs, how attempts end, and what they have written', async () => {
  const listen = { host: '127.0.0.1', port: 0 };
  const log = createLog('silent', { write: () => undefined });
  const pools = { connections: () => ({ pages: { size: 2, idle: 1, waiting: 0 } }) };
  const { server, onEnded, watch } = await openWorkerMetrics(listen, { pools, log, isReady: () => true });
  try {
    watch({ running: 2 });
    onEnded({ outcome: 'completed', seconds: 2, rows: 100, files: 2, bytes: 4_000 });
    onEnded({ outcome: 'retried', seconds: 1, rows: 50, files: 1, bytes: 2_000 });
    const lines = (await (await fetch(`${server.url}/metrics`)).text()).split('\n');
    for (const line of [
      ...['export_runs 2', 'export_rows_total 150', 'export_files_total 3', 'export_bytes_total 6000'],
      'export_attempt_seconds_sum{outcome="completed"} 2',
      'export_attempt_seconds_count{outcome="retried"} 1',
      'pool_connections{pool="pages",state="busy"} 1',
    ])
      expect(lines).toContain(`sallyport_platform_${line}`);
  } finally {
    await server.close();
  }
});
