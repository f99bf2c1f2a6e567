// The trace store in PostgreSQL: partitions by the day of the start, and the place of each run beside them.
import { sql } from '../../store/sql.ts';
import type { StoredRun, TraceStore } from '../trace-store.ts';
import { readDescendants } from './descendants.ts';
import { countPartitions, expireRuns, prepareDays, prepareRuns } from './partitions.ts';
import { readProjectStats } from './project-stats.ts';
import { payloadColumn, payloadFields, RUN_COLUMNS, timeOf } from './run-columns.ts';
import { mergeRuns } from './run-merging.ts';
import { readRunPage } from './run-pages.ts';
import { readPayload, readPayloads } from './run-payloads.ts';
import { startDeadline } from './query-time.ts';
import { queryRuns } from './run-query.ts';
import { readRunStats } from './run-stats.ts';
import './trace-rows.ts';

export const postgresTraceStore: TraceStore = {
  prepareRuns,
  mergeRuns,
  async readRun(db, { workspaceId, id }) {
    const places = db.selectFrom('trace_run_places').select('session_id').select(timeOf('start_time'));
    const place = await places
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .executeTakeFirst();
    if (place === undefined) return undefined;
    // By the whole key: one partition.
    return db
      .selectFrom('trace_runs')
      .select(RUN_COLUMNS)
      .select(payloadFields.map(payloadColumn))
      .select([timeOf('start_time'), timeOf('end_time'), timeOf('first_token_time')])
      .where('workspace_id', '=', workspaceId)
      .where('session_id', '=', place.session_id)
      .where('start_time', '=', sql<Date>`${place.start_time}::timestamptz`)
      .where('id', '=', id)
      .$castTo<StoredRun>()
      .executeTakeFirst();
  },
  startDeadline,
  queryRuns,
  readPayloads,
  readPayload,
  readRunPage,
  readDescendants,
  readRunStats,
  async locateRuns(db, { workspaceId, ids }) {
    if (ids.length === 0) return new Map();
    const rows = await db
      .selectFrom('trace_run_places as p')
      .innerJoin('trace_runs as r', (join) =>
        join
          .onRef('r.workspace_id', '=', 'p.workspace_id')
          .onRef('r.session_id', '=', 'p.session_id')
          .onRef('r.start_time', '=', 'p.start_time')
          .onRef('r.id', '=', 'p.id'),
      )
      .select(['r.id', 'r.session_id', 'r.trace_id'])
      .where('p.workspace_id', '=', workspaceId)
      .where('p.id', 'in', ids)
      .execute();
    return new Map(rows.map(({ id, ...location }) => [id, location]));
  },
  readProjectStats,
  countPartitions,
  prepareDays,
  expireRuns,
  async removeRuns(db, { workspaceId, id }) {
    for (let step = 0; step < REMOVAL_STEPS; step += 1) {
      const { rows } = await sql<{ removed: string }>`
        with chosen as materialized (
          select start_time, id from trace_runs
          where workspace_id = ${workspaceId} and session_id = ${id} limit ${REMOVAL_ROWS}
        ), locked as materialized (
          -- First and in the order of ids, as those do who merge runs: each would wait for the other otherwise.
          select from trace_run_places
          where workspace_id = ${workspaceId} and id in (select id from chosen) order by id for update
        ), gone as (
          delete from trace_runs r using chosen s
          where (select count(*) from locked) >= 0
            and r.workspace_id = ${workspaceId} and r.session_id = ${id} and r.start_time = s.start_time and r.id = s.id
          returning r.id
        ), left_places as (
          delete from trace_run_places p using gone where p.workspace_id = ${workspaceId} and p.id = gone.id
        ), left_attachments as (
          delete from trace_attachments a using gone where a.workspace_id = ${workspaceId} and a.run_id = gone.id
        ), left_feedback as (
          delete from trace_feedback f using gone where f.workspace_id = ${workspaceId} and f.run_id = gone.id
        )
        select count(*) as removed from gone`.execute(db);
      if (Number(rows[0]?.removed) < REMOVAL_ROWS) return true;
    }
    return false;
  },
};

/** Rows of one statement, and statements of one call: long ones would delay the vacuum of the tables. */
const REMOVAL_ROWS = 2_000;
const REMOVAL_STEPS = 100;
