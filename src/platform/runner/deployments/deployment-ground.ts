// What all deployments of a runner share.
import type { Log } from '../../../base/log.ts';
import type { DeploymentGateway } from '../../deployment-gateway/deployment-gateway.ts';
import type { Store } from '../../store/database.ts';
import type { Vault } from '../../vault/vault.ts';
import type { DatabaseParts } from '../databases/deployment-database.ts';
import type { Capacity } from '../fleet/capacity.ts';
import type { StartTurns } from '../fleet/start-turns.ts';
import type { AgentGround } from '../instances/agent-process.ts';
import type { DeployLogs } from '../logs/deploy-logs.ts';

export type DeploymentGround = {
  readonly runnerId: string;
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly vault: Vault;
  readonly log: Log;
  readonly logs: DeployLogs;
  readonly agents: AgentGround;
  readonly databases: DatabaseParts;
  readonly gateway: Pick<DeploymentGateway, 'targets' | 'prefixOf'>;
  readonly capacity: Capacity;
  readonly turns: StartTurns;
  /** Of one agent server. */
  readonly agentConnections: number;
  /** Where runs of deployments are sent to; undefined: they do not trace. */
  readonly platformUrl: string | undefined;
  /** Removes the builds of a deployment that goes. */
  removeBuilds(deploymentId: string): Promise<void>;
  readonly events: RunnerEvents;
  readonly drainMs?: number;
};

/** For metrics. */
export type RunnerEvents = {
  onStarted(seconds: number): void;
  onRestarted(): void;
  onSwitched(outcome: 'deployed' | 'failed' | 'interrupted', seconds: number): void;
};
