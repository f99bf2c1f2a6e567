// The metrics of the process: its readiness, reloads, records, log, event loop, memory and version.
import { counter, gauge, histogram, labelled, type MetricDefinition } from './metric-definition.ts';
import { proxyMetrics } from './proxy-metrics.ts';

const service: readonly MetricDefinition[] = [
  gauge('sallyport_ready', '1 while requests are served, else 0', (source) => (source.isReady() ? 1 : 0)),
  gauge('sallyport_sandboxes', 'Sandboxes, default included', (source) => source.sandboxes()),
  labelled(
    'counter',
    'sallyport_reloads_total',
    ['result'],
    'Reloads of the files of rules and secrets',
    ({ reloads }) => [
      ['done', reloads.done],
      ['failed', reloads.failed],
    ],
  ),
  gauge('sallyport_configuration_current', '0 while the last reload has failed, else 1', ({ reloads }) =>
    reloads.isCurrent ? 1 : 0,
  ),
  gauge('sallyport_ca_end_timestamp_seconds', 'When the CA certificate that signs ends', (source) =>
    Math.floor(source.caEnd().getTime() / 1000),
  ),
  labelled('gauge', 'sallyport_build_info', ['version', 'node'], 'Always 1', ({ version }) => [
    [version, process.versions.node, 1],
  ]),
];

const records: readonly MetricDefinition[] = [
  counter(
    'sallyport_records_total',
    'Records that were not dropped, written or not',
    ({ outlets }) => outlets.counts.emitted,
  ),
  labelled(
    'counter',
    'sallyport_records_dropped_total',
    ['outlet'],
    'Records that were lost: log, because its reader stopped; platform, because it accepted none',
    ({ outlets }) => [
      ['log', outlets.counts.dropped],
      ['platform', outlets.forwarding.lost],
    ],
  ),
  gauge(
    'sallyport_records_waiting',
    'Records that wait for the platform',
    ({ outlets }) => outlets.forwarding.waiting,
  ),
  gauge(
    'sallyport_record_readers',
    'Readers that follow the records',
    ({ outlets }) => outlets.live.followers,
  ),
  gauge(
    'sallyport_log_waiting_bytes',
    'What waits to be written to the log, in characters',
    ({ sink }) => sink.waiting?.chars ?? 0,
  ),
  gauge('sallyport_log_blocked', '1 while the log takes no more records', ({ sink }) =>
    sink.isBlocked ? 1 : 0,
  ),
  counter('sallyport_log_lines_dropped_total', 'Lines of the log that were lost', ({ sink }) => sink.dropped),
];

const resources: readonly MetricDefinition[] = [
  histogram(
    'sallyport_event_loop_delay_seconds',
    [],
    'How late timers are, sampled 20 times a second from the first reading on',
    ({ delay }) => [delay.read()],
  ),
  counter('process_cpu_seconds_total', 'Processor time, of all threads', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  }),
  gauge('process_start_time_seconds', 'When the process started', () => performance.timeOrigin / 1000),
  gauge('process_resident_memory_bytes', 'Resident memory', () => process.memoryUsage.rss()),
  gauge(
    'nodejs_heap_size_used_bytes',
    'Used memory of the JavaScript heap',
    () => process.memoryUsage().heapUsed,
  ),
  gauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers and other objects outside of the heap',
    () => process.memoryUsage().external,
  ),
];

/** Everything that /metrics shows, in this order. */
export const sidecarMetrics: readonly MetricDefinition[] = [
  ...proxyMetrics,
  ...service,
  ...records,
  ...resources,
];
