// Creates a real value for every parameter of a path, and for every id in a body or a query, in a given tenant. A name that
// is not in these tables fails the tests: a new route must add its ids here.
import { randomBytes, randomUUID } from 'node:crypto';
import { mintKey } from '../../../src/platform/identity/api-key.ts';
import { parseDocument } from '../../../src/platform/proxy-documents/parsed-document.ts';
import { sealDocument } from '../../../src/platform/proxy-documents/sealed-document.ts';
import { placeOfProfile } from '../../../src/platform/proxy-profiles/contract.ts';
import { mergeRuns, partOf } from '../traces/store/trace-scene.ts';
import { destinationConfig } from '../../../src/platform/bulk-export/destinations/destination-schema.ts';
import { createExport } from '../../../src/platform/bulk-export/exports/export-creation.ts';
import { createExportSchema } from '../../../src/platform/bulk-export/exports/export-schema.ts';
import { databaseClock } from '../../../src/platform/bulk-export/scheduling/clock.ts';
import { createDestination } from '../../../src/platform/bulk-export/destinations/destinations.ts';
import { Secret } from '../../../src/base/secret.ts';
import type { PlatformApi } from '../../support/platform-api.ts';
import type { Operation } from './document.ts';
import { idPlacesOf, withIdAt } from './id-places.ts';
import type { JsonSchema } from './json-schema.ts';

/** A workspace, its organization, and callers with all permissions there. */
export type Tenant = {
  readonly organizationId: string;
  readonly workspaceId: string;
  /** An administrator of the organization who is a user. */
  readonly admin: { readonly userId: string; readonly key: string };
  /** A service key with the same permissions. */
  readonly organizationKey: string;
  /** Bound to the workspace, and an administrator there. */
  readonly workspaceKey: string;
  /** Of a user without administrative permissions in the organization who is an administrator of the workspace. */
  readonly memberKey: string;
};

export type PathValues = Readonly<Record<string, string>>;
export type Scene = { readonly api: PlatformApi; readonly tenant: Tenant };

export type Fixture = {
  /** The prefix of the path; the first match is used. */
  readonly under: string;
  /** All when absent. */
  readonly method?: string;
  /** `isFree`: clients choose the value, it is not the id of a stored resource. */
  readonly isFree?: true;
  make(scene: Scene, before: PathValues): Promise<string>;
};

const tables: Readonly<Record<string, readonly Fixture[]>> = {
  workspace_id: [{ under: '/', make: async ({ api, tenant }) => api.addWorkspace(tenant.organizationId) }],
  listener_id: [{ under: '/v2/listeners/', make: addListener }],
  sandbox: [{ under: '/', isFree: true, make: async () => `sandbox-${randomBytes(6).toString('hex')}` }],
  token_id: [{ under: '/v1/sandboxes/', make: addSandboxToken }],
  profile_id: [{ under: '/v1/proxy-profiles/', make: addProxyProfile }],
  name: [{ under: '/v2/sandboxes/boxes/', make: addBox }],
  snapshot_id: [{ under: '/v2/sandboxes/', make: addSnapshot }],
  service_url_id: [{ under: '/v2/sandboxes/boxes/', make: addServiceToken }],
  deployment_id: [
    {
      under: '/v2/deployments/{deployment_id}/push-token',
      make: (scene) => addDeployment(scene, 'internal_docker'),
    },
    { under: '/v2/deployments/', make: (scene) => addDeployment(scene) },
  ],
  project_id: [{ under: '/v1/projects/', make: (scene) => addDeployment(scene) }],
  revision_id: [
    { under: '/v2/deployments/', make: (scene, { deployment_id }) => addRevision(scene, deployment_id) },
    { under: '/v1/projects/', make: (scene, { project_id }) => addRevision(scene, project_id) },
  ],
  session_id: [
    { under: '/api/v1/sessions/', make: addProject },
    { under: '/traces/', make: addProject },
  ],
  trace_id: [{ under: '/traces/', make: addRun }],
  field: [{ under: '/traces/runs/', isFree: true, make: async () => 'inputs' }],
  run_id: [
    { under: '/api/v1/runs/', method: 'GET', make: addRun },
    { under: '/traces/runs/', make: addRun },
    // Clients choose it, and may send what follows a run before the run.
    { under: '/api/v1/runs/', isFree: true, make: async () => randomUUID() },
  ],
  feedback_id: [{ under: '/api/v1/feedback/', make: addFeedback }],
  destination_id: [{ under: '/api/v1/bulk-exports/', make: addDestination }],
  bulk_export_id: [
    { under: '/api/v1/bulk-exports/', make: addExport },
    { under: '/exports/', make: addExport },
  ],
  export_run_id: [
    {
      under: '/api/v1/bulk-exports/',
      make: (scene, { bulk_export_id: id }) => findExportRun(scene, id),
    },
  ],
  // There are none: each is as unknown as any other.
  registry_id: [{ under: '/v2/sandboxes/', isFree: true, make: async () => randomUUID() }],
  pat_id: [
    {
      under: '/api/v1/api-key/current/',
      make: async (scene) => addKey(scene, { user_id: scene.tenant.admin.userId }),
    },
    {
      under: '/api/v1/orgs/current/personal-access-tokens/',
      make: async (scene) => addKey(scene, { user_id: (await addMember(scene)).userId }),
    },
  ],
  api_key_id: [
    {
      under: '/api/v1/api-key/',
      make: async (scene) =>
        addKey(scene, { workspace_id: scene.tenant.workspaceId, role: 'WORKSPACE_VIEWER' }),
    },
    {
      under: '/api/v1/orgs/current/service-keys/',
      make: async (scene) => addKey(scene, { role: 'ORGANIZATION_VIEWER' }),
    },
  ],
  identity_id: [
    { under: '/api/v1/orgs/current/members/', make: async (scene) => (await addMember(scene)).memberId },
    { under: '/api/v1/workspaces/current/members/', make: addWorkspaceMember },
  ],
};

