// Sandboxes: boxes of workspaces, their rules and their records. The routes write what should be; on each machine one process
// compares it with what is, through the runtime.
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../base/log.ts';
import { mount } from '../api/contract/mount.ts';
import type { Route } from '../api/route.ts';
import type { Module, RunningPart, StartContext, Wiring } from '../module.ts';
import { profileChannel } from '../proxy-profiles/contract.ts';
import type { Capabilities, Runtime } from '../runtime/contract.ts';
import { createFailureNotes } from '../runtime/failure-notes.ts';
import { readMachineId } from '../store/data-directory/machine-id.ts';
import { createBoxActionRoutes } from './box-action-routes.ts';
import { type BoxChanges, createBoxChanges } from './box-changes.ts';
import { startGateway } from './gateway/start.ts';
import { createBoxExpiry } from './reconciliation/box-expiry.ts';
import { createBoxRoutes } from './box-routes.ts';
import { createBoxSecrets } from './box-secrets.ts';
import { createBoxWaiting } from './box-waiting.ts';
import { findWork, noteRuntime } from './reconciliation/machine.ts';
import { startReconciler } from './reconciliation/reconciler.ts';
import { profileBoxesRoute } from './profile-boxes-route.ts';
import { boxRecordsRoute, followRecords } from './record-intake.ts';
import { createServiceRoutes } from './services/service-routes.ts';
import { createMachineLink, type MachineLink } from './snapshots/machine-link.ts';
import { makeSnapshots } from './snapshots/snapshot-maker.ts';
import { archiveRoute, createSnapshotRoutes } from './snapshots/snapshot-routes.ts';
import { unsupportedRoutes } from './unsupported-routes.ts';

/** Opens what runs boxes on this machine. */
export type OpenRuntime = (context: StartContext) => Promise<Runtime>;

export function createSandboxes(openRuntime: OpenRuntime = openBoxHost): Module {
  // Of the process: its routes wait for what its own reconciler, or that of another process, has done.
  const changes = createBoxChanges();
  const machine = createMachineLink(openRuntime);
  let machineLostAfterSeconds: number | undefined;
  return {
    name: 'sandboxes',
    routes: (wiring) => [...createRoutes(wiring, changes, machine), profileBoxesRoute],
    jobs: [createBoxExpiry(() => ({ machineLostAfterSeconds }))],
    async start(context) {
      ({ machineLostAfterSeconds } = context.config.sandboxes);
      machine.attach(context);
      const part = await startSandboxes(context, changes, openRuntime);
      return {
        async close() {
          await part.close();
          await machine.close();
        },
      };
    },
  };
}

