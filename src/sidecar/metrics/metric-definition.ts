// What one metric is: its name, its kind, its labels, what it means, and how its samples are read.
import type { MetricFamily, Sample } from '../../base/metrics/prometheus.ts';
import type { MetricSource } from './metric-source.ts';

export type MetricDefinition = {
  readonly name: string;
  readonly type: MetricFamily['type'];
  readonly labels: readonly string[];
  readonly help: string;
  read(source: MetricSource): readonly Sample[];
};

type Read = (source: MetricSource) => number;

/** Only grows, until the process ends. */
export function counter(name: string, help: string, read: Read): MetricDefinition {
  return { name, type: 'counter', labels: [], help, read: (source) => [{ value: read(source) }] };
}

export function gauge(name: string, help: string, read: Read): MetricDefinition {
  return { name, type: 'gauge', labels: [], help, read: (source) => [{ value: read(source) }] };
}

/** With a sample for each row: the values of the labels in order, then the value. */
export function labelled<const L extends readonly string[]>(
  type: 'counter' | 'gauge',
  name: string,
  labels: L,
  help: string,
  read: (source: MetricSource) => readonly (readonly [...{ [K in keyof L]: string }, number])[],
): MetricDefinition {
  return {
    ...{ name, type, labels, help },
    read: (source) =>
      read(source).map((row) => ({
        labels: Object.fromEntries(labels.map((label, at) => [label, String(row[at])])),
        value: Number(row[labels.length]),
      })),
  };
}

export function histogram(
  name: string,
  labels: readonly string[],
  help: string,
  read: MetricDefinition['read'],
): MetricDefinition {
  return { name, type: 'histogram', labels, help, read };
}
