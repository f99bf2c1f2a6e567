// What runs as long as an agent server: its workers, the streams and the queue of runs; made in one order, and closed in the
// reverse one.
import type { StartContext } from '../module.ts';
import type { Vault } from '../vault/vault.ts';
import { createGate } from './access/deployment-gate.ts';
import type { Gate } from './access/gate.ts';
import { openKeyFile } from './access/key-file.ts';
import { createGatewayCallers, type GatewayCallers } from './access/gateway-callers.ts';
import type { KeyPort } from './access/keys.ts';
import { createPreparedVault } from './access/prepared-vault.ts';
import { openRunUser } from './access/run-users.ts';
import { ensureDefaultAssistants } from './assistants/default-assistants.ts';
import { createCheckpointPort } from './checkpoints/checkpoint-port.ts';
import type { Deployment } from './configuration/deployment.ts';
import type { AgentSettings } from './configuration/settings.ts';
import { Backlog } from './queue/backlog.ts';
import { createRunQueue, type RunQueue } from './queue/run-queue.ts';
import { openRunNotices, type RunNotices } from './streams/run-notices.ts';
import { createRunStreams, type RunStreams } from './streams/run-streams.ts';
import { createStateUpdates, type StateUpdates } from './streams/state-updates.ts';
import { startStreamExpiry } from './streams/stream-expiry.ts';
import { createAgentMeters } from './system/agent-meters.ts';
import type { GraphWorkers } from './workers/graph-workers.ts';
import { startGraphWorkers } from './workers/started-workers.ts';
import { defaultWorkerLimits } from './workers/worker-limits.ts';

export type RunningParts = Pick<StartContext, 'store' | 'log'> & {
  readonly vault: Pick<Vault, 'prepare' | 'seal'>;
  readonly gate: Gate;
  /** Undefined where no key is known. */
  readonly keys: KeyPort | undefined;
  /** Of an instance of a deployment. */
  readonly callers: GatewayCallers | undefined;
  readonly workers: GraphWorkers;
  readonly notices: RunNotices;
  readonly streams: RunStreams;
  readonly updates: StateUpdates;
  readonly queue: RunQueue;
  readonly backlog: Backlog;
};

/** What is made is closed with `opened`. Rejects with a WorkerStartError when the deployment cannot be loaded. */
export async function startParts(
  { store: long, admission, vault, log, notifications, meters: given }: StartContext,
  { deployment, settings }: { readonly deployment: Deployment; readonly settings: AgentSettings },
  opened: AsyncDisposableStack,
): Promise<RunningParts> {
  const { keyFile } = settings;
  const keys = keyFile === undefined ? undefined : await openKeyFile(keyFile, log);
  const limits = { ...defaultWorkerLimits, workers: settings.workers };
  const meters = given && createAgentMeters(given);
  const started = await startGraphWorkers({ deployment, limits, log, meters });
  const workers = opened.adopt(started, (one) => one.close());
  const { servedAs } = settings;
  const callers = servedAs && createGatewayCallers(servedAs.gatewayToken);
  const gate = createGate({ deployment, settings, workers, keys, callers, log });
  // Ends of runs, claims and leases are short, and must not wait behind long statements.
  const store = admission?.pools.writes ?? long;
  for (const graph of await ensureDefaultAssistants(store, deployment.graphs))
    log.warn(
      { graph },
      'a client had an assistant with the id of the default one of this graph: it was replaced',
    );
  const notices = opened.adopt(await openRunNotices({ store, notifications, log }), (one) => one.close());
  const streams = opened.adopt(createRunStreams({ store, notices, log }), (one) => one.close());
  const { followed } = streams;
  const updates = opened.adopt(createStateUpdates({ store, notices, followed, log }), (one) => one.close());
  const ttlSeconds = settings.resumableTtlSeconds;
  opened.adopt(startStreamExpiry({ store: long, log, ttlSeconds }), (one) => one.close());
  const backlog = new Backlog(settings.pendingRuns);
  const places = settings.jobsPerWorker * settings.workers;
  const queue = createRunQueue({
    ...{ backlog, store, notices, workers, streams, log, owner: streams.processId, places },
    lonePlaces: Math.max(1, Math.floor(settings.workers / 2)),
    timeoutMs: settings.runTimeoutSeconds * 1000,
    drainMs: settings.drainSeconds * 1000,
    createCheckpoints: (scope) => createCheckpointPort(store, scope),
    openUser: (runId) => openRunUser(store.db, vault, runId),
    onAttempt: (concluded) => meters?.onAttempt(concluded),
  });
  meters?.watch({ queue, backlog, places });
  opened.adopt(queue, (one) => one.close());
  return {
    vault: createPreparedVault(vault),
    ...{ store, log, gate, keys, callers, workers, notices, streams, updates, queue, backlog },
  };
}
