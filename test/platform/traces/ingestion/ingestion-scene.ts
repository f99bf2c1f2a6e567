// A platform with a workspace, runs as clients send them, and what the store has of them.
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { createLog } from '../../../../src/base/log.ts';
import { noProxies } from '../../../../src/platform/api/client-address.ts';
import { defaultLimits, type ServerLimits } from '../../../../src/platform/api/limits.ts';
import { openServer, type Server } from '../../../../src/platform/api/server.ts';
import type { Module } from '../../../../src/platform/module.ts';
import { unpackPayload } from '../../../../src/platform/traces/runs/payload.ts';
import { formatSegment, toMicroseconds } from '../../../../src/platform/traces/runs/run-time.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import type { StoredRun } from '../../../../src/platform/traces/trace-store.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../../support/platform-api.ts';
import { createScratch } from '../../../support/scratch.ts';

export type IngestionScene = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly workspaceId: string;
  readonly key: string;
  /** Of a workspace of another organization. */
  readonly other: { readonly workspaceId: string; readonly key: string };
  ask(method: string, path: string, options?: Ask): Promise<Asked>;
  read(id: string, workspaceId?: string): Promise<StoredRun | undefined>;
  /** The name of the project of a run. */
  projectOf(id: string): Promise<string | undefined>;
  /** A listener in front of it; the address of its `/runs`. */
  listen(): Promise<string>;
  /** Files of the spool that have a name. */
  spooled(): Promise<readonly string[]>;
  /** Files of attachments. */
  attached(): Promise<readonly string[]>;
};

export async function createIngestionScene(
  settings: object = {},
  limits: Partial<ServerLimits> = {},
  modules: readonly Module[] = [],
): Promise<IngestionScene> {
  const scratch = await createScratch();
  const api = await createPlatformApi({
    config: {
      traces: {
        ...{ spool_directory: `${scratch.path}/spool`, artifacts: `${scratch.path}/artifacts` },
        ...settings,
      },
    },
    limits,
    modules,
  });
  const addTenant = async () => {
    const organizationId = await api.addOrganization();
    const workspaceId = await api.addWorkspace(organizationId);
    return { workspaceId, key: await api.addServiceKey(organizationId, 'WORKSPACE_USER', workspaceId) };
  };
  const [{ workspaceId, key }, other] = [await addTenant(), await addTenant()];
  const { db } = api.database.store;
  const servers: Server[] = [];
  const read = (id: string, workspace = workspaceId): Promise<StoredRun | undefined> =>
    postgresTraceStore.readRun(db, { workspaceId: workspace, id });
  return {
    ...{ api, workspaceId, key, other, read },
    ask: (method, path, options = {}) => api.ask(method, path, { key, ...options }),
    async projectOf(id) {
      const run = await read(id);
      const projects = db.selectFrom('trace_projects').select('name');
      return (await projects.where('id', '=', run?.session_id ?? '').executeTakeFirst())?.name;
    },
    async listen() {
      const server = await openServer({
        ...{ api: api.api, listen: { host: '127.0.0.1', port: 0 }, limits: { ...defaultLimits, ...limits } },
        ...{ trustedProxies: noProxies, onFinished: () => undefined },
        log: createLog('silent', { write: () => undefined }),
      });
      servers.push(server);
      return `${server.url}/runs`;
    },
    spooled: () => readdir(`${scratch.path}/spool`).catch(() => []),
    async attached() {
      const options = { recursive: true, withFileTypes: true } as const;
      const entries = await readdir(`${scratch.path}/artifacts`, options).catch(() => []);
      return entries.filter((one) => one.isFile()).map(({ name }) => name);
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server.close();
      await api[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

export type SentRun = {
  readonly id: string;
  readonly trace_id: string;
  readonly dotted_order: string;
} & Record<string, unknown>;

/** A root run of today, or a child of `parent`. */
export function newRun(fields: Readonly<Record<string, unknown>> = {}, parent?: SentRun): SentRun {
  const id = randomUUID();
  const segment = formatSegment(now(), id);
  const place =
    parent === undefined
      ? { trace_id: id, dotted_order: segment }
      : {
          ...{ trace_id: parent.trace_id, parent_run_id: parent.id },
          dotted_order: `${parent.dotted_order}.${segment}`,
        };
  return { id, ...place, name: 'run', run_type: 'chain', ...fields };
}

/** With microseconds. */
export function now(): string {
  return toMicroseconds(Date.now()) ?? '';
}

/** The JSON of a payload as it was sent; undefined where there is none. */
export async function jsonOf(stored: Buffer | null | undefined): Promise<string | undefined> {
  return stored ? (await unpackPayload(stored)).toString() : undefined;
}
