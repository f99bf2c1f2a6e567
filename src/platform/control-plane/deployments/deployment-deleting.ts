// Deletes a deployment, and with it the tracing project of its name where the caller asks for that.
import type { WorkspaceGrant } from '../../api/access.ts';
import { beginDeletion } from '../../deployments/deployment-deletion.ts';
import { requirePermission } from '../../identity/authorization.ts';
import type { Transaction } from '../../store/database.ts';
import { removeTracingProject, revokeTraceToken } from '../../traces/contract.ts';
import { lockQuotas } from './deployment-quotas.ts';
import { findDeployment, lockDeployment } from './deployments.ts';
import type { Write } from './deployment-writing.ts';

export type DeletionScope = { readonly withTracingProject: boolean };

/** Throws `forbidden`: who deletes the project needs what its own route requires. */
export function toDeletionScope({
  permissions,
  query: { delete_tracing_project: withTracingProject },
}: Pick<WorkspaceGrant, 'permissions'> & {
  readonly query: { readonly delete_tracing_project: boolean };
}): DeletionScope {
  if (withTracingProject) requirePermission(permissions, 'projects:delete');
  return { withTracingProject };
}

export type Deleted = {
  readonly id: string;
  readonly name: string;
  /** Of the tracing project that went with it. */
  readonly projectId: string | undefined;
};

/**
 * Again for one that is being deleted: nothing more happens to it, and its tracing project may be deleted still. Throws `not_found`.
 */
export async function deleteDeployment(
  { db, workspaceId, actor }: Write,
  id: string,
  { withTracingProject }: DeletionScope,
): Promise<Deleted> {
  await lockQuotas(db, workspaceId);
  const { name, status } = await findDeployment(db, workspaceId, id);
  if (status !== 'AWAITING_DELETE') {
    await lockDeployment(db, workspaceId, id);
    await beginDeletion(db, id, actor);
    await revokeTraceToken(db, id);
  }
  const isLeft = withTracingProject && !(await hasDeployment(db, workspaceId, name));
  const projectId = isLeft ? await removeTracingProject(db, workspaceId, name) : undefined;
  return { id, name, projectId };
}

/** The name of one that is being deleted is free: the project is that of the deployment that has it since. */
async function hasDeployment(db: Transaction, workspaceId: string, name: string): Promise<boolean> {
  const found = await db
    .selectFrom('deployments')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .where('status', '<>', 'AWAITING_DELETE')
    .executeTakeFirst();
  return found !== undefined;
}
