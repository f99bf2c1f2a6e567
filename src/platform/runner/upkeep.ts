// What a runner removes once in a while: databases of deployments that went with their workspace, and the rows of runners that nobody
// renews, which every runner may do; and host users of this machine whose deployment went while no runner was there to end it.
import { describeBug } from '../../base/log.ts';
import type { Workloads } from '../../workload/workload.ts';
import { removeLostRunners } from '../deployments/runners.ts';
import { dropServerDatabase } from './databases/server-databases.ts';
import { forgetServerDatabase, readLeftoverDatabases } from './databases/leftover-databases.ts';
import type { DeploymentGround } from './deployments/deployment-ground.ts';

const INTERVAL_MS = 20_000;
/** Of the owners of host users: others are builds. */
const DEPLOYMENT = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export type UpkeepGround = Pick<DeploymentGround, 'store' | 'databases' | 'log'> & {
  readonly agents: { readonly workloads: Pick<Workloads, 'owners' | 'releaseUser'> };
};

/** `isHere`: something of a deployment may run on this machine. Returns what is called often, and works once in a while, in the background. */
export function createUpkeep(
  { store, databases, agents, log }: UpkeepGround,
  isHere: (deploymentId: string) => boolean,
  now: () => number = () => performance.now(),
): () => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  let isRunning = false;
  /** What cannot be removed holds up nothing else. */
  const tryEach = async (failure: string, what: object, remove: () => Promise<void>): Promise<void> => {
    try {
      await remove();
    } catch (error) {
      log.warn({ ...describeBug(error), ...what }, failure);
    }
  };
  const releaseUsers = async (): Promise<void> => {
    const { workloads } = agents;
    const owners = [...workloads.owners].filter((owner) => DEPLOYMENT.test(owner) && !isHere(owner));
    if (owners.length === 0) return;
    const rows = await store.db.selectFrom('deployments').select('id').where('id', 'in', owners).execute();
    const known = new Set(rows.map(({ id }) => id));
    for (const deployment of owners)
      if (!known.has(deployment) && !isHere(deployment))
        await tryEach('the host user of a deployment that is gone was not released', { deployment }, () =>
          workloads.releaseUser(deployment),
        );
  };
  const dropDatabases = async (): Promise<void> => {
    for (const name of await readLeftoverDatabases(store.db))
      await tryEach('the database of a deployment that is gone was not dropped', { name }, async () => {
        await dropServerDatabase(databases.owner, { database: name, role: name });
        await forgetServerDatabase(store.db, name);
      });
  };
  const work = async (): Promise<void> => {
    await removeLostRunners(store.db);
    await releaseUsers();
    await dropDatabases();
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
