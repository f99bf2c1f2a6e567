// Renews the leases of the runs that this process executes, and finds out which of them it has lost, and which somebody has cancelled.
import { describeBug, type Log } from '../../../base/log.ts';
import type { Store } from '../../store/database.ts';
import { type Claim, renewLeases } from './claims.ts';
import type { RunControl } from './run-control.ts';

export type Renewal = { readonly store: Pick<Store, 'db'>; readonly owner: string; readonly log: Log };
type Held = { readonly claim: Claim; readonly control: RunControl };

/** Never rejects: the next renewal comes by itself. */
export async function renewRuns({ store, owner, log }: Renewal, known: readonly Held[]): Promise<void> {
  if (known.length === 0) return;
  try {
    const ids = known.map(({ claim }) => claim.run_id);
    const held = new Map((await renewLeases(store.db, owner, ids)).map((one) => [one.run_id, one]));
    for (const { claim, control } of known) {
      const row = held.get(claim.run_id);
      // It may have ended meanwhile.
      if (row?.attempt !== claim.attempt) control.end('lost');
      else if (row.cancellation !== null) control.end(row.cancellation);
    }
  } catch (error) {
    log.warn(describeBug(error), 'the leases of runs could not be renewed');
  }
}
