// Removes the files of sources that no row names: of deployments and workspaces that are gone, of uploads that were never used, and
// what a process that was killed has left.
import type { Log } from '../../../base/log.ts';
import type { RunningPart } from '../../module.ts';
import type { SourceStore } from '../../deployments/source-store.ts';
import type { Reader, Store } from '../../store/database.ts';
import { startFileSweep, sweepFiles } from '../../store/files/file-sweep.ts';

export type SweepParts = {
  open(): Promise<SourceStore>;
  readonly store: Pick<Store, 'db'>;
  readonly log: Log;
};

export function startSourceSweep({ open, store, log }: SweepParts): RunningPart {
  return startFileSweep({
    ...{ open, log, everyMs: 600_000, problem: 'sources that nothing needs were not removed' },
    known: (paths) => knownPaths(store.db, paths),
  });
}

/** How many it removed. */
export function sweepSources(
  db: Reader,
  sources: SourceStore,
  minAgeMs: number,
  signal?: AbortSignal,
): Promise<number> {
  return sweepFiles({ files: sources, known: (paths) => knownPaths(db, paths) }, minAgeMs, signal);
}

async function knownPaths(db: Reader, paths: readonly string[]): Promise<ReadonlySet<string | null>> {
  const rows = await db
    .selectFrom('deployment_uploads')
    .select('stored_path')
    .where('stored_path', 'in', paths)
    .execute();
  return new Set(rows.map((row) => row.stored_path));
}
