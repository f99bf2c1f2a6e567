// The agent servers of one revision of a deployment, with what its revision has: its build, secrets and limits, and its log.
import { randomBytes } from 'node:crypto';
import { openSecrets } from '../../deployments/deployment-secrets.ts';
import { createMask } from '../../deployments/log-mask.ts';
import type { WantedDeployment, WantedRevision } from '../../deployments/wanted-deployments.ts';
import type { ServedRevision } from '../../deployment-gateway/target-table.ts';
import type { OpenDatabase } from '../databases/deployment-database.ts';
import type { Taken } from '../fleet/capacity.ts';
import { Fleet } from '../fleet/fleet.ts';
import { type AgentSpec, startAgentProcess, type WorkloadPolicy } from '../instances/agent-process.ts';
import { originsIn } from '../instances/agent-input.ts';
import type { RevisionLog } from '../logs/deploy-logs.ts';
import type { DeploymentTraces } from '../traces/deployment-traces.ts';
import type { DeploymentGround } from './deployment-ground.ts';
import { readAccess } from './graph-access.ts';

export type RevisionFleet = {
  readonly revision: WantedRevision;
  readonly fleet: Fleet;
  readonly log: RevisionLog;
  /** The last lines that an agent server printed: why one that did not start ended. */
  lastLines(): readonly string[];
  served(): ServedRevision;
};

type FleetNeeds = {
  readonly wanted: Pick<WantedDeployment, 'id' | 'name' | 'workspaceId'>;
  readonly database: OpenDatabase;
  readonly user: AgentSpec['user'];
  /** As it is when an agent server starts. */
  policy(): WorkloadPolicy;
  readonly traces: Pick<DeploymentTraces, 'createService'>;
  /** Of those that may serve. */
  onChange(): void;
  /** It replaces another one. */
  readonly isSwitch: boolean;
};

const DEFAULT_CONFIG = 'langgraph.json';
const LAST_LINES = 5;
const DISK_BYTES = 2 * 1024 ** 3;

/** Starts nothing yet. Rejects with an Error for the owner of the deployment, or an `unavailable` one. */
export async function openRevisionFleet(
  ground: DeploymentGround,
  revision: WantedRevision,
  needs: FleetNeeds,
): Promise<RevisionFleet> {
  const { wanted, database, onChange } = needs;
  const { revisionId, configPath = DEFAULT_CONFIG, limits } = revision;
  const owner = { workspaceId: wanted.workspaceId, deploymentId: wanted.id };
  const { vault, store, logs } = ground;
  const variables = await openSecrets({ vault, db: store.db }, owner, revision.secretsVersion);
  const { access, cors } = await readAccess(revision.buildDirectory, configPath, originsIn(variables));
  const mask = createMask([...variables.values(), database.secrets.password, database.secrets.masterKey]);
  const log = logs.open({ ...owner, revisionId }, mask);
  const lines: (readonly [message: string, isCut: boolean])[] = [];
  /** Of a revision that was never ready, the switch says what became of it. */
  let hasServed = revision.status === 'DEPLOYED';
  const size = { memoryBytes: limits.memBytes, cpuMillicores: limits.cpuMillicores };
  const mountPrefix = ground.gateway.prefixOf(wanted.id);
  const identity = { id: wanted.id, name: wanted.name, revisionId, access, mountPrefix };
  const gatewayToken = randomBytes(32).toString('base64url');
  const specNow = (): AgentSpec => ({
    ...{ identity, user: needs.user, maxConnections: ground.agentConnections },
    traces: needs.traces.createService(),
    build: { directory: revision.buildDirectory, configPath },
    secrets: { variables, masterKey: database.secrets.masterKey, database: database.secrets },
    gatewayToken,
    limits: { ...limits, diskBytes: DISK_BYTES },
    network: { group: wanted.workspaceId, policy: needs.policy() },
    onLine({ instance, level, message, isCut }) {
      log.add({ level, message, instance }, isCut);
      lines.push([message, isCut]);
      if (lines.length > LAST_LINES) lines.shift();
    },
  });
  const fleet = new Fleet({
    async start(signal) {
      const started = await startCounted(ground, specNow, signal);
      // They may have changed while it started.
      await started.workload.applyPolicy(needs.policy());
      return started;
    },
    take: (): Taken | string =>
      needs.isSwitch ? ground.capacity.takeForSwitch(size) : ground.capacity.take(size),
    onChange() {
      hasServed = true;
      onChange();
    },
    onRestart(reason, pauseMs) {
      if (!hasServed) return;
      ground.events.onRestarted();
      log.add({ level: 'ERROR', message: `${reason}; the next start is in ${Math.round(pauseMs / 1000)} s` });
    },
    targets: ground.gateway.targets,
    drainMs: ground.drainMs,
  });
  return {
    ...{ revision, fleet, log },
    lastLines: () => lines.map(([message, isCut]) => mask(message, isCut)),
    served: () => ({ id: revisionId, access, cors, instances: fleet.served }),
  };
}

async function startCounted(ground: DeploymentGround, specNow: () => AgentSpec, signal: AbortSignal) {
  const beganMs = performance.now();
  const started = await ground.turns.run(() => startAgentProcess(ground.agents, specNow(), signal), signal);
  ground.events.onStarted((performance.now() - beganMs) / 1000);
  return started;
}
