// The end of a deployment of which nothing runs any more: each of its parts is removed, and its row last, so that a runner that is killed in
// between begins again.
import { rm } from 'node:fs/promises';
import { finishDeletion } from '../../deployments/deployment-deletion.ts';
import { databaseDirectoryOf, dropDeploymentDatabase } from '../databases/deployment-database.ts';
import type { DeploymentGround } from './deployment-ground.ts';

/** Rejects when a part cannot be removed now. */
export async function removeDeployment(ground: DeploymentGround, deploymentId: string): Promise<void> {
  const { databases, agents, store, runnerId } = ground;
  await dropDeploymentDatabase(databases, deploymentId);
  await removeSocket(ground, deploymentId);
  await ground.removeBuilds(deploymentId);
  await agents.workloads.releaseUser(deploymentId);
  await finishDeletion(store, deploymentId, runnerId);
}

/** What this machine has of one that is no longer its own: nothing, where it went with its workspace. */
export async function forgetDeployment(ground: DeploymentGround, deploymentId: string): Promise<void> {
  await removeSocket(ground, deploymentId);
  const { db } = ground.store;
  const found = db.selectFrom('deployments').select('id').where('id', '=', deploymentId);
  if ((await found.executeTakeFirst()) === undefined) await ground.agents.workloads.releaseUser(deploymentId);
}

/** No workload can write to its directory. */
async function removeSocket({ databases }: DeploymentGround, deploymentId: string): Promise<void> {
  await rm(databaseDirectoryOf(databases, deploymentId), { recursive: true, force: true });
}
