// The lease of this process on its machine, as the process itself may rely on it. A statement or a call that took long may come back
// when another process has the lease: the time is checked before each call of the runtime, the holder within each transaction.
import type { Database, Transaction } from '../../store/database.ts';
import { type Lease, LEASE_SECONDS, releaseLease, RENEWAL_MS, renewLease } from './machine.ts';

/** Another process may reconcile the machine by now: nothing more is done for it. */
export class LeaseLost extends Error {
  override readonly name: string = 'LeaseLost';

  constructor() {
    super('another process may reconcile this machine by now');
  }
}

export type MachineLease = {
  /** False while another process has it. */
  renew(): Promise<boolean>;
  /** Renews as long as `work` takes. */
  keep<T>(work: Promise<T>): Promise<T>;
  /** Throws LeaseLost. Before each call of the runtime. */
  require(): void;
  /** Rejects with LeaseLost. In each transaction that writes what the runtime has done. */
  fence(trx: Transaction): Promise<void>;
  release(): Promise<void>;
};

export function createLease(db: Database, lease: Lease): MachineLease {
  // By the monotonic clock of this machine. The statement was sent before the database began to count, so this ends first.
  let heldUntil = Number.NEGATIVE_INFINITY;
  const { machineId, holder } = lease;
  const renew = async (): Promise<boolean> => {
    const sentAt = performance.now();
    const isHeld = await renewLease(db, lease);
    heldUntil = isHeld ? Math.max(heldUntil, sentAt + LEASE_SECONDS * 1000) : Number.NEGATIVE_INFINITY;
    return isHeld;
  };
  return {
    renew,
    async keep(work) {
      const timer = setInterval(() => void renew().catch(() => undefined), RENEWAL_MS);
      timer.unref();
      try {
        return await work;
      } finally {
        clearInterval(timer);
      }
    },
    require() {
      if (performance.now() >= heldUntil) throw new LeaseLost();
    },
    async fence(trx) {
      const own = trx.selectFrom('box_machines').select('id').where('id', '=', machineId);
      if ((await own.where('holder', '=', holder).executeTakeFirst()) !== undefined) return;
      heldUntil = Number.NEGATIVE_INFINITY;
      throw new LeaseLost();
    },
    release: () => releaseLease(db, lease),
  };
}