/** By name. */
const inBodies: Readonly<Record<string, Omit<Fixture, 'under'>>> = {
  user_id: { make: async (scene) => (await addMember(scene)).userId },
  user_ids: { make: async (scene) => (await addMember(scene)).userId },
  workspace_id: { make: async ({ tenant }) => tenant.workspaceId },
  workspaces: { make: async ({ tenant }) => tenant.workspaceId },
  default_workspace_id: { make: async ({ tenant }) => tenant.workspaceId },
  listener_id: { make: addListener },
  source: { isFree: true, make: async () => randomUUID() },
  proxy_profile_id: { make: findSharedProfile },
  deployment_ids: { make: (scene) => addDeployment(scene) },
  snapshot_id: { isFree: true, make: async () => '' },
  id: { make: addProject },
  session_ids: { make: addProject },
  session: { make: addProject },
  session_id: { make: addProject },
  bulk_export_destination_id: { make: addDestination },
  source_bulk_export_id: { make: addExport },
};

/** The role with the fewest permissions, so that no caller is rejected for escalation. */
const fixed: Readonly<Record<string, (schema: JsonSchema, given: unknown) => unknown>> = {
  role: lastOf,
  role_id: lastOf,
  org_role_id: lastOf,
  // Feedback must name what it is about.
  run_id: () => randomUUID(),
  // Unique in a workspace.
  compute_id: () => randomUUID(),
  // Unique among all workspaces.
  tenant_handle: () => `h-${randomUUID()}`,
  // Unique among the workspaces of an organization; short names come twice in a run.
  display_name: (_, given) => (typeof given === 'string' ? uniqueName(given) : given),
  // Unique among the proxy profiles of a workspace, and among its boxes.
  name: (schema, given) => {
    if (isUnchanged(schema)) return null;
    const { maxLength = 0 } = schema;
    return typeof given === 'string' && maxLength >= 100
      ? uniqueName(given)
      : given && `box-${randomUUID().slice(0, 13)}`;
  },
  // Of deployments, whose fields depend on each other.
  source: (schema, given) => {
    if (isUnchanged(schema)) return null;
    return schema.enum === undefined ? given : 'internal_source';
  },
  source_config: () => ({
    deployment_type: null,
    install_command: 'npm ci && true',
    resource_spec: { cpu: 0.5 },
  }),
  source_revision_config: () => ({ langgraph_config_path: 'agent/langgraph.json' }),
  secrets: () => [{ name: 'TOKEN', value: 'a value' }],
  secret_references: () => [],
  revision_source: () => null,
  // Within the quotas, whatever the number of boxes.
  ...{ vcpus: () => 1, cpu_millicores: () => 100, mem_bytes: () => 1024, fs_capacity_bytes: () => 1024 },
  // Multiples of 60.
  ...{ idle_ttl_seconds: () => 60, delete_after_stop_seconds: () => 3_600 },
  ...{ snapshot_id: () => null, snapshot_name: () => null, snapshot: () => null },
  // Images are 400.
  ...{ directory: () => '/srv/snapshots/tools', docker_image: () => null, registry_id: () => null },
  // Of queries of runs.
  ...{ filter: () => 'eq(name, "a")', trace_filter: () => null, tree_filter: () => 'search("a")' },
  ...{ search_filter: () => null, cursor: () => null },
  // Of an export, whose window has an end, and whose project is named.
  start_time: ({ description }, given) => (description === EXPORT_START ? '2026-01-01T00:00:00Z' : given),
  end_time: ({ description }, given) => (description === EXPORT_END ? '2026-01-02T12:00:00Z' : given),
  interval_hours: () => null,
  export_fields: () => ['id', 'name'],
  // Of a destination, whose endpoint must exist.
  config: (schema, given) => (schema.properties?.['bucket_name'] === undefined ? given : givenConfig()),
  // Not those of the installation.
  credentials: () => ({ access_key_id: 'AKIAEXAMPLE', secret_access_key: randomUUID() }),
  proxy_config: () => ({
    rules: [
      {
        match_hosts: ['api.example.com'],
        headers: [{ name: 'X-Api-Key', type: 'opaque', value: randomUUID() }],
      },
    ],
  }),
};

