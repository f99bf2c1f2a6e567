// The text format of Prometheus. The adapter of prom-client: what the platform counts with it, and the formatting of what the sidecar
// has counted by itself.
import { Counter, Gauge, Histogram, type Metric, Registry, collectDefaultMetrics } from 'prom-client';

export { Counter, Gauge, Histogram, Registry, collectDefaultMetrics };

type Labels = Readonly<Record<string, string>>;

/** A histogram has how many values were at most as large as each bound, how many there were, and their sum. */
export type Sample = { readonly labels?: Labels } & (
  | { readonly value: number }
  | {
      readonly bounds: readonly number[];
      readonly buckets: readonly number[];
      readonly count: number;
      readonly sum: number;
    }
);

export type MetricFamily = {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly Sample[];
};

export const metricsContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

export function formatMetrics(families: readonly MetricFamily[]): Promise<string> {
  const registry = new Registry();
  for (const family of families) registry.registerMetric(asMetric(family));
  return registry.metrics();
}

/** What a registry asks of a metric, and no more: those of prom-client count by themselves. */
function asMetric({ name, help, type, samples }: MetricFamily): Metric {
  const values = samples.flatMap((sample) => toValues(name, sample));
  const metric = { name, get: async () => ({ name, help, type, values, aggregator: 'sum' }) };
  return metric as unknown as Metric;
}

type Value = {
  readonly value: number;
  readonly labels: Labels;
  readonly metricName?: string;
};

function toValues(name: string, sample: Sample): readonly Value[] {
  const { labels = {} } = sample;
  if ('value' in sample) return [{ value: sample.value, labels }];
  const { bounds, buckets, count, sum } = sample;
  const metricName = `${name}_bucket`;
  return [
    ...bounds.map((bound, at) => ({
      ...{ value: buckets[at] ?? 0, labels: { ...labels, le: String(bound) }, metricName },
    })),
    { value: count, labels: { ...labels, le: '+Inf' }, metricName },
    { value: sum, labels, metricName: `${name}_sum` },
    { value: count, labels, metricName: `${name}_count` },
  ];
}
