// The metrics of an export worker, on a listener of their own. Loaded only when they are configured.
import type { ListenAddress } from '../../../base/listen-address.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { type MetricsServer, openMetricsServer } from '../../api/metrics-server.ts';
import { createProcessMetrics } from '../../api/metrics.ts';
import type { Pools } from '../../store/pools.ts';
import type { EndedAttempt } from './run-attempt.ts';

export type WorkerMetrics = {
  readonly server: MetricsServer;
  onEnded(ended: EndedAttempt): void;
  /** Once it runs. */
  watch(worker: { readonly running: number }): void;
};

export async function openWorkerMetrics(
  listen: ListenAddress,
  source: { readonly pools: Pick<Pools, 'connections'>; readonly log: Log; isReady(): boolean },
): Promise<WorkerMetrics> {
  const { pools, log, isReady } = source;
  const metrics = createProcessMetrics({
    pools: () => pools.connections(),
    onError: (error) => log.warn(describeBug(error), 'a metric could not be read'),
  });
  const attempts = metrics.seconds('export_attempt_seconds', 'Of an attempt of a run of an export', [
    'outcome',
  ]);
  const rows = metrics.counter('export_rows_total', 'Rows in files that are complete', []);
  const files = metrics.counter('export_files_total', 'Files that are complete', []);
  const bytes = metrics.counter('export_bytes_total', 'Bytes of files that are complete', []);
  return {
    onEnded(ended) {
      attempts({ outcome: ended.outcome }, ended.seconds);
      rows({}, ended.rows);
      files({}, ended.files);
      bytes({}, ended.bytes);
    },
    watch(worker) {
      metrics.gauge('export_runs', 'Runs of exports that this process executes', () => worker.running);
    },
    server: await openMetricsServer({ ...metrics, isReady }, listen, log, {
      setting: 'exports.worker.metrics_listen or SALLYPORT_PLATFORM_EXPORTS_WORKER_METRICS_LISTEN',
    }),
  };
}