/** A field that can be repeated, and not changed. */
function isUnchanged({ anyOf = [] }: JsonSchema): boolean {
  return anyOf.some(({ maxLength }) => maxLength === 1_024);
}

function uniqueName(given: string): string {
  return `${[...given].slice(0, 40).join('')}-${randomUUID()}`;
}

function lastOf({ enum: roles, anyOf = [] }: JsonSchema): unknown {
  return (roles ?? anyOf.find((one) => one.enum !== undefined)?.enum ?? []).at(-1);
}

/** A real value in the tenant for each parameter of the path. */
export async function fillPath({ path, method }: Operation, scene: Scene): Promise<PathValues> {
  let values: PathValues = {};
  for (const name of namesIn(path))
    values = { ...values, [name]: await fixtureOf({ path, method }, name).make(scene, values) };
  return values;
}

/** Real values for the ids of the query that must be there. */
export async function fillQuery(
  { parameters }: Operation,
  scene: Scene,
): Promise<Readonly<Record<string, unknown>>> {
  const wanted = parameters.filter((one) => one.in === 'query' && one.isRequired);
  const ids = wanted.flatMap(({ name, schema }) => idPlacesOf(schema, [name]));
  const pairs = ids.map(async ({ path, name }) => {
    const id = await bodyFixtureOf(name).make(scene, {});
    return [name, path.length > 1 ? [id] : id] as const;
  });
  return Object.fromEntries(await Promise.all(pairs));
}

export type RouteFixtures = {
  /** Of an S3 service, for the destinations of bulk exports. */
  readonly s3?: string;
  /** By the name of a parameter. */
  readonly inPaths?: Readonly<Record<string, Omit<Fixture, 'under'>>>;
  readonly inBodies?: Readonly<Record<string, Omit<Fixture, 'under'>>>;
};

/** Those of the routes that a test brings, until it is disposed of. */
export function addFixtures({ inPaths = {}, inBodies: bodies = {}, ...more }: RouteFixtures): Disposable {
  const added: RouteFixtures = { inPaths, inBodies: bodies, ...more };
  brought.add(added);
  return { [Symbol.dispose]: () => void brought.delete(added) };
}

const brought = new Set<RouteFixtures>();

function findBrought(part: 'inPaths' | 'inBodies', name: string): Fixture | undefined {
  for (const fixtures of brought) {
    const found = fixtures[part]?.[name];
    if (found !== undefined) return { under: '/', ...found };
  }
  return undefined;
}

