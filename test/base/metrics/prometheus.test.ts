import { expect, it } from 'vitest';
import { formatMetrics } from '../../../src/base/metrics/prometheus.ts';

it('counters, gauges and histograms are written as Prometheus reads them', async () => {
  const text = await formatMetrics([
    {
      ...{ name: 'a_total', help: 'Of "a" \\ b', type: 'counter' },
      samples: [
        { labels: { rule: 'say "hi"\\\n' }, value: 3 },
        { labels: { rule: 'ü' }, value: 2 ** 53 },
      ],
    },
    { ...{ name: 'b', help: 'B', type: 'gauge' }, samples: [{ value: 0.5 }] },
    {
      ...{ name: 'c_seconds', help: 'C', type: 'histogram' },
      samples: [{ labels: { x: 'y' }, bounds: [0.1, 1], buckets: [1, 2], count: 3, sum: 9.5 }],
    },
    { ...{ name: 'd_total', help: 'No sample yet', type: 'counter' }, samples: [] },
  ]);
  expect(text).toBe(`# HELP a_total Of "a" \\\\ b
# TYPE a_total counter
a_total{rule="say \\"hi\\"\\\\\\n"} 3
a_total{rule="ü"} 9007199254740992

# HELP b B
# TYPE b gauge
b 0.5

# HELP c_seconds C
# TYPE c_seconds histogram
c_seconds_bucket{x="y",le="0.1"} 1
c_seconds_bucket{x="y",le="1"} 2
c_seconds_bucket{x="y",le="+Inf"} 3
c_seconds_sum{x="y"} 9.5
c_seconds_count{x="y"} 3

# HELP d_total No sample yet
# TYPE d_total counter
`);
});
