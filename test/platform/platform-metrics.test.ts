import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { appendEvent } from '../../src/platform/audit/journal.ts';
import { openMetrics } from '../../src/platform/platform-metrics.ts';
import { sql } from '../../src/platform/store/sql.ts';
import { createTestDatabase, onePool } from '../support/platform-database.ts';
import { entryOf } from './audit/audit-entry.ts';

it('the metrics of a platform contain the gauges of its database, or log why they do not', async () => {
  await using database = await createTestDatabase();
  await database.store.write((trx) => appendEvent(trx, entryOf(randomUUID())));
  const logged: string[] = [];
  const log = createLog('info', { write: (line) => void logged.push(line) });
  const source = {
    pools: onePool(database.store),
    running: () => 3,
    streams: () => 1,
    isReady: () => true,
    log,
    hasJobs: true,
  };
  const { server } = await openMetrics({ host: '127.0.0.1', port: 0 }, source);
  const read = async (): Promise<string> => (await fetch(`${server.url}/metrics`)).text();
  try {
    const metrics = await read();
    expect(metrics).toContain('sallyport_platform_requests_running 3\n');
    expect(metrics).toContain('sallyport_platform_streams_open 1\n');
    expect(metrics).toContain('sallyport_platform_audit_events 1\n');
    expect(metrics).toMatch(/sallyport_platform_pool_connections\{pool="all",state="idle"\} \d+\n/);
    await sql`drop schema pgboss cascade; drop table audit_heads cascade`.execute(database.owner.db);
    expect(await read()).not.toMatch(/sallyport_platform_audit_events \d/);
    expect(logged.filter((line) => line.includes('a metric could not be read'))).toHaveLength(2);
  } finally {
    await server.close();
  }
});
