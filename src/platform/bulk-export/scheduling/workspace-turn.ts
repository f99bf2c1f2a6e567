// Whoever changes the states of the exports of a workspace locks its row first: limits are counted and moves decided one after another,
// and two of them never wait for each other in a circle.
import type { Transaction } from '../../store/database.ts';
import { notify } from '../../store/postgres/notifications.ts';

/** False: the workspace is gone. */
export async function lockExportsOf(trx: Transaction, workspaceId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('id', '=', workspaceId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

/** False: the workspace is gone, or somebody else changes its exports at the moment. */
export async function tryLockExportsOf(trx: Transaction, workspaceId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('workspaces')
    .select('id')
    .where('id', '=', workspaceId)
    .forNoKeyUpdate()
    .skipLocked()
    .executeTakeFirst();
  return row !== undefined;
}

/** Wakes the workers, with the commit: they look for runs that they can begin, and for attempts that have to end. */
export async function wakeWorkers(trx: Transaction, workspaceId: string): Promise<void> {
  await notify(trx, 'exports', workspaceId);
}
