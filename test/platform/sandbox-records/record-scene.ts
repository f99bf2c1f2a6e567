// The platform with one workspace and sandbox tokens in it, and records as sidecars write them.
import { randomUUID } from 'node:crypto';
import { type Asked, type PlatformApi, createPlatformApi } from '../../support/platform-api.ts';

export type RecordScene = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly organizationId: string;
  readonly workspaceId: string;
  /** Of an administrator of the workspace. */
  readonly key: string;
  /** Creates a token of a sandbox. */
  token(sandbox: string): Promise<string>;
  send(token: string, body: unknown): Promise<Asked>;
  list(sandbox: string, query?: string): Promise<Asked>;
};

export async function createRecordScene(): Promise<RecordScene> {
  const api = await createPlatformApi();
  const organizationId = await api.addOrganization();
  const workspaceId = await api.addWorkspace(organizationId);
  const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
  return {
    api,
    organizationId,
    workspaceId,
    key,
    async token(sandbox) {
      const made = await api.ask('POST', `/v1/sandboxes/${sandbox}/tokens`, { key, body: {} });
      if (made.status !== 201) throw new Error(`creating a token failed: ${made.status} ${made.text}`);
      return String(made.body.token);
    },
    send: (bearer, body) => api.ask('POST', '/v1/sandbox-records', { bearer, body }),
    list: (sandbox, query = '') => api.ask('GET', `/v1/sandboxes/${sandbox}/records${query}`, { key }),
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

export function batchOf(
  count: number,
  source: string = randomUUID(),
  from = 0,
): {
  readonly source: string;
  readonly records: readonly Readonly<Record<string, unknown>>[];
} {
  return { source, records: Array.from({ length: count }, (_, i) => recordOf({ number: from + i })) };
}

/** The time of the first record; the next ones follow one per millisecond. */
export const firstMs: number = Date.UTC(2026, 0, 1);

export function recordOf(
  fields: Readonly<Record<string, unknown>> & { readonly number: number },
): Readonly<Record<string, unknown>> {
  return {
    time: new Date(firstMs + fields.number).toISOString(),
    sandbox: 'default',
    revision: 1,
    client: '127.0.0.1',
    method: 'GET',
    scheme: 'https',
    authority: 'api.example.com:443',
    path: '/v1/x',
    bytes_up: 10,
    bytes_down: 20,
    rule: 'api',
    injected: ['Authorization'],
    status: 200,
    upstream_reused: false,
    outcome: 'injected',
    duration_ms: 1.5,
    ...fields,
  };
}