export function fixtureOf({ path, method }: Pick<Operation, 'path' | 'method'>, name: string): Fixture {
  const found =
    findBrought('inPaths', name) ??
    tables[name]?.find((one) => path.startsWith(one.under) && (one.method ?? method) === method);
  if (found !== undefined) return found;
  throw new Error(`{${name}} of ${path} has no fixture: add it to test/platform/every-route/fixtures.ts`);
}

export function bodyFixtureOf(name: string): Omit<Fixture, 'under'> {
  const found = findBrought('inBodies', name) ?? inBodies[name];
  if (found !== undefined) return found;
  throw new Error(
    `the id ${name} of a body or query has no fixture: add it to test/platform/every-route/fixtures.ts`,
  );
}

/** `value` with real ids, and with roles that every caller can assign. */
export async function withFixtures(schema: JsonSchema, value: unknown, scene: Scene): Promise<unknown> {
  if (Array.isArray(value)) return value.map(withOwnKey);
  if (typeof value !== 'object' || value === null) return value;
  let filled: Record<string, unknown> = { ...value };
  for (const { path, name } of idPlacesOf(schema))
    filled = withIdAt(filled, path, await bodyFixtureOf(name).make(scene, {})) as Record<string, unknown>;
  for (const [name, own] of Object.entries(schema.properties ?? {}))
    if (Object.hasOwn(fixed, name)) filled[name] = fixed[name]?.(own, filled[name]);
  return filled;
}

/** The keys of the members of a list differ, which no schema says. */
function withOwnKey(member: unknown, at: number): unknown {
  if (typeof member !== 'object' || member === null || !('key' in member)) return member;
  return { ...member, key: `${String(member.key).slice(0, 100)}_${at}` };
}

export function namesIn(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

export function toPath(path: string, values: PathValues): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''));
}

function givenConfig(): object {
  const [endpoint] = [...brought].flatMap(({ s3 = [] }) => s3);
  return { bucket_name: 'traces', prefix: 'exports', endpoint_url: endpoint };
}

async function addDestination({ api, tenant }: Scene): Promise<string> {
  const workspaceId = tenant.workspaceId;
  const secret = new Secret('a secret of a destination');
  await api.vault.prepare();
  return api.database.owner.write(async (trx) => {
    const write = { vault: api.vault, trx, workspaceId };
    const config = destinationConfig.parse(givenConfig());
    const credentials = { access_key_id: 'AKIAEXAMPLE', secret_access_key: secret };
    return (await createDestination(write, { display_name: 'bucket', config, credentials })).id;
  });
}

const EXPORT_START = 'Runs that start then or later';
const EXPORT_END = 'Runs that start before; absent with interval_hours';

async function addExport(scene: Scene): Promise<string> {
  const { api, tenant } = scene;
  const given = createExportSchema('gzip').parse({
    ...{ bulk_export_destination_id: await addDestination(scene), session_id: await addProject(scene) },
    ...{ start_time: '2026-01-01T00:00:00Z', end_time: '2026-01-03T00:00:00Z' },
  });
  const quotas = { creationsPerHour: 100_000, schedules: 100_000 };
  const { id } = await api.database.owner.write((trx) =>
    createExport({ trx, workspaceId: tenant.workspaceId, clock: databaseClock, quotas }, given),
  );
  return id;
}

async function findExportRun({ api }: Scene, exportId = ''): Promise<string> {
  const runs = api.database.owner.db.selectFrom('export_runs').select('id');
  return idOf(await runs.where('export_id', '=', exportId).limit(1).execute());
}

async function addListener({ api, tenant }: Scene): Promise<string> {
  const row = {
    workspace_id: tenant.workspaceId,
    compute_type: 'k8s' as const,
    compute_id: randomUUID(),
    compute_config: JSON.stringify({ k8s_namespaces: ['default'] }),
    version: '1',
  };
  return idOf(await api.database.owner.db.insertInto('listeners').values(row).returning('id').execute());
}

async function addSandboxToken({ api, tenant }: Scene, { sandbox = '' }: PathValues): Promise<string> {
  const row = {
    workspace_id: tenant.workspaceId,
    sandbox,
    short_token: 'sp_sb_…',
    hash: randomBytes(32),
    expires_at: null,
  };
  return idOf(await api.database.owner.db.insertInto('sandbox_tokens').values(row).returning('id').execute());
}

