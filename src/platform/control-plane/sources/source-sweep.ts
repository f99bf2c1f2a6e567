// Removes the files of sources that no row names: of deployments and workspaces that are gone, of uploads that were never used, and
// what a process that was killed has left. Each process looks at what it can reach.
import { setTimeout } from 'node:timers/promises';
import { describeBug, type Log } from '../../../base/log.ts';
import type { RunningPart } from '../../module.ts';
import type { SourceStore } from '../../deployments/source-store.ts';
import type { Reader, Store } from '../../store/database.ts';

const EVERY_MS = 600_000;
/** What is written has a row by then: an upload takes ten minutes at most. */
const MIN_AGE_MS = 3_600_000;
const BATCH = 500;

export type SweepParts = {
  open(): Promise<SourceStore>;
  readonly store: Pick<Store, 'db'>;
  readonly log: Log;
};

export function startSourceSweep({ open, store, log }: SweepParts): RunningPart {
  const closing = new AbortController();
  const { signal } = closing;
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await setTimeout(EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await sweepSources(store.db, await open(), MIN_AGE_MS, signal).catch((error: unknown) =>
        log.warn(describeBug(error), 'sources that nothing needs were not removed'),
      );
    }
  };
  const running = run();
  return {
    async close() {
      closing.abort();
      await running;
    },
  };
}

/** How many it removed. */
export async function sweepSources(
  db: Reader,
  sources: SourceStore,
  minAgeMs: number,
  signal?: AbortSignal,
): Promise<number> {
  let removed = 0;
  let batch: string[] = [];
  const finish = async (): Promise<void> => {
    const known = await knownPaths(db, batch);
    const orphans = batch.filter((path) => !known.has(path));
    for (const path of orphans) await sources.remove(path);
    removed += orphans.length;
    batch = [];
  };
  for await (const path of sources.list(minAgeMs)) {
    if (signal?.aborted === true) return removed;
    batch.push(path);
    if (batch.length === BATCH) await finish();
  }
  await finish();
  return removed;
}

async function knownPaths(db: Reader, paths: readonly string[]): Promise<ReadonlySet<string | null>> {
  if (paths.length === 0) return new Set();
  const rows = await db
    .selectFrom('deployment_uploads')
    .select('stored_path')
    .where('stored_path', 'in', paths)
    .execute();
  return new Set(rows.map((row) => row.stored_path));
}
