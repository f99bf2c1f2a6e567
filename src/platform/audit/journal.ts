// Writes the audit log: one event at the end of an organization's chain, in the transaction of what it tells of.
import type { Transaction } from '../store/database.ts';
import type { Operation } from './operations.ts';

/** The native record, but for what the log adds: id, time and place in the chain. */
export type AuditEntry = {
  readonly organizationId: string;
  readonly workspaceId: string | undefined;
  readonly operation: Operation;
  readonly isSuccess: boolean;
  readonly userId: string | undefined;
  /** The key that was used; undefined for what the system does by itself. */
  readonly keyId: string | undefined;
  readonly request:
    | {
        readonly method: string;
        readonly path: string;
        readonly clientHost: string | undefined;
        readonly clientPort: number | undefined;
        readonly forwardedFor: string | undefined;
      }
    | undefined;
  /** Of the answer; undefined when there was none. */
  readonly status: number | undefined;
  /** Ids of what was affected. */
  readonly resources: readonly string[];
};

/** The last statement of its transaction: it holds the organization's chain until the commit. */
export async function appendEvent(trx: Transaction, entry: AuditEntry): Promise<void> {
  throw new Error(`not there yet: ${entry.operation} ${String(trx)}`);
}
