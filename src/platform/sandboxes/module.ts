// Sandboxes: boxes of workspaces, their rules and their records. The routes write what should be; on each machine one process
// compares it with what is, through the runtime.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../../base/log.ts';
import { mount } from '../api/contract/mount.ts';
import type { Route } from '../api/route.ts';
import type { Module, RunningPart, StartContext, Wiring } from '../module.ts';
import type { Runtime } from '../runtime/contract.ts';
import type { Store } from '../store/database.ts';
import { createBoxActionRoutes } from './box-action-routes.ts';
import { type BoxChanges, createBoxChanges } from './box-changes.ts';
import { expireBoxes } from './box-expiry.ts';
import { createBoxRoutes } from './box-routes.ts';
import { createBoxSecrets } from './box-secrets.ts';
import { createBoxWaiting } from './box-waiting.ts';
import { readMachineId } from './machine.ts';
import { startReconciler } from './reconciler.ts';
import { boxRecordsRoute, followRecords } from './record-intake.ts';
import { unsupportedRoutes } from './unsupported-routes.ts';

/** Opens what runs boxes on this machine. */
export type OpenRuntime = (context: StartContext) => Promise<Runtime>;

export function createSandboxes(openRuntime: OpenRuntime = openBoxHost): Module {
  // Of the process: its routes wait for what its own reconciler, or that of another process, has done.
  const changes = createBoxChanges();
  return {
    name: 'sandboxes',
    routes: (wiring) => createRoutes(wiring, changes),
    jobs: [expireBoxes],
    migrations: [new URL('./migrations/0014-boxes.sql', import.meta.url)],
    start: (context) => startSandboxes(context, changes, openRuntime),
  };
}

function createRoutes({ config, vault }: Wiring, changes: BoxChanges): readonly Route[] {
  const { runtime, quotas, allowsPrivateCallbacks } = config.sandboxes;
  const parts = {
    secrets: createBoxSecrets(vault),
    policies: { vault, rules: { allowsPrivateCallbacks } },
    quotas,
    waiting: createBoxWaiting(changes),
    hasRuntime: runtime !== 'none',
    wake: () => changes.emit(),
  };
  const routes = [
    ...createBoxRoutes(parts),
    ...createBoxActionRoutes(parts),
    boxRecordsRoute,
    ...unsupportedRoutes,
  ];
  return mount(routes, { under: ['/v2/sandboxes', '/api/v2/sandboxes'] });
}

async function startSandboxes(
  context: StartContext,
  changes: BoxChanges,
  openRuntime: OpenRuntime,
): Promise<RunningPart> {
  const { notifications, config, roles } = context;
  // Not waited for: without the connection everything is looked at now and then.
  const subscribed = notifications.subscribe('sandboxes', {
    onMessage: (id) => changes.emit(id),
    onMissed: () => changes.emit(),
  });
  const runs = roles.works && config.sandboxes.runtime !== 'none';
  const closing = new AbortController();
  const running = runs ? keepReconciling(context, changes, openRuntime, closing.signal) : undefined;
  return {
    async close() {
      closing.abort();
      void subscribed.then((unsubscribe) => unsubscribe());
      await running;
    },
  };
}

/** Opens the runtime with the first box of this machine, and tries again where it cannot be opened: the API is served meanwhile. */
async function keepReconciling(
  context: StartContext,
  changes: BoxChanges,
  openRuntime: OpenRuntime,
  signal: AbortSignal,
): Promise<void> {
  const { store, log, config } = context;
  while (!signal.aborted) {
    try {
      const machineId = await readMachineId(config.dataDirectory);
      const limits = { ms: WAIT_MS, everyMs: RETRY_MS, signal };
      const hasBoxes = await changes.waitFor(undefined, () => findBoxes(store.db, machineId), limits);
      if (hasBoxes === undefined) continue;
      await using runtime = disposable(await openRuntime(context));
      return await reconcile(context, changes, { runtime: runtime.value, machineId, signal });
    } catch (error) {
      if (signal.aborted) return;
      log.warn(describeBug(error), 'sandboxes cannot be run yet; it is tried again');
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

const WAIT_MS = 60_000;

/** Also those that no machine has taken yet. */
async function findBoxes(db: Store['db'], machineId: string): Promise<true | undefined> {
  const found = await db
    .selectFrom('boxes')
    .select('id')
    .where(({ eb, or }) => or([eb('machine_id', 'is', null), eb('machine_id', '=', machineId)]))
    .limit(1)
    .executeTakeFirst();
  return found && true;
}

function disposable(value: Runtime): AsyncDisposable & { readonly value: Runtime } {
  return { value, [Symbol.asyncDispose]: () => value.close() };
}

type Opened = { readonly runtime: Runtime; readonly machineId: string; readonly signal: AbortSignal };

/** Ends with the signal. */
async function reconcile(
  { store, log, vault }: StartContext,
  changes: BoxChanges,
  { runtime, machineId, signal }: Opened,
): Promise<void> {
  const reconciler = startReconciler({ store, runtime, log, machineId, secrets: createBoxSecrets(vault) });
  const unsubscribe = changes.subscribe(() => reconciler.wake());
  await keepFollowing({ runtime, store, log }, signal);
  unsubscribe();
  await reconciler.close();
}

const RETRY_MS = 2_000;

/** The runtime may be away, and so may the database: the records wait where they are. */
async function keepFollowing(
  intake: Parameters<typeof followRecords>[0] & { readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await followRecords(intake, signal);
    } catch (error) {
      if (signal.aborted) return;
      intake.log.warn(describeBug(error), 'the records of sandboxes could not be read; it is tried again');
    }
    await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** The box host of this machine. */
async function openBoxHost({ config, program }: StartContext): Promise<Runtime> {
  const { attachedListen, sidecarConfigFile } = config.sandboxes;
  const { createBoxHostRuntime } = await import('../runtime/box-host-runtime.ts');
  const directory = join(config.dataDirectory, 'box-host');
  return createBoxHostRuntime({ command: program, directory, attachedListen, sidecarConfigFile });
}

export const sandboxes: Module = createSandboxes();
