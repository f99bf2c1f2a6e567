// Which machine takes a new box: any, but for a box whose creator asked for a capacity, which needs one that holds storage.
import type { Database, Store } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';
import { moveBox } from '../box-moves.ts';
import { NOT_HELD } from '../sizes/box-sizes.ts';
import type { MachineLease } from './lease.ts';

export type Claiming = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly lease: Pick<MachineLease, 'fence'>;
};

/** Takes the boxes that no machine has. Several machines may try. */
export async function claimBoxes({ store, lease }: Claiming, machineId: string): Promise<void> {
  const { db } = store;
  await sql`
    update boxes set machine_id = ${machineId}
    where id in (select id from boxes where machine_id is null
        and (not asks_capacity or exists (select from box_machines where id = ${machineId} and holds_storage))
      for update skip locked)`.execute(db);
  const left = await selectLeft(db).execute();
  if (left.length === 0) return;
  await store.write(async (trx) => {
    await lease.fence(trx);
    for (const { id, workspace_id: workspaceId } of await selectLeft(trx).forNoKeyUpdate().execute()) {
      const move = { from: 'provisioning', to: 'failed', reason: 'start_failed' } as const;
      await moveBox(trx, { id, workspaceId, ...move, set: { status_message: NOT_HELD } });
    }
  });
}

/** New boxes that no machine will take, because each that is there is known not to hold storage. */
function selectLeft(db: Pick<Database, 'selectFrom'>) {
  return db
    .selectFrom('boxes')
    .select(['id', 'workspace_id'])
    .where('machine_id', 'is', null)
    .where('status', '=', 'provisioning')
    .where('asks_capacity', '=', true)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('box_machines')
            .select('id')
            .where('seen_at', '>', sql<Date>`now() - interval '1 minute'`)
            .where('holds_storage', 'is distinct from', false),
        ),
      ),
    );
}
