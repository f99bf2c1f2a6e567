// Moves the files of a state directory that an older version wrote into its parts. Each move is atomic, so a start that was
// interrupted is completed by the next one.
import { lstatSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { readInput } from '../../base/input-error.ts';
import { codeOf, fileError, syncDirectory } from '../../tls/pem-files.ts';
import { lockState } from './state-lock.ts';

export type StateMove = { readonly name: string; readonly to: string };

const LOCK = 'state.lock';

/** Throws an Error that names the file if one cannot be moved, or if a process uses the state. */
export async function moveStateFiles(directory: string, moves: readonly StateMove[]): Promise<void> {
  // Without sandboxes nothing is written after a start, and another process may use the CA at the same time.
  const stored = moves.find(({ name }) => name === 'sandboxes' || name === LOCK);
  const lock = stored && (await lockState(directory));
  try {
    for (const move of moves) if (move.name !== LOCK) await readInput(() => moveFile(directory, move));
    // Last: until then a process of the older version finds the state locked.
    if (stored) await readInput(() => moveFile(directory, { name: LOCK, to: stored.to }));
  } finally {
    lock?.release();
  }
  for (const changed of new Set([...moves.map(({ to }) => to), directory])) await syncDirectory(changed);
}

function moveFile(directory: string, { name, to }: StateMove): void {
  const from = join(directory, name);
  const target = join(to, name);
  const isTaken = lstatSync(target, { throwIfNoEntry: false }) !== undefined;
  const stats = lstatSync(from, { throwIfNoEntry: false });
  // Another process has moved it.
  if (stats === undefined) return;
  if (isTaken)
    throw fileError(from, `${target} exists too`, 'Keep the one that is in use, and move the other away');
  const hint = `Move it to ${target} while no proxy runs, or set another state_dir`;
  // A relative link would lead elsewhere from there.
  if (stats.isSymbolicLink()) throw fileError(from, 'a symbolic link, which is not moved', hint);
  try {
    renameSync(from, target);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT')
      throw fileError(from, `cannot be moved to ${target} (${codeOf(error)})`, hint, error);
  }
}
