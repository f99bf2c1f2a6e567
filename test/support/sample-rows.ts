// Sample rows for each migration: the contents of a database of an earlier version when it is migrated.
import type { Client } from '../../src/platform/store/database.ts';

const ORGANIZATION = '11111111-1111-4111-8111-111111111111';
const WORKSPACE = '22222222-2222-4222-8222-222222222222';
const USER = '33333333-3333-4333-8333-333333333333';
const ASSISTANT = '55555555-5555-4555-8555-555555555555';
const THREAD = '66666666-6666-4666-8666-666666666666';
const RUN = '77777777-7777-4777-8777-777777777777';
const RUNNER = '88888888-8888-4888-8888-888888888888';
const DEPLOYMENT = '99999999-9999-4999-8999-999999999999';
const REVISION = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';

/** By the id of the migration, in the schema of that version. Like migrations, they are never edited. */
const STATEMENTS: Readonly<Record<number, string>> = {
  1: `
    insert into organizations (id, display_name, plan) values ('${ORGANIZATION}', 'Acme', 'enterprise');
    insert into workspaces (id, organization_id, display_name) values ('${WORKSPACE}', '${ORGANIZATION}', 'Main');
    insert into users (id, email) values ('${USER}', 'ada@example.test');
    insert into organization_members (organization_id, user_id, role)
      values ('${ORGANIZATION}', '${USER}', 'ORGANIZATION_ADMIN');
    insert into workspace_members (organization_id, workspace_id, user_id, role)
      values ('${ORGANIZATION}', '${WORKSPACE}', '${USER}', 'WORKSPACE_ADMIN');
    insert into api_keys (kind, organization_id, role, short_key, hash, description)
      values ('service', '${ORGANIZATION}', 'ORGANIZATION_ADMIN', 'sk...1', '\\x01', 'first');
  `,
  2: `select audit_append('${ORGANIZATION}', 'create_workspace', '${WORKSPACE}', '{}')`,
  3: `
    insert into listeners (workspace_id, compute_type, compute_id, compute_config)
      values ('${WORKSPACE}', 'k8s', 'cluster', '{}')
  `,
  4: `
    insert into sandbox_tokens (workspace_id, sandbox, short_token, hash)
      values ('${WORKSPACE}', 'box', 'sp_sb_...1', '\\x02')
  `,
  5: `select audit_settle('${ORGANIZATION}', now())`,
  6: `
    insert into api_keys (kind, organization_id, role, short_key, hash, description, created_by_key_id)
      select 'service', organization_id, role, 'sk...2', '\\x03', 'second', id from api_keys where short_key = 'sk...1'
  `,
  7: `
    insert into vault_master_keys (id) values ('0123456789abcdef');
    insert into vault_keys (workspace_id, organization_id, master_key_id, wrapped)
      values ('${WORKSPACE}', '${ORGANIZATION}', '0123456789abcdef', '\\x04')
  `,
  8: `select audit_append_with_id('${ORGANIZATION}', 'create_workspace', '${WORKSPACE}', '{}', gen_random_uuid())`,
  9: `update api_keys set home_workspace_id = '${WORKSPACE}' where short_key = 'sk...2'`,
  10: `
    insert into sessions (api_key_id, hash, expires_at)
      select id, '\\x05', now() from api_keys where short_key = 'sk...2'
  `,
  11: `select audit_append('${ORGANIZATION}', 'update_workspace', '${WORKSPACE}', '{}')`,
  12: `
    insert into workspace_secrets (workspace_id, key, version, sealed)
      values ('${WORKSPACE}', 'TOKEN', nextval('workspace_secret_versions'), '\\x06')
  `,
  13: `
    insert into proxy_profiles (workspace_id, name, shown, sealed)
      values ('${WORKSPACE}', 'shared', '{}', '\\x07')
  `,
  14: `
    insert into boxes (workspace_id, name, has_generated_name, status, desired, desired_reason, idle_ttl_seconds,
        delete_after_stop_seconds, labels, sealed_token)
      values ('${WORKSPACE}', 'box', false, 'ready', 'running', 'created', 0, 0, '{}', '\\x08');
    insert into box_transitions (workspace_id, box_id, from_status, to_status, reason)
      select workspace_id, id, 'new', 'provisioning', 'created' from boxes;
    insert into box_machines (id) values (gen_random_uuid());
  `,
  15: `update boxes set runtime = 'attached'; update box_machines set runtime = 'attached', holds_storage = false`,
  16: `
    update boxes set profile_problem = '[{"loc": ["body"], "msg": "x", "type": "value_error"}]';
    update box_machines set lost_at = now();
  `,
  17: `
    insert into snapshots (workspace_id, name, status) values ('${WORKSPACE}', 'tools', 'ready');
    update boxes set snapshot_id = snapshots.id from snapshots
  `,
  18: `update box_machines set gateway_url = 'http://127.0.0.1:8081'`,
  19: `
    insert into box_service_tokens (workspace_id, box_id, port, hash, api_key_id, created_by, expires_at)
      select b.workspace_id, b.id, 80, '\\x09', k.id, k.id, now() + interval '1 hour'
      from boxes b, api_keys k where k.short_key = 'sk...2'
  `,
  20: `update boxes set asks_capacity = true, fs_capacity_bytes = 67108864`,
  21: `
    insert into agent_assistants (assistant_id, graph_id, name) values ('${ASSISTANT}', 'agent', 'agent');
    insert into agent_assistant_versions (assistant_id, version, graph_id, name, config, context, metadata)
      values ('${ASSISTANT}', 1, 'agent', 'agent', '{}', '{}', '{}');
    insert into agent_threads (thread_id) values ('${THREAD}');
    insert into agent_runs (run_id, thread_id, assistant_id, assistant_version, graph_id, kwargs, multitask_strategy)
      values ('${RUN}', '${THREAD}', '${ASSISTANT}', 1, 'agent', '{}', 'enqueue');
    insert into agent_run_users (run_id, sealed) values ('${RUN}', '\\x05');
    insert into agent_run_events (run_id, id, event, data) values ('${RUN}', 0, 'metadata', '{}');
    insert into agent_run_results (run_id, thread_id, status, metadata) values ('${RUN}', '${THREAD}', 'success', '{}');
    insert into agent_checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata_type, metadata)
      values ('${THREAD}', '', '1', 'json', '\\x06', 'json', '\\x07');
    insert into agent_checkpoint_values (thread_id, checkpoint_ns, channel, version, type, value)
      values ('${THREAD}', '', 'messages', '1', 'json', '\\x08');
    insert into agent_checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
      values ('${THREAD}', '', '1', 'task', 0, 'messages', 'json', '\\x09')
  `,
  22: `
    insert into runners (id, machine_id, host, pid) values ('${RUNNER}', 'machine', 'host', 1);
    insert into deployments (id, workspace_id, name, source, source_config, source_revision_config, status, secrets_version,
        latest_revision_id, active_revision_id, runner_id, proxy_profile_id)
      select '${DEPLOYMENT}', '${WORKSPACE}', 'app', 'internal_source', '{}', '{"langgraph_config_path": "langgraph.json"}',
        'READY', 1, '${REVISION}', '${REVISION}', '${RUNNER}', id from proxy_profiles;
    insert into builds (workspace_id, deployment_id, runner_id, machine_id, source_path, directory, size_bytes, ready_at)
      values ('${WORKSPACE}', '${DEPLOYMENT}', '${RUNNER}', 'machine', 'source', '/build', 1, now());
    insert into revisions (id, workspace_id, deployment_id, number, status, source, source_config, source_revision_config,
        secrets_version, build_id)
      select '${REVISION}', workspace_id, deployment_id, 1, 'DEPLOYED', 'internal_source', '{}', '{}', 1, id from builds;
    insert into revision_moves (workspace_id, revision_id, from_status, to_status, actor)
      values ('${WORKSPACE}', '${REVISION}', 'DEPLOYING', 'DEPLOYED', 'system');
    insert into deployment_secrets (workspace_id, deployment_id, version, name, sealed_version, sealed)
      values ('${WORKSPACE}', '${DEPLOYMENT}', 1, 'TOKEN', 1, '\\x0a');
    insert into deployment_databases (deployment_id, workspace_id, database_name, role_name, sealed_password, sealed_master_key)
      values ('${DEPLOYMENT}', '${WORKSPACE}', 'sallyport_d_1', 'sallyport_d_1', '\\x0b', '\\x0c');
    insert into deployment_uploads (workspace_id, deployment_id, object_path, stored_path, token_hash, state, expires_at)
      values ('${WORKSPACE}', '${DEPLOYMENT}', 'upload', 'source', '\\x0d', 'used', now());
    insert into deployment_logs (workspace_id, deployment_id, revision_id, kind, at, level, message)
      values ('${WORKSPACE}', '${DEPLOYMENT}', '${REVISION}', 'build', now(), 'INFO', 'built');
    insert into deployment_log_sizes (workspace_id, deployment_id, bytes) values ('${WORKSPACE}', '${DEPLOYMENT}', 155);
  `,
  23: `insert into runner_databases (name, deployment_id) values ('sallyport_d_1', '${DEPLOYMENT}')`,
  24: `update agent_runs set attempt = 1`,
  25: `
    insert into trace_projects (workspace_id, name, extra) values ('${WORKSPACE}', 'default', '{}');
    insert into trace_run_places (workspace_id, id, session_id, start_time, session_rank, start_rank)
      select workspace_id, '${RUN}', id, now(), 2, 2 from trace_projects;
    insert into trace_feedback (workspace_id, run_id, key, score) values ('${WORKSPACE}', '${RUN}', 'correct', 1);
    insert into trace_attachments (workspace_id, run_id, name, mime_type, size, object)
      values ('${WORKSPACE}', '${RUN}', 'image', 'image/png', 1, 'object');
    insert into trace_projects (workspace_id, name) values ('${WORKSPACE}', 'gone');
    delete from trace_projects where name = 'gone';
  `,
  26: `update trace_feedback set score = 0.5`,
  27: `insert into trace_tokens (deployment_id, workspace_id, hash) values ('${DEPLOYMENT}', '${WORKSPACE}', '\\x0e')`,
  28: `insert into trace_project_spans (workspace_id, session_id, first_start_time, last_start_time)
    select workspace_id, id, now(), now() from trace_projects where name = 'default'
    on conflict (workspace_id, session_id) do nothing`,
  29: `
    insert into export_destinations (id, workspace_id, display_name, config, credentials_keys, credentials_version)
      values ('00000000-0000-4000-8000-0000000000e1', '${WORKSPACE}', 'bucket', '{}', '{access_key_id}', 1);
    insert into export_credentials (destination_id, workspace_id, version, sealed)
      values ('00000000-0000-4000-8000-0000000000e1', '${WORKSPACE}', 1, '\\x0f');
  `,
  30: `
    insert into exports (id, workspace_id, destination_id, session_id, status, start_time, end_time, format_version,
        compression, created_at, updated_at)
      select '00000000-0000-4000-8000-0000000000e2', '${WORKSPACE}', '00000000-0000-4000-8000-0000000000e1', id, 'CREATED',
        '2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:00.000000Z', 'v1', 'gzip', now(), now()
      from trace_projects where name = 'default';
    insert into export_runs (id, workspace_id, export_id, destination_id, status, window_start, window_end, due_at,
        created_at, updated_at)
      values ('00000000-0000-4000-8000-0000000000e3', '${WORKSPACE}', '00000000-0000-4000-8000-0000000000e2',
        '00000000-0000-4000-8000-0000000000e1', 'CREATED', '2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:00.000000Z',
        now(), now(), now());
  `,
  31: `insert into export_removals (workspace_id) values ('00000000-0000-4000-8000-0000000000e4')`,
};

export type RowCount = { readonly table: string; readonly count: number };

/** Returns the number of rows in each table. Throws when a migration has no sample rows. */
export async function insertSampleRows(client: Client, steps: number): Promise<readonly RowCount[]> {
  for (let id = 1; id <= steps; id += 1) {
    const statement = STATEMENTS[id];
    if (statement === undefined) throw new Error(`migration ${id} has no sample rows`);
    await client.query(statement);
  }
  const { rows: tables } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'schema_migrations'`,
  );
  const counts: RowCount[] = [];
  for (const { name } of tables) {
    const { rowCount } = await client.query(`select from ${name}`);
    counts.push({ table: name, count: rowCount ?? 0 });
  }
  return counts;
}
