// Removes the files that no row of the database names: of what is gone, of what was never used, and what a process that was killed has
// left. Each process looks at what it can reach.
import { setTimeout } from 'node:timers/promises';
import { describeBug, type Log } from '../../../base/log.ts';
import type { FileStore } from './file-store.ts';

/** What is written has a row by then: a request takes ten minutes at most. */
const MIN_AGE_MS = 3_600_000;
const BATCH = 500;

type Sweep = {
  readonly files: Pick<FileStore, 'list' | 'remove'>;
  /** Those of the paths that rows name. */
  known(paths: readonly string[]): Promise<ReadonlySet<string | null>>;
};

export type SweepParts = Pick<Sweep, 'known'> & {
  open(): Promise<Sweep['files']>;
  readonly everyMs: number;
  readonly log: Log;
  /** Of the log line about an error. */
  readonly problem: string;
};

export function startFileSweep({ open, known, everyMs, log, problem }: SweepParts): {
  close(): Promise<void>;
} {
  const closing = new AbortController();
  const { signal } = closing;
  const sweep = async (): Promise<void> => {
    await sweepFiles({ files: await open(), known }, MIN_AGE_MS, signal);
  };
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      await setTimeout(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await sweep().catch((error: unknown) => log.warn(describeBug(error), problem));
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
export async function sweepFiles(
  { files, known }: Sweep,
  minAgeMs: number,
  signal?: AbortSignal,
): Promise<number> {
  let removed = 0;
  let batch: string[] = [];
  const finish = async (): Promise<void> => {
    const named = batch.length === 0 ? new Set() : await known(batch);
    const orphans = batch.filter((path) => !named.has(path));
    for (const path of orphans) await files.remove(path);
    removed += orphans.length;
    batch = [];
  };
  for await (const path of files.list(minAgeMs)) {
    if (signal?.aborted === true) return removed;
    batch.push(path);
    if (batch.length === BATCH) await finish();
  }
  await finish();
  return removed;
}