function createRoutes(
  { config, vault }: Wiring,
  changes: BoxChanges,
  machine: MachineLink,
): readonly Route[] {
  const { runtime, snapshotDirectories, quotas, defaultSizes, allowsPrivateCallbacks } = config.sandboxes;
  const parts = {
    secrets: createBoxSecrets(vault),
    policies: { vault, rules: { allowsPrivateCallbacks } },
    quotas,
    defaultSizes,
    waiting: createBoxWaiting(changes),
    hasRuntime: runtime !== 'none',
    wake: () => changes.emit(),
  };
  const hasFiles = runtime === 'bubblewrap' || runtime === 'auto';
  const { wake } = parts;
  const ofSnapshots = { hasFiles, directories: snapshotDirectories, quota: quotas, machine, wake };
  const routes = [
    ...createBoxRoutes(parts),
    ...createBoxActionRoutes(parts),
    ...createServiceRoutes({ ...parts, runtime, domain: config.gateway.domain }),
    ...createSnapshotRoutes(ofSnapshots),
    boxRecordsRoute,
    ...unsupportedRoutes,
  ];
  const mounted = mount(routes, { under: ['/v2/sandboxes', '/api/v2/sandboxes'] });
  return [...mounted, archiveRoute(ofSnapshots)];
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
  const { runtime, quotas } = config.sandboxes;
  // Before anything is reconciled: a box that is ready has a place where it is reached.
  const gateway = await startGateway(context, { changes, writing: { quotas }, openRuntime });
  const closing = new AbortController();
  const runs = roles.works && runtime !== 'none';
  const running = runs ? keepReconciling(context, changes, openRuntime, closing.signal) : undefined;
  return {
    async close() {
      await gateway?.close();
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
  const failures = createFailureNotes(log);
  while (!signal.aborted) {
    try {
      const machineId = await readMachineId(config.dataDirectory);
      const limits = { ms: WAIT_MS, everyMs: RETRY_MS, signal };
      const hasWork = await changes.waitFor(undefined, () => findWork(store.db, machineId), limits);
      if (hasWork === undefined) continue;
      await using runtime = disposable(await openRuntime(context));
      describeRuntime(runtime.value, await noteRuntime(store.db, machineId, runtime.value), context);
      failures.succeeded(OPENING);
      return await reconcile(context, changes, { runtime: runtime.value, machineId, signal });
    } catch (error) {
      if (signal.aborted) return;
      failures.failed(OPENING, error);
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/** For whoever operates the machine: what runs its boxes, and what it does not hold. */
function describeRuntime(
  { kind }: Runtime,
  { version, ...held }: Capabilities,
  { log, config }: StartContext,
): void {
  const holds = Object.entries(held).map(([name, one]) => [
    name,
    one.isHeld ? (one.note ?? 'held') : `not held: ${one.reason}`,
  ]);
  log.info({ runtime: kind, version, ...Object.fromEntries(holds) }, 'the sandboxes of this machine can run');
  const configured = config.sandboxes.runtime;
  if (configured === 'auto' || configured === kind) return;
  log.warn(
    { runtime: kind, configured },
    'the box host has sandboxes of another runtime than the configured one: they go on, and new ones fail until those ' +
      'are deleted and the platform is started again',
  );
}

const OPENING = 'sandboxes cannot be run yet; it is tried again';
const WAIT_MS = 60_000;

function disposable(value: Runtime): AsyncDisposable & { readonly value: Runtime } {
  return { value, [Symbol.asyncDispose]: () => value.close() };
}

type Opened = { readonly runtime: Runtime; readonly machineId: string; readonly signal: AbortSignal };

/** Ends with the signal. */
async function reconcile(
  { store, log, vault, config, notifications }: StartContext,
  changes: BoxChanges,
  { runtime, machineId, signal }: Opened,
): Promise<void> {
  const { allowsPrivateCallbacks, snapshotDirectories: directories, quotas: quota } = config.sandboxes;
  const reconciler = startReconciler({
    ...{ store, runtime, log, machineId, secrets: createBoxSecrets(vault) },
    policies: { vault, rules: { allowsPrivateCallbacks } },
  });
  const wake = (): void => reconciler.wake();
  const unsubscribe = changes.subscribe(wake);
  // Not waited for: a changed profile is found by the next pass in any case.
  const followed = notifications.subscribe(profileChannel, { onMessage: wake, onMissed: wake });
  const making = { store, runtime, log, machineId, directories, quota };
  const made = makeSnapshots(making, changes, signal);
  await keepFollowing({ runtime, store, log }, signal);
  unsubscribe();
  await made;
  void followed.then((unfollow) => unfollow());
  await reconciler.close();
}

const RETRY_MS = 2_000;

/** The runtime may be away, and so may the database: the records wait where they are. */
async function keepFollowing(
  intake: Parameters<typeof followRecords>[0] & { readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const failures = createFailureNotes(intake.log);
  while (!signal.aborted) {
    try {
      await followRecords(intake, signal);
    } catch (error) {
      if (signal.aborted) return;
      failures.failed('the records of sandboxes could not be read; it is tried again', error);
    }
    await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** The box host of this machine. */
async function openBoxHost({ config, program, log }: StartContext): Promise<Runtime> {
  const { runtime, attachedListen, sidecarConfigFile } = config.sandboxes;
  const { createBoxHostRuntime } = await import('../runtime/box-host-runtime.ts');
  const directory = join(config.dataDirectory, 'box-host');
  const kind = runtime === 'none' ? undefined : runtime;
  return createBoxHostRuntime(
    { command: program, directory, attachedListen, sidecarConfigFile, runtime: kind },
    log,
  );
}

export const sandboxes: Module = createSandboxes();
