// What is known of this machine in the database, and the lease by which one process at a time reconciles its boxes. A lease and not an advisory
// lock: a pooler that gives each transaction another connection carries no lock of a session, and no connection is held.
import type { Capabilities, Runtime } from '../../runtime/contract.ts';
import type { Database } from '../../store/database.ts';
import { sql } from '../../store/sql.ts';

/** A process that died is followed after this time. */
export const LEASE_SECONDS = 6;
/** How often the lease is renewed: twice may fail. */
export const RENEWAL_MS = 2_000;

/** What runs the boxes of this machine: what it holds is asked for in requests that any machine serves. */
export async function noteRuntime(db: Database, machineId: string, runtime: Runtime): Promise<Capabilities> {
  const capabilities = await runtime.capabilities();
  const facts = { runtime: runtime.kind, holds_storage: capabilities.storage.isHeld };
  await db
    .insertInto('box_machines')
    .values({ id: machineId, holder: null, held_until: null, ...facts })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(facts))
    .execute();
  return capabilities;
}

/**
 * Boxes and snapshots of this machine, or that no machine has taken yet. One that ran boxes may have some that no row knows any more; one
 * that only has a gateway never ran any, and what runs boxes is not opened for it.
 */
export async function findWork(db: Database, machineId: string): Promise<true | undefined> {
  const machine = db
    .selectFrom('box_machines')
    .select('id')
    .where('id', '=', machineId)
    .where(({ eb, or }) => or([eb('runtime', 'is not', null), eb('held_until', 'is not', null)]));
  if ((await machine.executeTakeFirst()) !== undefined) return true;
  const find = (table: 'boxes' | 'snapshots') =>
    db
      .selectFrom(table)
      .select('id')
      .where(({ eb, or }) => or([eb('machine_id', 'is', null), eb('machine_id', '=', machineId)]))
      .limit(1)
      .executeTakeFirst();
  const found = (await find('boxes')) ?? (await find('snapshots'));
  return found && true;
}

export type Lease = { readonly machineId: string; readonly holder: string };

/** Takes the lease or renews it; false while another process has it. By the clock of the database. */
export async function renewLease(db: Database, { machineId, holder }: Lease): Promise<boolean> {
  const until = sql<Date>`now() + make_interval(secs => ${LEASE_SECONDS})`;
  const rows = await db
    .insertInto('box_machines')
    .values({ id: machineId, holder, held_until: until })
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet({ holder, held_until: until, seen_at: sql<Date>`now()`, lost_at: null })
        .where(({ eb, or }) =>
          or([
            eb('box_machines.holder', '=', holder),
            eb('box_machines.holder', 'is', null),
            eb('box_machines.held_until', '<', sql<Date>`now()`),
          ]),
        ),
    )
    .returning('id')
    .execute();
  return rows.length > 0;
}

/** Another process can take it at once. */
export async function releaseLease(db: Database, { machineId, holder }: Lease): Promise<void> {
  await db
    .updateTable('box_machines')
    .set({ holder: null })
    .where('id', '=', machineId)
    .where('holder', '=', holder)
    .execute();
}
