// The builds of a runner: from when its row is there until it closes.
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../base/log.ts';
import type { Workloads } from '../workload/workload.ts';
import { type BuildEnd, type Builder, createBuilder } from './builder/builder.ts';
import type { BuilderSettings } from './builder/settings.ts';
import { openSecretMask } from './deployments/secret-mask.ts';
import { openSourceStore, type SourcePlace } from './deployments/source-store.ts';
import type { ProgramStorage } from './programs/program-storage.ts';
import type { Pools } from './store/pools.ts';
import type { Vault } from './vault/vault.ts';

export type BuildParts = {
  readonly settings: BuilderSettings;
  /** Where the platform keeps what was uploaded. */
  readonly sources: SourcePlace;
  readonly storage: Pick<ProgramStorage<Pools>, 'pools' | 'notifications'>;
  readonly workloads: Workloads;
  readonly vault: Vault;
  /** Of all that it builds. */
  readonly directory: string;
  readonly runnerId: string;
  readonly machineId: string;
  readonly log: Log;
  /** For metrics. */
  readonly onEnd: (end: BuildEnd) => void;
};

export type RunnerBuilds = Pick<Builder, 'removeBuilds'> & {
  /**
   * Once the row of the runner is there. What was deployed before this process began goes first: nothing is built until it responds to
   * requests, for a few seconds at most.
   */
  begin(deployed: { readonly isServing: boolean }): void;
  /** What has begun is built by the runner that follows. */
  close(): Promise<void>;
};

export function createRunnerBuilds(parts: BuildParts): RunnerBuilds {
  const { settings, sources, storage, workloads, vault, directory, runnerId, machineId, log, onEnd } = parts;
  const { db } = storage.pools.long;
  const builder = createBuilder({
    ...{ store: storage.pools.long, notifications: storage.notifications, workloads, directory, log },
    claimer: { runnerId, machineId },
    sources: openSourceStore(sources),
    openMask: (task) => openSecretMask({ vault, db }, task, task.secretsVersion),
    ...{ settings, node: process.execPath, env: process.env, onEnd },
  });
  const stopped = new AbortController();
  let building: Promise<void> | undefined;
  return {
    removeBuilds: (deploymentId) => builder.removeBuilds(deploymentId),
    begin(deployed) {
      building = whenServing(deployed, stopped.signal)
        .then(() => builder.run(stopped.signal))
        .catch((error: unknown) => log.error(describeBug(error), 'the runner builds nothing any more'));
    },
    async close() {
      stopped.abort();
      await building;
    },
  };
}

const FIRST_MS = 10_000;
const LOOK_MS = 100;

/** Resolves as well where that takes too long. */
export async function whenServing(
  deployed: { readonly isServing: boolean },
  signal: AbortSignal,
  limitMs: number = FIRST_MS,
): Promise<void> {
  const lateMs = performance.now() + limitMs;
  while (!deployed.isServing && !signal.aborted && performance.now() < lateMs) await delay(LOOK_MS);
}
