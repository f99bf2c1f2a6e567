// What the metrics ask of the database and of this process at each reading.
import { describeBug, type Log } from '../base/log.ts';
import type { Readings } from './api/metrics.ts';
import type { Store } from './store/database.ts';
import { sql } from './store/sql.ts';

export function createReadings(store: Store, running: () => number, log: Pick<Log, 'warn'>): Readings {
  return {
    running,
    onError: (error) => log.warn(describeBug(error), 'a metric is left out'),
    pool: () => store.connections(),
    async auditEvents() {
      const heads = store.db.selectFrom('audit_heads');
      const row = await heads.select(({ fn }) => fn.sum<string>('seq').as('events')).executeTakeFirst();
      return Number(row?.events ?? 0);
    },
    async jobs() {
      const { rows } = await sql<{ state: string; count: string }>`
        select state::text, count(*) from pgboss.job group by state`.execute(store.db);
      return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]));
    },
  };
}
