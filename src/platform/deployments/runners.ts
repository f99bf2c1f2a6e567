// The runners of all machines: each renews its row, and what one had is taken over when it was not seen for half a minute.
import type { Database } from '../store/database.ts';
import { sql } from '../store/sql.ts';
import './deployment-rows.ts';

/** By the clock of the database. */
export const RUNNER_LOST_SECONDS = 30;
export const RUNNER_RENEWAL_MS = 5_000;

export type Runner = {
  readonly id: string;
  readonly machineId: string;
  readonly host: string;
  readonly pid: number;
  /** Undefined until it is known. */
  readonly gatewayUrl?: string | undefined;
  readonly isolation?: string | undefined;
};

/**
 * Once for each process, which holds the lock of its data directory: those before it on this machine have ended, and what they
 * had is free at once.
 */
export async function registerRunner(db: Database, runner: Runner): Promise<void> {
  const { id, machineId, host, pid, gatewayUrl = null, isolation = null } = runner;
  await db.deleteFrom('runners').where('machine_id', '=', machineId).where('id', '<>', id).execute();
  const facts = { gateway_url: gatewayUrl, isolation };
  await db
    .insertInto('runners')
    .values({ id, machine_id: machineId, host, pid, ...facts })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ ...facts, seen_at: sql<Date>`now()` }))
    .execute();
}

/** False: it was removed, and everything it had may be another's by now. */
export async function renewRunner(db: Database, runnerId: string): Promise<boolean> {
  const seen = db.updateTable('runners').set({ seen_at: sql<Date>`now()` });
  return (await seen.where('id', '=', runnerId).returning('id').executeTakeFirst()) !== undefined;
}

/** When a runner ends: others may take what it had. */
export async function removeRunner(db: Database, runnerId: string): Promise<void> {
  await db.deleteFrom('runners').where('id', '=', runnerId).execute();
}

/** Rows that nobody renews: kept for a while, for those who look for what became of them. */
export async function removeLostRunners(db: Database): Promise<void> {
  const before = sql<Date>`now() - interval '1 day'`;
  await db.deleteFrom('runners').where('seen_at', '<', before).execute();
}

/** Of rows that join `runners as n` by their runner: it is gone or was not seen. */
export const isLostRunner = sql<boolean>`(n.id is null or n.seen_at < now() - make_interval(secs => ${RUNNER_LOST_SECONDS}))`;
