// A workspace with a destination and a project, exports that are created by the API, and a clock that a test sets.
import { randomUUID } from 'node:crypto';
import { Secret } from '../../../src/base/secret.ts';
import { destinationConfig } from '../../../src/platform/bulk-export/destinations/destination-schema.ts';
import { createDestination } from '../../../src/platform/bulk-export/destinations/destinations.ts';
import { addMs, type Clock } from '../../../src/platform/bulk-export/scheduling/clock.ts';
import { type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';

export const EXPORTS = '/api/v1/bulk-exports';

export type ExportTenant = {
  readonly workspaceId: string;
  readonly key: string;
  readonly destinationId: string;
  readonly projectId: string;
};

export type ExportScene = AsyncDisposable &
  ExportTenant & {
    readonly api: PlatformApi;
    /** By which everything but routes is scheduled. */
    readonly clock: Clock;
    /** Moves the clock. */
    pass(ms: number): void;
    addTenant(): Promise<ExportTenant>;
    ask(method: string, path: string, body?: unknown, tenant?: ExportTenant): Promise<Asked>;
    /** Of days from the first of a month. Returns its id. */
    addExport(days: number, more?: object, tenant?: ExportTenant): Promise<string>;
    /** By their days. */
    runsOf(exportId: string): Promise<readonly RunState[]>;
    statusOf(exportId: string): Promise<string>;
  };

export type RunState = {
  readonly id: string;
  readonly status: string;
  readonly retry_number: number;
  readonly errors: Readonly<Record<string, string>> | null;
};

export async function createExportScene(config: object = {}): Promise<ExportScene> {
  const api = await createPlatformApi({ config: { exports: { allow_loopback: true, ...config } } });
  const tenant = await addTenant(api);
  let offsetMs = 0;
  const { db } = api.database.owner;
  const ask: ExportScene['ask'] = (method, path, body, of = tenant) =>
    api.ask(method, path, { key: of.key, ...(body === undefined ? {} : { body }) });
  return {
    ...{ ...tenant, api, ask },
    // Ahead of that of the database, by which routes write.
    clock: async () => addMs(new Date(), offsetMs),
    pass: (ms) => void (offsetMs += ms),
    addTenant: () => addTenant(api),
    async addExport(days, more = {}, of = tenant) {
      const { status, body, text } = await ask('POST', EXPORTS, exportOf(of, days, more), of);
      if (status !== 200) throw new Error(text);
      return body.id;
    },
    async runsOf(exportId) {
      const runs = db.selectFrom('export_runs').select(['id', 'status', 'retry_number', 'errors']);
      return runs.where('export_id', '=', exportId).orderBy('window_start').execute();
    },
    async statusOf(exportId) {
      const found = db.selectFrom('exports').select('status').where('id', '=', exportId);
      return (await found.executeTakeFirstOrThrow()).status;
    },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

/** A body. */
export function exportOf(
  { destinationId, projectId }: ExportTenant,
  days: number,
  more: object = {},
): Record<string, unknown> {
  const end = new Date(Date.UTC(2026, 0, 1 + days)).toISOString();
  return {
    ...{ bulk_export_destination_id: destinationId, session_id: projectId },
    ...{ start_time: '2026-01-01T00:00:00Z', end_time: end },
    ...more,
  };
}

async function addTenant(api: PlatformApi): Promise<ExportTenant> {
  const organizationId = await api.addOrganization();
  const workspaceId = await api.addWorkspace(organizationId);
  const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
  const projectId = randomUUID();
  const { owner } = api.database;
  await owner.db
    .insertInto('trace_projects')
    .values({
      ...{ workspace_id: workspaceId, id: projectId, name: 'traces', description: null, extra: null },
      ...{ end_time: null, default_dataset_id: null, reference_dataset_id: null },
    })
    .execute();
  await api.vault.prepare();
  const destination = await owner.write((trx) =>
    createDestination(
      { vault: api.vault, trx, workspaceId },
      {
        display_name: 'bucket',
        config: destinationConfig.parse({
          ...{ bucket_name: 'traces', prefix: 'exports', endpoint_url: 'https://s3.example.test' },
        }),
        credentials: { access_key_id: 'AKIAEXAMPLE', secret_access_key: new Secret('a secret') },
      },
    ),
  );
  return { workspaceId, key, destinationId: destination.id, projectId };
}