async function addProxyProfile({ api, tenant }: Scene): Promise<string> {
  const { workspaceId } = tenant;
  const id = randomUUID();
  const document = parseDocument({ no_proxy: ['example.com'] }, { allowsPrivateCallbacks: true });
  await api.vault.prepare();
  await api.database.owner.write(async (trx) => {
    const sealed = await sealDocument(
      { vault: api.vault, trx },
      placeOfProfile(workspaceId, id, 1),
      document,
    );
    const row = { id, workspace_id: workspaceId, name: `profile ${id}`, version: 1, shown: '{}', sealed };
    await trx.insertInto('proxy_profiles').values(row).execute();
  });
  return id;
}

/** One for all bodies of a workspace, which may have no more than a hundred. */
async function findSharedProfile(scene: Scene): Promise<string> {
  const { db } = scene.api.database.owner;
  const { workspaceId } = scene.tenant;
  const known = db.selectFrom('proxy_profiles').select('id').where('workspace_id', '=', workspaceId);
  const found = await known.where('name', '=', SHARED_PROFILE).executeTakeFirst();
  if (found !== undefined) return found.id;
  const id = await addProxyProfile(scene);
  await db.updateTable('proxy_profiles').set({ name: SHARED_PROFILE }).where('id', '=', id).execute();
  return id;
}

const SHARED_PROFILE = 'shared by the bodies of these tests';

async function addServiceToken(scene: Scene, { name: box_id = '' }: PathValues): Promise<string> {
  const { api, tenant } = scene;
  const created_by = await addKey(scene, { user_id: tenant.admin.userId });
  const row = {
    ...{ workspace_id: tenant.workspaceId, box_id, port: 8000, hash: randomBytes(32) },
    ...{ code_hash: null, cookie_hash: null, api_key_id: created_by, session_id: null, created_by },
    expires_at: new Date(Date.now() + 3_600_000),
  };
  const insert = api.database.owner.db.insertInto('box_service_tokens').values(row).returning('id');
  return idOf(await insert.execute());
}

/** On a machine with a gateway. */
async function addBox({ api, tenant }: Scene): Promise<string> {
  const machine_id = randomUUID();
  const machine = { id: machine_id, gateway_url: 'http://127.0.0.1:8081' };
  await api.database.owner.db.insertInto('box_machines').values(machine).execute();
  const row = {
    machine_id,
    ...{ workspace_id: tenant.workspaceId, name: `box-${randomUUID()}`, has_generated_name: true },
    ...({ status: 'ready', desired: 'running', desired_reason: 'created', labels: '{}' } as const),
    ...{ idle_ttl_seconds: 0, delete_after_stop_seconds: 0, sealed_token: randomBytes(60) },
  };
  return idOf(await api.database.owner.db.insertInto('boxes').values(row).returning('id').execute());
}

async function addSnapshot({ api, tenant }: Scene): Promise<string> {
  const row = {
    workspace_id: tenant.workspaceId,
    name: `snapshot-${randomUUID()}`,
    status: 'ready',
  } as const;
  return idOf(await api.database.owner.db.insertInto('snapshots').values(row).returning('id').execute());
}

async function addDeployment(
  { api, tenant }: Scene,
  source: 'internal_source' | 'internal_docker' = 'internal_source',
): Promise<string> {
  const row = {
    ...{ workspace_id: tenant.workspaceId, name: `deployment-${randomUUID()}`, source },
    ...{ source_config: '{}', source_revision_config: '{}', secret_references: '[]' },
    status: 'READY' as const,
  };
  return idOf(await api.database.owner.db.insertInto('deployments').values(row).returning('id').execute());
}

/** With a build that is kept. */
async function addRevision({ api, tenant }: Scene, deployment_id = ''): Promise<string> {
  const { db } = api.database.owner;
  const scope = { workspace_id: tenant.workspaceId, deployment_id };
  const build = {
    ...scope,
    machine_id: 'machine',
    source_path: 'source',
    directory: '/b',
    ready_at: new Date(),
  };
  const build_id = idOf(await db.insertInto('builds').values(build).returning('id').execute());
  const row = {
    ...{ ...scope, number: 1, secrets_version: 0, build_id },
    ...({ source: 'internal_source', status: 'DEPLOYED' } as const),
    ...{ source_config: '{}', source_revision_config: '{}' },
  };
  return idOf(await db.insertInto('revisions').values(row).returning('id').execute());
}

