// Changes of one workspace after another: one that fails, or whose lock somebody has, keeps none of the others waiting.
import { DomainError } from '../../../base/domain-error.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import type { Store, Transaction } from '../../store/database.ts';
import { codeOf } from '../../store/database-error.ts';
import { tryLockExportsOf } from './workspace-turn.ts';

export type WorkspaceWrites = {
  /**
   * Under the lock of the workspace. False: it is gone, somebody else changes its exports, or an earlier change of it has failed; the next
   * pass tries again. Throws what says nothing of the workspace: the database is away.
   */
  write(workspaceId: string, work: (trx: Transaction) => Promise<boolean>): Promise<boolean>;
  /** One line of the log for all that have failed. */
  report(): void;
};

const MAX_NAMED = 10;

export function createWorkspaceWrites({
  store,
  log,
}: {
  readonly store: Pick<Store, 'write'>;
  readonly log: Log;
}): WorkspaceWrites {
  const failed = new Map<string, unknown>();
  return {
    async write(workspaceId, work) {
      if (failed.has(workspaceId)) return false;
      try {
        return await store.write(
          async (trx) => (await tryLockExportsOf(trx, workspaceId)) && (await work(trx)),
        );
      } catch (error) {
        if (isOfDatabase(error)) throw error;
        failed.set(workspaceId, error);
        return false;
      }
    },
    report() {
      const [first] = failed.values();
      if (first === undefined) return;
      const named = { workspaces: [...failed.keys()].slice(0, MAX_NAMED), failed: failed.size };
      log.warn({ ...describeBug(first), ...named }, 'exports were not kept: they are tried again');
    },
  };
}

/** A statement took too long, a lock was not had in time, others changed the same. */
const OF_WORKSPACE: ReadonlySet<unknown> = new Set(['57014', '55P03', '40001', '40P01']);

function isOfDatabase(error: unknown): boolean {
  return (
    error instanceof DomainError && error.kind === 'unavailable' && !OF_WORKSPACE.has(codeOf(error.cause))
  );
}
