import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { appendEvent } from '../../src/platform/audit/journal.ts';
import { openMetrics } from '../../src/platform/platform-metrics.ts';
import { sql } from '../../src/platform/store/sql.ts';
import { createTestDatabase, onePool } from '../support/platform-database.ts';
import { entryOf } from './audit/audit-entry.ts';

/** With a run. */
const AN_EXPORT = `
  with o as (insert into organizations (display_name, plan, is_personal, config) values ('o', 'enterprise', false, '{}') returning id),
  w as (insert into workspaces (organization_id, display_name) select id, 'w' from o returning id),
  d as (insert into export_destinations (id, workspace_id, display_name, config, credentials_keys)
    select gen_random_uuid(), id, 'd', '{}', '{}' from w returning id, workspace_id),
  e as (insert into exports (id, workspace_id, destination_id, session_id, status, start_time, end_time, format_version,
      compression, created_at, updated_at)
    select gen_random_uuid(), workspace_id, id, gen_random_uuid(), 'CREATED', '2026-01-01', '2026-01-02', 'v1', 'gzip', now(), now()
    from d returning id, workspace_id, destination_id)
  insert into export_runs (id, workspace_id, export_id, destination_id, status, window_start, window_end, due_at, created_at, updated_at)
    select gen_random_uuid(), workspace_id, id, destination_id, 'CREATED', '2026-01-01', '2026-01-02', now(), now(), now() from e`;

it('the metrics of a platform contain the gauges of its database, or log why they do not', async () => {
  await using database = await createTestDatabase();
  await database.store.write((trx) => appendEvent(trx, entryOf(randomUUID())));
  await sql.raw(AN_EXPORT).execute(database.owner.db);
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
    expect(metrics).toContain('sallyport_platform_exports{kind="export",state="CREATED"} 1\n');
    expect(metrics).toContain('sallyport_platform_exports{kind="run",state="CREATED"} 1\n');
    expect(metrics).toMatch(/sallyport_platform_pool_connections\{pool="all",state="idle"\} \d+\n/);
    await sql`drop schema pgboss cascade; drop table audit_heads cascade`.execute(database.owner.db);
    expect(await read()).not.toMatch(/sallyport_platform_audit_events \d/);
    expect(logged.filter((line) => line.includes('a metric could not be read'))).toHaveLength(2);
  } finally {
    await server.close();
  }
});
