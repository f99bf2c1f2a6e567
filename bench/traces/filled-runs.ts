// Runs in the database for a benchmark of queries: traces of ten runs over a number of days, with payloads, metadata and tokens as
// those of an agent with a model. They are made by the database itself.
import type { Client } from '../../src/platform/store/database.ts';

export type FilledRuns = { readonly projectId: string; readonly otherProjectId: string };

export type FillOptions = {
  readonly workspaceId: string;
  readonly runs: number;
  /** Until now. */
  readonly days: number;
};

const RUNS_OF_TRACE = 10;

/** Each tenth trace is in a second project. */
export async function fillRuns(client: Client, options: FillOptions): Promise<FilledRuns> {
  const { workspaceId, runs, days } = options;
  const addProject = async (name: string): Promise<string> => {
    const text = 'insert into trace_projects (workspace_id, name) values ($1, $2) returning id';
    return (await client.query(text, [workspaceId, name])).rows[0].id;
  };
  const [projectId, otherProjectId] = [await addProject('bench'), await addProject('bench, other')];
  const traces = Math.ceil(runs / RUNS_OF_TRACE / days);
  for (let day = days - 1; day >= 0; day -= 1) {
    await client.query(`select trace_make_partition((now() at time zone 'utc')::date - $1::int)`, [day]);
    await client.query(FILL, [workspaceId, projectId, otherProjectId, day, traces]);
  }
  await client.query('vacuum (analyze) trace_runs');
  await client.query('vacuum (analyze) trace_run_places');
  return { projectId, otherProjectId };
}

/** One day: `$4` days ago, `$5` traces of ten runs. */
const FILL = `
  with day as (
    select date_trunc('day', now() at time zone 'utc')::date - $4::int as day
  ), traces as (
    select gen_random_uuid() as trace_id, t,
      least(day.day::timestamp at time zone 'utc' + (t - 1) * (interval '1435 minutes' / $5::int), now() - interval '1 minute' - t * interval '1 ms') as started
    from day, generate_series(1, $5::int) t
  ), runs as (
    select case when n = 0 then trace_id else gen_random_uuid() end as id, trace_id, t, n,
      started + n * interval '150 ms' as start_time
    from traces, generate_series(0, ${RUNS_OF_TRACE - 1}) n
  ), placed as (
    insert into trace_run_places (workspace_id, id, session_id, start_time, session_rank, start_rank)
    select $1::uuid, id, case when t % 10 = 0 then $3::uuid else $2::uuid end, start_time, 2, 2 from runs
  )
  insert into trace_runs (workspace_id, session_id, start_time, id, trace_id, parent_run_id, parent_run_ids, dotted_order, name,
    run_type, end_time, error, tags, metadata, thread_id, usage_in_extra, inputs_pairs, inputs_text, inputs_json, outputs_text,
    outputs_json, extra_json, error_json, given)
  select $1::uuid, case when t % 10 = 0 then $3::uuid else $2::uuid end, start_time, id, trace_id,
    case when n > 0 then trace_id end, case when n > 0 then array[trace_id] else '{}' end,
    to_char(start_time at time zone 'utc', 'YYYYMMDD"T"HH24MISSUS"Z"') || id, (array['agent', 'model', 'tool', 'parser'])[1 + n % 4],
    (array['chain', 'llm', 'tool', 'parser'])[1 + n % 4], start_time + (50 + (t * 7919 + n * 104729) % 5000) * interval '1 ms',
    case when (t * 31 + n) % 97 = 0 then 'TimeoutError: nothing came in time' end, array['bench', 'n' || n],
    jsonb_build_object('env', case when t % 3 = 0 then 'prod' else 'test' end, 'attempt', t % 5), 'thread-' || t % 1000,
    case when n % 4 = 1 then jsonb_build_object('input_tokens', 100 + t % 900, 'output_tokens', 10 + t % 90, 'total_tokens', 110 + t % 990,
      'total_cost', '0.00' || (100 + t % 900)::text) end,
    jsonb_build_object('messages.0.content', 'Question ' || t, 'temperature', '0.2'),
    content.inputs, convert_to(content.inputs, 'UTF8'), content.outputs, convert_to(content.outputs, 'UTF8'),
    convert_to('{"metadata":{"env":"test"},"runtime":{"library":"bench","platform":"linux"}}', 'UTF8'),
    case when (t * 31 + n) % 97 = 0 then convert_to('"TimeoutError: nothing came in time"', 'UTF8') end, 4095
  from runs cross join lateral (select
    '{"messages":[{"role":"user","content":"Question ' || t || ' ' || repeat('what is it about? ', 12) || '"}],"temperature":0.2}' as inputs,
    '{"messages":[{"role":"assistant","content":"' || repeat('It is about this. ', 20) || md5(id::text) || '"}]}' as outputs) content`;
