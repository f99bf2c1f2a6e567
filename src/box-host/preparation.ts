// What the first box of a machine would wait for, done before: it is tried out what the machine can hold, and the snapshot `base`
// is made. Whatever is left undone, or is cut off, the first box does.
import { join } from 'node:path';
import { type Capabilities, detectCapabilities } from './bubblewrap/capabilities.ts';
import { DirectoryInUse, lockDirectory, prepareDirectory } from './directory-lock.ts';
import { SnapshotStore } from './snapshots/snapshot-store.ts';

export type Prepared =
  | { readonly kind: 'isolated'; readonly found: Capabilities }
  /** Why no box can be isolated, with what to do. */
  | { readonly kind: 'obstructed'; readonly obstacles: readonly string[] }
  /** A box host runs, or another preparation. */
  | { readonly kind: 'in_use' };

const BASE = 'base';

/** Throws an InputError that says what to do if the directory of the box host cannot be used. */
export async function prepareMachine(
  directory: string,
  detect: () => Promise<Capabilities> = detectCapabilities,
): Promise<Prepared> {
  const found = await detect();
  const { obstacles } = found;
  // Nothing is made on a machine that has no use for it.
  if (obstacles.length > 0) return { kind: 'obstructed', obstacles };
  await prepareDirectory(directory);
  try {
    // A box host that starts meanwhile waits for it: its platform tries again.
    using _ = await lockDirectory(directory);
    const snapshots = await openSnapshots(directory);
    if ((await snapshots.find(BASE)) === undefined) await snapshots.createBase(BASE);
    return { kind: 'isolated', found };
  } catch (error) {
    if (error instanceof DirectoryInUse) return { kind: 'in_use' };
    throw error;
  }
}

/** As the engine that isolates boxes has them. Opening them removes what was cut off. */
function openSnapshots(directory: string): Promise<SnapshotStore> {
  return SnapshotStore.open(join(directory, 'bubblewrap', 'snapshots'));
}

/** For whoever operates the machine. `wanted`: `sandboxes.runtime` of the platform. */
export function describePrepared(prepared: Prepared, wanted: 'auto' | 'bubblewrap'): readonly string[] {
  switch (prepared.kind) {
    case 'in_use':
      return ['A box host runs already: it makes what is missing with its next sandbox.'];
    case 'obstructed': {
      const what =
        wanted === 'auto'
          ? 'Sandboxes will be attached, and somebody else must run them'
          : 'No sandbox can be started';
      return [`${what}: this machine cannot isolate them: ${prepared.obstacles.join('; ')}`];
    }
    case 'isolated': {
      const { bubblewrap, limits, storage, warnings } = prepared.found;
      return [
        `Sandboxes will be isolated by bubblewrap ${bubblewrap}, and their base is made.`,
        `  limits: ${limits.missing.length === 0 ? 'held' : 'not all of them are held'}`,
        `  storage: ${storage === 'loop' ? 'held, on disk' : 'held, in memory'}`,
        ...warnings.map((warning) => `  ${warning}`),
      ];
    }
  }
}
