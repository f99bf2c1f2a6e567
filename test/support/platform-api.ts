// The whole API of the platform in this process, on a database of its own, without a socket. Organizations, workspaces and
// keys are inserted directly into the tables, so that the test of a route depends on no other route.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createLog } from '../../src/base/log.ts';
import { type Admission, createAdmission } from '../../src/platform/api/shares/admission.ts';
import type { Api, ApiRequest } from '../../src/platform/api/api-request.ts';
import { defaultLimits, type ServerLimits } from '../../src/platform/api/limits.ts';
import { withDocuments } from '../../src/platform/api/openapi/documents.ts';
import { createApi } from '../../src/platform/api/pipeline.ts';
import type { Route } from '../../src/platform/api/route.ts';
import { mintKey } from '../../src/platform/identity/api-key.ts';
import { type Authenticator, createAuthenticator } from '../../src/platform/identity/authentication.ts';
import type { OrganizationRole, WorkspaceRole } from '../../src/platform/identity/permission.ts';
import type { Module } from '../../src/platform/module.ts';
import { readAllMigrations } from '../../src/platform/migrations.ts';
import { createRoutes, modules } from '../../src/platform/modules.ts';
import { migrate } from '../../src/platform/store/migrate.ts';
import { createMasterKeys } from '../../src/platform/vault/master-key-registry.ts';
import type { Vault } from '../../src/platform/vault/vault.ts';
import { createApiRequest, readText } from './api-request.ts';
import { openNotifications } from '../../src/platform/store/postgres/notifications.ts';
import type { ServerKind } from './postgres-setup.ts';
import { createTestDatabase, onePool, type TestDatabase } from './platform-database.ts';
import { createScratch } from './scratch.ts';
import { createTestWiring } from './test-wiring.ts';

export type Ask = {
  readonly key?: string;
  readonly bearer?: string;
  /** X-Tenant-Id */
  readonly tenant?: string;
  /** X-Organization-Id */
  readonly organization?: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent unchanged instead of `body`. */
  readonly raw?: string | Uint8Array | ReadableStream;
  readonly headers?: Readonly<Record<string, string>>;
  readonly peer?: string;
  /** That a browser sent the request to; `http://127.0.0.1:8080` when absent. */
  readonly origin?: string;
  /** Of a client that leaves, and of a server that drains. */
  readonly left?: AbortSignal;
  readonly draining?: AbortSignal;
  /** The exchange does not end with its response. */
  readonly isLeftOpen?: boolean;
};

export type Asked = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text as JSON; undefined when it is empty. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
};

export type Followed = AsyncDisposable & {
  /** `ended` after the last piece. */
  next(): Promise<string>;
};

export type PlatformApi = AsyncDisposable & {
  readonly database: TestDatabase;
  readonly routes: readonly Route[];
  /** For a server in front of it. */
  readonly api: Api;
  readonly authenticator: Authenticator;
  /** For other listeners of the process. */
  readonly admission: Admission;
  readonly vault: Vault;
  readonly masterKeyFile: string;
  /** The lines of the log so far. */
  readonly logged: readonly string[];
  ask(method: string, path: string, options?: Ask): Promise<Asked>;
  /** Stores the audit events that no request waits for. */
  settle(): Promise<void>;
  /** The pieces of a streamed response, which ends when it is disposed of. */
  follow(path: string, options?: Ask): Promise<Followed>;
  addOrganization(given?: {
    readonly plan?: string;
    readonly isPersonal?: boolean;
    readonly config?: Readonly<Record<string, unknown>>;
  }): Promise<string>;
  addWorkspace(organizationId: string): Promise<string>;
  addUser(): Promise<string>;
  /** A service key of the organization, or of one workspace of it. */
  addServiceKey(
    organizationId: string,
    role: OrganizationRole | WorkspaceRole,
    workspaceId?: string,
    home?: string,
  ): Promise<string>;
  /** A personal token of a new member; the workspace is its home. */
  addMemberKey(
    organizationId: string,
    role: OrganizationRole,
    workspace?: { readonly id: string; readonly role: WorkspaceRole },
  ): Promise<string>;
};