async function addRun(scene: Scene): Promise<string> {
  const { api, tenant } = scene;
  const project = { rank: 2, id: await addProject(scene) };
  const part = partOf({ project, values: { inputs_json: Buffer.from('{}') } });
  await mergeRuns(api.database.store, tenant.workspaceId, [part]);
  return part.id;
}

async function addMember({
  api,
  tenant,
}: Scene): Promise<{ readonly memberId: string; readonly userId: string }> {
  const userId = await api.addUser();
  const row = {
    organization_id: tenant.organizationId,
    user_id: userId,
    role: 'ORGANIZATION_VIEWER',
    full_name: null,
  };
  const rows = await api.database.owner.db
    .insertInto('organization_members')
    .values(row)
    .returning('id')
    .execute();
  return { memberId: idOf(rows), userId };
}

async function addWorkspaceMember(scene: Scene): Promise<string> {
  const { organizationId: organization_id, workspaceId: workspace_id } = scene.tenant;
  const { userId: user_id } = await addMember(scene);
  const row = { organization_id, workspace_id, user_id, role: 'WORKSPACE_VIEWER' };
  return idOf(
    await scene.api.database.owner.db.insertInto('workspace_members').values(row).returning('id').execute(),
  );
}

async function addKey(
  { api, tenant }: Scene,
  of: { readonly workspace_id?: string; readonly user_id?: string; readonly role?: string },
): Promise<string> {
  const kind: 'service' | 'personal' = of.user_id === undefined ? 'service' : 'personal';
  const { hash, shortKey } = mintKey(kind);
  const row = {
    ...{ workspace_id: null, user_id: null, role: null, expires_at: null, last_used_at: null },
    ...{ kind, hash, short_key: shortKey, description: 'a fixture', organization_id: tenant.organizationId },
    ...of,
  } as const;
  return idOf(await api.database.owner.db.insertInto('api_keys').values(row).returning('id').execute());
}

function idOf(rows: readonly { readonly id: string }[]): string {
  const [row] = rows;
  if (row === undefined) throw new Error('nothing was inserted');
  return row.id;
}

/** Inserts a tenant directly into the tables; without `inOrganization`, with a new organization. */
export async function createTenant(api: PlatformApi, inOrganization?: string): Promise<Tenant> {
  const organizationId = inOrganization ?? (await api.addOrganization());
  const workspaceId = await api.addWorkspace(organizationId);
  const key = await api.addMemberKey(organizationId, 'ORGANIZATION_ADMIN');
  return {
    organizationId,
    workspaceId,
    admin: { key, userId: await newestMember(api, organizationId) },
    organizationKey: await api.addServiceKey(organizationId, 'ORGANIZATION_ADMIN'),
    workspaceKey: await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId),
    memberKey: await api.addMemberKey(organizationId, 'ORGANIZATION_USER', {
      id: workspaceId,
      role: 'WORKSPACE_ADMIN',
    }),
  };
}

export async function newestMember({ database }: PlatformApi, organizationId: string): Promise<string> {
  const { user_id } = await database.owner.db
    .selectFrom('organization_members')
    .select('user_id')
    .where('organization_id', '=', organizationId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
  return user_id;
}

async function addProject({ api, tenant }: Scene): Promise<string> {
  const row = {
    workspace_id: tenant.workspaceId,
    id: randomUUID(),
    name: `project ${randomUUID()}`,
    extra: '{}',
  };
  return idOf(await api.database.owner.db.insertInto('trace_projects').values(row).returning('id').execute());
}

async function addFeedback({ api, tenant }: Scene): Promise<string> {
  const row = { workspace_id: tenant.workspaceId, id: randomUUID(), run_id: randomUUID(), key: 'correct' };
  return idOf(await api.database.owner.db.insertInto('trace_feedback').values(row).returning('id').execute());
}
