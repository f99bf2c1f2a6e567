// The builds of a deployment that goes, on the disk of this machine. What hostile code wrote there is removed as such.
import { removeTree } from '../../../workload/tree-removal.ts';
import type { Reader } from '../../store/database.ts';

export type BuildsOf = {
  readonly deploymentId: string;
  readonly machineId: string;
  /** That all builds of this machine are in. */
  readonly directory: string;
};

/** Rejects while something is left. */
export async function removeBuildsOf(
  db: Reader,
  { deploymentId, machineId, directory }: BuildsOf,
): Promise<void> {
  const rows = await db
    .selectFrom('builds')
    .select('directory')
    .where('deployment_id', '=', deploymentId)
    .where('machine_id', '=', machineId)
    .execute();
  for (const { directory: path } of rows) {
    if (path === null || !path.startsWith(`${directory}/`)) continue;
    if (!(await removeTree(path))) throw new Error('a build of the deployment cannot be removed');
  }
}
