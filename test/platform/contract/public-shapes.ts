// The shapes of the public contract, as JSON Schema: what existing clients read, and what they require.
import { listedEvents } from './listed-event.ts';

export type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const flag: Schema = { type: 'boolean' };
const uuid: Schema = { type: 'string', pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$' };
const time: Schema = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z$' };
const scope: Schema = { enum: ['organization', 'workspace'] };

function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

function listOf(items: Schema): Schema {
  return { type: 'array', items };
}

type Properties = Readonly<Record<string, Schema>>;

/** Clients may find more, and less of what is optional. */
function objectOf(required: Properties, optional: Properties = {}): Schema {
  return { type: 'object', properties: { ...required, ...optional }, required: Object.keys(required) };
}

const whole: Schema = { type: 'integer' };
const number: Schema = { type: 'number' };

const run = objectOf(
  {
    ...{ id: uuid, name: text, run_type: text, start_time: time, status: text, session_id: uuid },
    ...{ trace_id: uuid, dotted_order: text, app_path: text },
  },
  {
    ...{ end_time: orNull(time), parent_run_id: orNull(uuid), parent_run_ids: listOf(uuid) },
    ...{ child_run_ids: listOf(uuid), direct_child_run_ids: listOf(uuid), tags: listOf(text) },
    ...{ reference_example_id: orNull(uuid), first_token_time: orNull(time), trace_tier: text },
    ...{ total_tokens: orNull(whole), prompt_tokens: orNull(whole), completion_tokens: orNull(whole) },
    ...{ total_cost: orNull(text), prompt_cost: orNull(text), completion_cost: orNull(text) },
    ...{ feedback_stats: orNull({ type: 'object' }), s3_urls: orNull({ type: 'object' }) },
    ...{ inputs_preview: orNull(text), outputs_preview: orNull(text), in_dataset: flag },
  },
);

const keyMembers = [
  { id: uuid, short_key: text, description: text },
  {
    ...{ created_at: orNull(time), last_used_at: orNull(time), expires_at: orNull(time), read_only: flag },
    ...{ workspace_names: orNull(listOf(text)), default_workspace_name: orNull(text) },
    ...{ access_scope: scope, role_id: orNull(uuid), org_role_id: orNull(uuid) },
  },
] as const;

const workspaceMembers = [
  { id: uuid, created_at: time, display_name: text, is_personal: flag, is_deleted: flag },
  { organization_id: orNull(uuid), tenant_handle: orNull(text), data_plane_url: orNull(text) },
] as const;

const memberMembers = [
  { id: uuid, organization_id: uuid, created_at: time, user_id: uuid, ls_user_id: uuid, read_only: flag },
  {
    ...{ tenant_id: orNull(uuid), role_id: orNull(uuid), role_name: orNull(text), access_scope: scope },
    ...{ email: orNull(text), full_name: orNull(text), avatar_url: orNull(text), is_disabled: flag },
    ...{ display_name: orNull(text), linked_login_methods: listOf({ type: 'object' }) },
    ...{ org_role_id: orNull(uuid), org_role_name: orNull(text), tenant_ids: listOf(uuid) },
  },
] as const;

const infoMembers = [
  { config: { type: 'object' }, is_personal: flag },
  {
    ...{ id: orNull(uuid), display_name: orNull(text), permissions: listOf(text) },
    ...{ tier: orNull(text), reached_max_workspaces: flag },
  },
] as const;

const revisionConfig = objectOf(
  {},
  {
    ...{ repo_ref: orNull(text), langgraph_config_path: orNull(text), image_uri: orNull(text) },
    ...{ source_tarball_path: orNull(text), repo_commit_sha: orNull(text) },
  },
);
const source: Schema = {
  enum: ['github', 'external_docker', 'internal_docker', 'internal_source', 'internal_template'],
};
const deployment = objectOf(
  {
    ...{ name: text, source, source_revision_config: revisionConfig },
    source_config: objectOf(
      {},
      {
        ...{ integration_id: orNull(text), repo_url: orNull(text), build_on_push: orNull(flag) },
        ...{ deployment_type: orNull({ enum: ['dev_free', 'dev', 'prod'] }), custom_url: orNull(text) },
        ...{ resource_spec: orNull({ type: 'object' }), listener_id: orNull(uuid) },
        ...{ install_command: orNull(text), build_command: orNull(text) },
        listener_config: orNull(objectOf({}, { k8s_namespace: orNull(text) })),
      },
    ),
    secrets: listOf(objectOf({ name: text, value: { const: '' } })),
    ...{ id: uuid, tenant_id: uuid, created_at: time, updated_at: time },
    status: { enum: ['AWAITING_DATABASE', 'READY', 'UNUSED', 'AWAITING_DELETE', 'UNKNOWN'] },
    ...{ latest_revision_id: orNull(uuid), active_revision_id: orNull(uuid) },
  },
  {
    ...{ image_version: orNull(text), display_name: orNull(text) },
    secret_references: listOf(objectOf({ name: text, secret_name: text, secret_key: text })),
  },
);
const revision = objectOf({
  ...{ id: uuid, created_at: time, updated_at: time, source, source_revision_config: revisionConfig },
  status: { type: 'string', pattern: '^[A-Z_]+$' },
});
const member = objectOf(...memberMembers);
const key = objectOf(...keyMembers);
const listener = objectOf(
  {
    ...{ id: uuid, compute_type: { const: 'k8s' }, compute_id: text, created_at: time, updated_at: time },
    compute_config: objectOf({}, { k8s_namespaces: orNull(listOf(text)) }),
  },
  { version: orNull(text) },
);

const sandboxStatus: Schema = { enum: ['provisioning', 'ready', 'failed', 'stopped', 'deleting'] };
const sandbox = objectOf(
  { id: uuid, name: text, status: sandboxStatus, created_at: time, updated_at: time },
  {
    ...{ status_message: orNull(text), dataplane_url: orNull(text), snapshot_id: orNull(text) },
    ...{ size_class: orNull(text), vcpus: orNull(number), cpu_millicores: orNull({ type: 'integer' }) },
    ...{ mem_bytes: orNull({ type: 'integer' }), fs_capacity_bytes: orNull({ type: 'integer' }) },
    ...{ idle_ttl_seconds: { type: 'integer' }, delete_after_stop_seconds: { type: 'integer' } },
    ...{ labels: { type: 'object' }, proxy_config: orNull({ type: 'object' }), mount_config: orNull({}) },
    ...{ created_by: orNull(text), updated_by: orNull(text), stopped_at: orNull(time) },
  },
);

const sandboxSnapshot = objectOf(
  { id: uuid, name: text, status: { enum: ['building', 'ready', 'failed'] }, created_at: time },
  {
    ...{ status_message: orNull(text), docker_image: orNull(text), registry_id: orNull(text) },
    ...{ fs_capacity_bytes: orNull({ type: 'integer' }), updated_at: time, created_by: orNull(text) },
  },
);

export const publicShapes: Readonly<Record<string, Schema>> = {
  SandboxSnapshot: sandboxSnapshot,
  SandboxSnapshots: objectOf({ snapshots: listOf(sandboxSnapshot), offset: { type: 'integer' } }),
  TracingProject: objectOf(
    { id: uuid, tenant_id: uuid, start_time: time },
    {
      ...{ name: text, description: orNull(text), end_time: orNull(time), extra: orNull({ type: 'object' }) },
      ...{ default_dataset_id: orNull(uuid), reference_dataset_id: orNull(uuid) },
      ...{ trace_tier: orNull(text), last_run_start_time_live: orNull(time) },
    },
  ),
  Run: run,
  RunPage: objectOf({ runs: listOf(run), cursors: { type: 'object' } }),
  RunStats: objectOf({ run_count: whole, total_tokens: whole }, { latency_p50: orNull(number) }),
  ExportDestination: objectOf(
    {
      ...{ id: uuid, tenant_id: uuid, created_at: time, updated_at: time, destination_type: text },
      ...{ display_name: text, credentials_keys: listOf(text) },
      config: objectOf(
        { bucket_name: text, prefix: text, include_bucket_in_prefix: flag },
        { region: orNull(text), endpoint_url: orNull(text), config_kwargs_s3: orNull({ type: 'object' }) },
      ),
    },
    {},
  ),
  BulkExport: objectOf(
    {
      ...{ id: uuid, tenant_id: uuid, bulk_export_destination_id: uuid, session_id: uuid, status: text },
      ...{ start_time: time, created_at: time, updated_at: time, format: text, format_version: text },
      compression: text,
    },
    {
      ...{ end_time: orNull(time), filter: orNull(text), interval_hours: orNull(whole) },
      ...{ export_fields: orNull(listOf(text)), finished_at: orNull(time) },
      source_bulk_export_id: orNull(uuid),
    },
  ),
  BulkExportRun: objectOf(
    {
      ...{ id: uuid, bulk_export_id: uuid, status: text, retry_number: whole, start_time: time },
      ...{ end_time: time, created_at: time, updated_at: time, metadata: { type: 'object' } },
    },
    { errors: orNull({ type: 'object' }), finished_at: orNull(time) },
  ),
  Feedback: objectOf(
    { id: uuid, key: text, created_at: time, modified_at: time },
    {
      ...{ run_id: orNull(uuid), trace_id: orNull(uuid), session_id: orNull(uuid) },
      ...{ score: {}, value: {}, comment: orNull(text), correction: {} },
      feedback_source: orNull({ type: 'object' }),
    },
  ),
  anything: {},
  Organization: objectOf(
    {
      ...infoMembers[0],
      ...{ connected_to_stripe: flag, connected_to_metronome: flag, has_cancelled: flag },
    },
    infoMembers[1],
  ),
  OrganizationInfo: objectOf(...infoMembers),
  Role: objectOf(
    { id: uuid, name: text, display_name: text, description: text, permissions: listOf(text) },
    { organization_id: orNull(uuid), access_scope: orNull(scope) },
  ),
  Workspace: objectOf(...workspaceMembers),
  WorkspaceOfCaller: objectOf(workspaceMembers[0], {
    ...workspaceMembers[1],
    ...{ read_only: flag, role_id: orNull(uuid), role_name: orNull(text), permissions: orNull(listOf(text)) },
  }),
  OrganizationMember: member,
  WorkspaceMember: member,
  OrganizationMembers: objectOf({ organization_id: uuid, members: listOf(member), pending: listOf({}) }),
  WorkspaceMembers: objectOf({ tenant_id: uuid, members: listOf(member), pending: listOf({}) }),
  PendingMember: objectOf(
    { email: text, id: uuid, created_at: time },
    {
      ...{
        user_id: orNull(uuid),
        tenant_id: orNull(uuid),
        organization_id: orNull(uuid),
        role_id: orNull(uuid),
      },
      ...{ full_name: orNull(text), role_name: orNull(text), access_scope: scope, read_only: flag },
    },
  ),
  ApiKey: key,
  CreatedApiKey: objectOf({ ...keyMembers[0], key: text }, keyMembers[1]),
  AuditEvents: listedEvents,
  Listener: listener,
  Listeners: objectOf({ resources: listOf(listener), offset: { type: 'integer' } }),
  Deployment: deployment,
  Deployments: objectOf({ resources: listOf(deployment), offset: { type: 'integer' } }),
  DeletedDeployments: objectOf({ deleted: listOf(uuid), failed: listOf({ type: 'object' }) }),
  Revision: revision,
  Revisions: objectOf({ resources: listOf(revision), offset: { type: 'integer' } }),
  UploadUrl: objectOf({ upload_url: text, object_path: text }),
  PushToken: objectOf({ token: text, registry_url: text }),
  Logs: objectOf({
    logs: listOf(objectOf({ id: text, timestamp: text, level: text, message: text })),
    next_offset: orNull(text),
  }),
  WorkspaceSecret: objectOf({ key: text }),
  Sandbox: sandbox,
  SandboxList: objectOf({
    ...{ sandboxes: listOf(sandbox), offset: { type: 'integer' } },
    ...{ items: listOf(sandbox), next_cursor: orNull(text) },
  }),
  SandboxStatus: objectOf({ status: sandboxStatus, status_message: orNull(text) }),
  SandboxUsage: objectOf({ sandbox_count: { type: 'integer' }, sandbox_limit: { type: 'integer' } }),
  SandboxRecords: objectOf({ records: listOf({ type: 'object' }), next_cursor: orNull(text) }),
  SandboxServiceUrl: objectOf({ service_url: text, browser_url: text, token: text, expires_at: time }),
  SandboxServiceUrls: objectOf({
    service_urls: listOf(
      objectOf({ id: uuid, port: { type: 'integer' }, created_at: time, expires_at: time }),
    ),
  }),
  DeletedSandboxes: objectOf({
    deleted: listOf(text),
    skipped: listOf(objectOf({ name: text, reason: text })),
  }),
  SandboxError: objectOf({ detail: objectOf({ error: text, message: text }) }),
  Ok: objectOf({}),
  Info: objectOf(
    { version: text },
    {
      ...{ git_sha: orNull(text), license_expiration_time: orNull(time), customer_info: orNull({}) },
      ...{ batch_ingest_config: { type: 'object' }, instance_flags: { type: 'object' } },
    },
  ),
};
