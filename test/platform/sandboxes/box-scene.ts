// The API with its sandboxes on a fake runtime, or on a real one: the reconciler runs, and is woken by real notifications of the database.
import { createLog } from '../../../src/base/log.ts';
import type { RunningPart } from '../../../src/platform/module.ts';
import type { BoxStatus } from '../../../src/platform/sandboxes/box-states.ts';
import type { BoxRow } from '../../../src/platform/sandboxes/boxes.ts';
import type { Runtime } from '../../../src/platform/runtime/contract.ts';
import { createBoxSecrets } from '../../../src/platform/sandboxes/box-secrets.ts';
import {
  type Reconciler,
  type ReconcilerOptions,
  startReconciler,
} from '../../../src/platform/sandboxes/reconciliation/reconciler.ts';
import { createSandboxes } from '../../../src/platform/sandboxes/module.ts';
import { openNotifications } from '../../../src/platform/store/postgres/notifications.ts';
import { type Ask, type Asked, createPlatformApi, type PlatformApi } from '../../support/platform-api.ts';
import { createScratch } from '../../support/scratch.ts';
import { createTestConfig } from '../../support/test-wiring.ts';
import { createFakeRuntime, type FakeRuntime } from './fake-runtime.ts';

export type BoxScene = AsyncDisposable & {
  readonly api: PlatformApi;
  readonly runtime: FakeRuntime;
  readonly organizationId: string;
  readonly workspaceId: string;
  /** Of an administrator of the workspace. */
  readonly key: string;
  /** The lines of the log of the reconciler so far. */
  readonly logged: readonly string[];
  ask(method: string, path: string, body?: unknown, more?: Ask): Promise<Asked>;
  /** A ready box; throws for any other response. */
  create(body?: object): Promise<Asked['body']>;
  row(id: string): Promise<BoxRow | undefined>;
  /** Resolves once the row has this status, and fits. */
  until(id: string, status: BoxStatus | 'gone', fits?: (row: BoxRow) => boolean): Promise<BoxRow>;
  /** `from>to:reason` of each move of the box. */
  moves(id: string): Promise<readonly string[]>;
  /** Ends the reconciler, as the death of its process would, and starts another one on the same machine. */
  restart(): Promise<void>;
  stopReconciling(): Promise<void>;
  /** Another process of the same machine, or of another one with another runtime; it is closed by its owner. */
  openReconciler(given?: Partial<ReconcilerOptions>): Promise<Reconciler>;
  /** No box is left, nothing is held up, and the reconciler runs: as a new scene. */
  reset(): Promise<void>;
};

export const BOXES = '/v2/sandboxes/boxes';

export async function createBoxScene(
  document: { readonly sandboxes?: object; readonly gateway?: object } = {},
  real?: Runtime,
): Promise<BoxScene> {
  const scratch = await createScratch();
  const settings = {
    data_dir: scratch.path,
    sandboxes: { runtime: 'attached', ...document.sandboxes },
    gateway: { listen: '127.0.0.1:0', ...document.gateway },
  };
  const config = createTestConfig(settings);
  const runtime = createFakeRuntime(config.sandboxes.runtime === 'attached' ? 'attached' : 'bubblewrap');
  const module = createSandboxes(async () => real ?? runtime);
  const api = await createPlatformApi({ modules: [module], config: settings });
  const { store, connection } = api.database;
  const logged: string[] = [];
  const notifications = openNotifications({
    connection,
    onLost: () => undefined,
    onError: () => undefined,
  });
  const changed = new Set<() => void>();
  await notifications.subscribe('sandboxes', {
    onMessage: () => {
      for (const one of changed) one();
    },
    onMissed: () => undefined,
  });
  const start = async (): Promise<RunningPart | undefined> =>
    module.start?.({
      ...{ config, store, notifications, vault: api.vault, program: [] },
      send: async () => undefined,
      log: createLog('info', { write: (line) => void logged.push(line) }),
      roles: { serves: true, works: true },
      signal: new AbortController().signal,
      ...(document.gateway === undefined ? {} : { admission: api.admission }),
    });
  let part = await start();
  const organizationId = await api.addOrganization();
  const workspaceId = await api.addWorkspace(organizationId);
  const key = await api.addServiceKey(organizationId, 'WORKSPACE_ADMIN', workspaceId);
  const scene: BoxScene = {
    ...{ api, runtime, organizationId, workspaceId, key, logged },
    ask: (method, path, body, more = {}) =>
      api.ask(method, path, { key, ...(body === undefined ? {} : { body }), ...more }),
    async create(body = {}) {
      const created = await scene.ask('POST', BOXES, { wait_for_ready: true, ...body });
      if (created.status !== 201) throw new Error(`${created.status} ${created.text}`);
      return created.body;
    },
    row: (id) => store.db.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirst(),
    async until(id, status, fits = () => true) {
      for (;;) {
        const next = Promise.withResolvers<void>();
        changed.add(next.resolve);
        const row = await scene.row(id);
        if (row === undefined && status === 'gone') return {} as BoxRow;
        if (row !== undefined && row.status === status && fits(row)) return row;
        await next.promise;
        changed.delete(next.resolve);
      }
    },
    async moves(id) {
      const rows = await store.db
        .selectFrom('box_transitions')
        .select(['from_status', 'to_status', 'reason'])
        .where('box_id', '=', id)
        .orderBy('id')
        .execute();
      return rows.map(({ from_status, to_status, reason }) => `${from_status}>${to_status}:${reason}`);
    },
    async stopReconciling() {
      await part?.close();
      part = undefined;
    },
    async restart() {
      await part?.close();
      part = await start();
    },
    async openReconciler(given = {}) {
      const machine = store.db.selectFrom('box_machines').select('id');
      return startReconciler({
        ...{ store, runtime, machineId: given.machineId ?? (await machine.executeTakeFirstOrThrow()).id },
        secrets: createBoxSecrets(api.vault),
        policies: { vault: api.vault, rules: config.sandboxes },
        log: createLog('silent', { write: () => undefined }),
        ...given,
      });
    },
    async reset() {
      runtime.onCall = () => undefined;
      await part?.close();
      const { db } = api.database.owner;
      await db.deleteFrom('boxes').execute();
      await db.deleteFrom('box_machines').execute();
      runtime.reset();
      logged.length = 0;
      part = await start();
    },
    async [Symbol.asyncDispose]() {
      await part?.close();
      await notifications.close();
      await api[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
  return scene;
}