export type PlatformApiOptions = {
  readonly server?: ServerKind;
  readonly canUseAuditLogs?: boolean;
  /** False for a vault whose file does not exist. */
  readonly hasMasterKey?: false;
  /** Settings of the config file. */
  readonly config?: object;
  readonly maxBodyBytes?: number;
  readonly limits?: Partial<ServerLimits>;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Modules of the test, in addition to those of the platform, or in the place of one with the same name. */
  readonly modules?: readonly Module[];
  /** Of tables that these modules have. */
  readonly migrations?: readonly URL[];
  /** Routes of the test, in addition to those of the platform. */
  readonly routes?: readonly Route[];
  /**
   * The server drains as soon as a stream of events has begun, which ends it: most never end by themselves. For the tests of
   * every route.
   */
  readonly drainsEvents?: boolean;
  /** Replaces every route, those of the platform too. */
  readonly wrap?: (route: Route) => Route;
};

const NO_LIMIT = { perSecond: 1e6, burst: 1e6 };

export async function createPlatformApi(options: PlatformApiOptions = {}): Promise<PlatformApi> {
  const database = await createTestDatabase(options.server === undefined ? {} : { server: options.server });
  const { store } = database;
  const own = options.modules ?? [];
  const replaced = new Set(own.map(({ name }) => name));
  const all = [...modules.filter(({ name }) => !replaced.has(name)), ...own];
  if (options.migrations !== undefined)
    await migrate(database.ownerConnection, readAllMigrations(options.migrations));
  const logged: string[] = [];
  const authenticator = createAuthenticator({ now: options.now ?? (() => Date.now()) });
  const keys = await createScratch();
  const masterKeyFile = join(keys.path, 'vault-master.key');
  if (options.hasMasterKey !== false) await createMasterKeys(store, { masterKeyFile, isProvided: false });
  const failed = (error: unknown): void => void logged.push(String(error));
  const { connection } = database;
  const notifications = openNotifications({ connection, onLost: failed, onError: failed });
  const { canUseAuditLogs, config } = options;
  const wiring = createTestWiring({
    ...{ canUseAuditLogs, masterKeyFile, config, notifications },
    // No process takes them.
    send: async (_, job, data) => void job.data.parse(data),
  });
  const resources = createRoutes(wiring, all);
  const routes = withDocuments({
    routes: [...resources, ...(options.routes ?? [])],
    version: '0.0.0',
    isReady: () => true,
  });
  const parts = {
    pools: onePool(store),
    authenticator,
    log: createLog('trace', { write: (line) => void logged.push(line) }),
    limits: { ...defaultLimits, bodyBytes: options.maxBodyBytes ?? 1024 * 1024, ...options.limits },
  };
  const admission = createAdmission(parts);
  const api = createApi(options.wrap === undefined ? routes : routes.map(options.wrap), {
    ...parts,
    admission,
    // The tests of routes look at each event.
    failureRates: { key: NO_LIMIT, organization: NO_LIMIT },
  });
  return {
    ...createTenants(database),
    database,
    routes,
    api,
    authenticator,
    admission,
    vault: wiring.vault,
    masterKeyFile,
    logged,
    settle: () => api.settle(),
    async ask(method, path, asked = {}) {
      const closed = Promise.withResolvers<number>();
      const draining = new AbortController();
      const drained = options.drainsEvents === true ? { draining: draining.signal } : {};
      const response = await api(toRequest(method, path, { ...drained, ...asked }, closed.promise));
      const headers = new Headers(response.fields);
      if (headers.get('content-type') === 'text/event-stream') draining.abort(new Error('draining'));
      const text = await readText(response).finally(() => {
        if (asked.isLeftOpen !== true) closed.resolve(response.status);
      });
      return { status: response.status, headers, text, body: toBody(headers, text) };
    },
    async follow(path, asked = {}) {
      const left = new AbortController();
      const closed = Promise.withResolvers<number>();
      const { status, body } = await api(
        toRequest('GET', path, { left: left.signal, ...asked }, closed.promise),
      );
      if (typeof body !== 'object' || !(Symbol.asyncIterator in body))
        throw new Error(`no stream: ${status}`);
      const pieces = body[Symbol.asyncIterator]();
      return {
        async next() {
          const { done, value } = await pieces.next();
          return done === true ? 'ended' : Buffer.from(value).toString();
        },
        async [Symbol.asyncDispose]() {
          left.abort(new Error('the caller left'));
          await pieces.return?.();
          closed.resolve(status);
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await notifications.close();
      await api.settle();
      await authenticator.settle();
      await database[Symbol.asyncDispose]();
      await keys[Symbol.asyncDispose]();
    },
  };
}

function createTenants({
  owner,
}: TestDatabase): Pick<
  PlatformApi,
  'addOrganization' | 'addWorkspace' | 'addUser' | 'addServiceKey' | 'addMemberKey'
> {
  const { db } = owner;
  const insertKey = async (
    of: {
      readonly organization_id: string;
      readonly workspace_id?: string | null;
      readonly home_workspace_id?: string | null;
      readonly user_id?: string;
      readonly role?: string;
    },
    kind: 'service' | 'personal',
  ): Promise<string> => {
    const { text, hash, shortKey } = mintKey(kind);
    const rest = {
      workspace_id: null,
      user_id: null,
      role: null,
      expires_at: null,
      last_used_at: null,
      ...of,
    };
    await db
      .insertInto('api_keys')
      .values({ kind, hash, short_key: shortKey, description: 'a test', ...rest })
      .execute();
    return text;
  };
  const addUser = async (): Promise<string> => {
    const user = { email: `${randomUUID()}@example.test` };
    return idOf(await db.insertInto('users').values(user).returning('id').execute());
  };
  return {
    addUser,
    async addOrganization({
      plan = 'enterprise',
      isPersonal = false,
      config = { can_use_audit_logs: true },
    } = {}) {
      const row = {
        display_name: randomUUID(),
        plan,
        is_personal: isPersonal,
        config: JSON.stringify(config),
      };
      return idOf(await db.insertInto('organizations').values(row).returning('id').execute());
    },
    async addWorkspace(organizationId) {
      const row = { organization_id: organizationId, display_name: randomUUID(), tenant_handle: null };
      return idOf(await db.insertInto('workspaces').values(row).returning('id').execute());
    },
    addServiceKey: (organization_id, role, workspaceId, home) =>
      insertKey(
        {
          ...{ organization_id, role, workspace_id: workspaceId ?? null },
          home_workspace_id: home ?? null,
        },
        'service',
      ),
    async addMemberKey(organization_id, role, workspace) {
      const user_id = await addUser();
      await db.insertInto('organization_members').values({ organization_id, user_id, role }).execute();
      if (workspace !== undefined)
        await db
          .insertInto('workspace_members')
          .values({ organization_id, workspace_id: workspace.id, user_id, role: workspace.role })
          .execute();
      return insertKey({ organization_id, user_id, home_workspace_id: workspace?.id ?? null }, 'personal');
    },
  };
}

function idOf(rows: readonly { readonly id: string }[]): string {
  const [row] = rows;
  if (row === undefined) throw new Error('nothing was inserted');
  return row.id;
}

function toRequest(method: string, path: string, asked: Ask, closed: Promise<number>): ApiRequest {
  const body = asked.raw ?? (asked.body === undefined ? undefined : JSON.stringify(asked.body));
  const headers = {
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(asked.key === undefined ? {} : { 'x-api-key': asked.key }),
    ...(asked.bearer === undefined ? {} : { authorization: `Bearer ${asked.bearer}` }),
    ...(asked.tenant === undefined ? {} : { 'x-tenant-id': asked.tenant }),
    ...(asked.organization === undefined ? {} : { 'x-organization-id': asked.organization }),
    ...asked.headers,
  };
  const { left, draining } = asked;
  const signals = { ...(left && { left }), ...(draining && { draining }) };
  const { origin: asOf = 'http://127.0.0.1:8080' } = asked;
  const origin = asOf === '' ? undefined : asOf;
  return createApiRequest(path, { method, headers, body, peer: asked.peer, origin, closed, ...signals });
}

function toBody(headers: Headers, text: string): unknown {
  const isJson = headers.get('content-type')?.startsWith('application/json') ?? false;
  return isJson && text !== '' ? JSON.parse(text) : undefined;
}
