// What a runner removes once in a while: databases of deployments that went with their workspace, and the rows of runners that nobody
// renews. Every runner may do it.
import { describeBug } from '../../base/log.ts';
import { removeLostRunners } from '../deployments/runners.ts';
import { dropServerDatabase } from './databases/server-databases.ts';
import { forgetServerDatabase, readLeftoverDatabases } from './databases/leftover-databases.ts';
import type { DeploymentGround } from './deployments/deployment-ground.ts';

const INTERVAL_MS = 20_000;

/** Returns what is called often, and works once in a while, in the background. */
export function createUpkeep(
  { store, databases, log }: Pick<DeploymentGround, 'store' | 'databases' | 'log'>,
  now: () => number = () => performance.now(),
): () => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  let isRunning = false;
  const work = async (): Promise<void> => {
    await removeLostRunners(store.db);
    for (const name of await readLeftoverDatabases(store.db))
      try {
        await dropServerDatabase(databases.owner, { database: name, role: name });
        await forgetServerDatabase(store.db, name);
      } catch (error) {
        log.warn(
          { ...describeBug(error), name },
          'the database of a deployment that is gone was not dropped',
        );
      }
  };
  return () => {
    if (isRunning || now() < nextMs) return;
    isRunning = true;
    work()
      .catch((error: unknown) => log.warn(describeBug(error), 'what is left of deployments was not removed'))
      .finally(() => {
        isRunning = false;
        nextMs = now() + INTERVAL_MS;
      });
  };
}
