// A day of runs in the database of a benchmark: about 1.2 kB each with payloads, metadata, tokens and costs, made by the database itself.
// Their texts are those of hexadecimal digests, so that they are compressed to about half, as real ones are.
import type { Client } from '../../src/platform/store/database.ts';

export const DAY = '2026-11-20';

export type FilledDay = { readonly workspaceId: string; readonly projectId: string };

const AT_ONCE = 50_000;

export async function fillDay(client: Client, runs: number): Promise<FilledDay> {
  const organization = `insert into organizations (display_name, plan, config) values ('bench', 'enterprise', '{}') returning id`;
  const { id: organizationId } = (await client.query(organization)).rows[0];
  const workspace = `insert into workspaces (organization_id, display_name) values ($1, 'bench') returning id`;
  const { id: workspaceId } = (await client.query(workspace, [organizationId])).rows[0];
  const project = `insert into trace_projects (workspace_id, name) values ($1, 'bench') returning id`;
  const { id: projectId } = (await client.query(project, [workspaceId])).rows[0];
  await client.query('select trace_make_partition($1::date)', [DAY]);
  for (let from = 0; from < runs; from += AT_ONCE)
    await client.query(FILL, [workspaceId, projectId, DAY, from, Math.min(AT_ONCE, runs - from), runs]);
  await client.query('vacuum (analyze) trace_runs');
  return { workspaceId, projectId };
}

/** `$5` runs from number `$4` on, of `$6` that are spread over the day `$3`; ten in each trace. */
const FILL = `
  with runs as (
    select n, md5('run' || n)::uuid as id, md5('run' || n - n % 10)::uuid as trace_id,
      ($3::timestamp at time zone 'utc') + n * (interval '24 hours' / ($6::int + 1)) as started
    from generate_series($4::int, $4::int + $5::int - 1) n
  )
  insert into trace_runs (workspace_id, session_id, start_time, id, trace_id, parent_run_id, parent_run_ids, dotted_order, name, run_type,
    end_time, error, error_json, tags, metadata, usage_in_extra, first_token_time, inputs_json, outputs_json, extra_json, events_json, given)
  select $1::uuid, $2::uuid, started, id, trace_id, case when n % 10 > 0 then trace_id end,
    case when n % 10 > 0 then array[trace_id] else '{}' end,
    to_char(started at time zone 'utc', 'YYYYMMDD"T"HH24MISSUS"Z"') || id, (array['agent', 'model', 'tool', 'parser'])[1 + n % 4],
    (array['chain', 'llm', 'tool', 'parser'])[1 + n % 4], started + (50 + n % 5000) * interval '1 ms',
    case when n % 97 = 0 then 'TimeoutError' end, case when n % 97 = 0 then convert_to('"TimeoutError: nothing came"', 'UTF8') end,
    array['bench', 'n' || n % 10], '{}',
    case when n % 4 = 1 then jsonb_build_object('input_tokens', 100 + n % 900, 'output_tokens', 10 + n % 90, 'total_tokens', 110 + n % 990,
      'total_cost', '0.00' || (100 + n % 900)::text) end,
    case when n % 4 = 1 then started + interval '20 ms' end,
    convert_to('{"messages":[{"role":"user","content":"' || words.a || words.b || words.c || '"}],"temperature":0.2}', 'UTF8'),
    convert_to('{"messages":[{"role":"assistant","content":"' || words.c || words.d || words.a || '"}]}', 'UTF8'),
    convert_to('{"metadata":{"env":"test","attempt":' || n % 5 || '},"runtime":{"library":"bench","platform":"linux","sdk":"' || words.b || '"}}', 'UTF8'),
    convert_to('[{"name":"start","time":"' || started || '"},{"name":"end"}]', 'UTF8'), 4095
  from runs cross join lateral (select
    md5('a' || n) || md5('b' || n) || md5('c' || n) as a, md5('d' || n) || ' what is it about? ' as b,
    md5('e' || n) || md5('f' || n) as c, md5('g' || n) || md5('h' || n) || md5('i' || n) as d) words`;
