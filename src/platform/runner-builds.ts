// The builds of a runner: from when its row is there until it closes.
import { join } from 'node:path';
import { describeBug, type Log } from '../base/log.ts';
import type { Workloads } from '../workload/workload.ts';
import { type Builder, createBuilder } from './builder/builder.ts';
import type { BuilderSettings } from './builder/settings.ts';
import { openSourceStore } from './deployments/source-store.ts';
import type { RunnerStorage } from './runner/program/storage.ts';

export type BuildParts = {
  readonly dataDirectory: string;
  readonly settings: BuilderSettings;
  readonly storage: Pick<RunnerStorage, 'pools' | 'notifications'>;
  readonly workloads: Workloads;
  /** Of all that it builds. */
  readonly directory: string;
  readonly runnerId: string;
  readonly machineId: string;
  readonly log: Log;
};

export type RunnerBuilds = Pick<Builder, 'removeBuilds'> & {
  /** Once the row of the runner is there. */
  begin(): void;
  /** What has begun is built by the runner that follows. */
  close(): Promise<void>;
};

export function createRunnerBuilds(parts: BuildParts): RunnerBuilds {
  const { dataDirectory, settings, storage, workloads, directory, runnerId, machineId, log } = parts;
  const builder = createBuilder({
    ...{ store: storage.pools.long, notifications: storage.notifications, workloads, directory, log },
    claimer: { runnerId, machineId },
    sources: openSourceStore({ directory: join(dataDirectory, 'deployment-sources'), machineId }),
    ...{ settings, node: process.execPath, env: process.env },
  });
  const stopped = new AbortController();
  let building: Promise<void> | undefined;
  return {
    removeBuilds: (deploymentId) => builder.removeBuilds(deploymentId),
    begin() {
      building = builder
        .run(stopped.signal)
        .catch((error: unknown) => log.error(describeBug(error), 'the runner builds nothing any more'));
    },
    async close() {
      stopped.abort();
      await building;
    },
  };
}
