// The lease of an attempt: renewed while its worker lives, and the only right to write what the attempt has done.
import { DomainError } from '../../../base/domain-error.ts';
import type { Database, Store } from '../../store/database.ts';
import type { RunCheckpoints, RunProgress } from '../files/run-progress.ts';
import { noProgress } from '../files/run-progress.ts';
import { addMs, type Clock } from './clock.ts';
import { LEASE_MS } from './run-claims.ts';

export type LeasedRun = { readonly runId: string; readonly leaseId: string };

/** The run was cancelled or stopped with its export, or another worker has it. */
export class LeaseLost extends DomainError {
  override readonly name = 'LeaseLost';

  constructor() {
    super('conflict', 'The lease of this attempt is lost');
  }
}

/** With the rows that are read so far. False: it is lost. */
export async function renewLease(
  db: Database,
  { runId, leaseId, rows }: LeasedRun & { readonly rows?: number },
  clock: Clock,
): Promise<boolean> {
  const until = addMs(await clock(db), LEASE_MS);
  const renewed = await db
    .updateTable('export_runs')
    .set({ lease_until: until, ...(rows === undefined ? {} : { rows_read: rows }) })
    .where('id', '=', runId)
    .where('lease_id', '=', leaseId)
    .returning('id')
    .executeTakeFirst();
  return renewed !== undefined;
}

/** Each of its calls throws LeaseLost where the lease is lost. */
export function createCheckpoints(
  { db }: Pick<Store, 'db'>,
  { runId, leaseId }: LeasedRun,
  clock: Clock,
): RunCheckpoints {
  const store = async (progress: RunProgress): Promise<void> => {
    const stored = await db
      .updateTable('export_runs')
      .set({ progress: JSON.stringify(progress), updated_at: await clock(db) })
      .where('id', '=', runId)
      .where('lease_id', '=', leaseId)
      .returning('id')
      .executeTakeFirst();
    if (stored === undefined) throw new LeaseLost();
  };
  const load = async (): Promise<RunProgress> => {
    const row = await db
      .selectFrom('export_runs')
      .select('progress')
      .where('id', '=', runId)
      .where('lease_id', '=', leaseId)
      .executeTakeFirst();
    if (row === undefined) throw new LeaseLost();
    return row.progress ?? noProgress;
  };
  return {
    load,
    beginUpload: async (pendingUpload) => store({ ...(await load()), pendingUpload }),
    commitFile: store,
  };
}
