// The metrics of a running platform and its readiness, on a listener of their own. Loaded only when they are configured:
// many installations have no Prometheus.
import type { ListenAddress } from '../base/listen-address.ts';
import { describeBug, type Log } from '../base/log.ts';
import { type MetricsServer, openMetricsServer } from './api/metrics-server.ts';
import { type Metrics, type Readings, createMetrics } from './api/metrics.ts';
import type { Pools } from './store/pools.ts';
import { sql } from './store/sql.ts';

export type MetricsSource = Pick<Readings, 'running' | 'streams'> & {
  readonly pools: Pools;
  readonly log: Log;
  isReady(): boolean;
  /** Whether the database has the tables of jobs. */
  readonly hasJobs: boolean;
};

export async function openMetrics(
  listen: ListenAddress,
  source: MetricsSource,
): Promise<{ readonly metrics: Metrics; readonly server: MetricsServer }> {
  const metrics = createPlatformMetrics(source);
  return {
    metrics,
    server: await openMetricsServer({ ...metrics, isReady: source.isReady }, listen, source.log),
  };
}

export function createPlatformMetrics(source: MetricsSource): Metrics {
  return createMetrics(createReadings(source));
}

function createReadings({ pools, running, streams, log, hasJobs }: MetricsSource): Readings {
  return {
    running,
    streams,
    onError: (error) => log.warn(describeBug(error), 'a metric could not be read'),
    pools: () => pools.connections(),
    async auditEvents() {
      const heads = pools.long.db.selectFrom('audit_heads');
      const row = await heads.select(({ fn }) => fn.sum<string>('seq').as('events')).executeTakeFirst();
      return Number(row?.events ?? 0);
    },
    async jobs() {
      if (!hasJobs) return {};
      const { rows } = await sql<{ state: string; count: string }>`
        select state::text, count(*) from pgboss.job group by state`.execute(pools.long.db);
      return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]));
    },
    async deployments() {
      const { rows } = await sql<{ kind: string; state: string; count: string }>`
        select 'deployment' as kind, status as state, count(*) from deployments group by status
        union all select 'revision', status, count(*) from revisions group by status`.execute(pools.long.db);
      return rows.map(({ count, ...labels }) => ({ ...labels, count: Number(count) }));
    },
    async exports() {
      const { rows } = await sql<{ kind: string; state: string; count: string }>`
        select 'export' as kind, status as state, count(*) from exports
        where status in ('CREATED', 'RUNNING', 'INTERVALSCHEDULED') group by status
        union all select 'run', status, count(*) from export_runs
        where status in ('CREATED', 'RUNNING') group by status`.execute(pools.long.db);
      return rows.map(({ count, ...labels }) => ({ ...labels, count: Number(count) }));
    },
  };
}
