// Walks a folder without following links. What cannot be read is passed over; the memory depends on the depth and not on the
// number of entries.
import { lstat, opendir } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { CallError } from '../call-error.ts';

export type Entry<S> = {
  readonly path: string;
  readonly name: string;
  readonly isDirectory: boolean;
  readonly isFile: boolean;
  readonly state: S;
};

export type WalkOptions<S> = {
  readonly aborted: AbortSignal;
  readonly state: S;
  /** The state of an entry; undefined where the walk leaves it out, with all that is below it. */
  enter(name: string, above: S): S | undefined;
  /** Whether something below a folder of this state is wanted. */
  leadsOn(state: S): boolean;
};

/** Each level holds an open folder. */
const MAX_DEPTH = 128;
/** Of the kernel: without end, and not what somebody looks for. */
const KERNEL_FOLDERS: readonly string[] = ['/proc', '/sys', '/dev'];

/** The folder itself, whose absence is an error. */
export async function statFolder(path: string): Promise<Stats> {
  const stat = await lstat(`${path}/`);
  if (!stat.isDirectory()) throw new CallError('NOT_A_DIRECTORY');
  return stat;
}

/** The entries below a folder. */
export async function* walk<S>(
  path: string,
  options: WalkOptions<S>,
  depth: number = 0,
): AsyncGenerator<Entry<S>, void, undefined> {
  const folder = await opendir(path).catch(() => undefined);
  if (folder === undefined) return;
  for await (const entry of folder) {
    if (options.aborted.aborted) throw new CallError('CANCELLED');
    const state = options.enter(entry.name, options.state);
    if (state === undefined) continue;
    const below = `${path === '/' ? '' : path}/${entry.name}`;
    const isDirectory = entry.isDirectory();
    yield { path: below, name: entry.name, isDirectory, isFile: entry.isFile(), state };
    const isEntered = isDirectory && depth < MAX_DEPTH && !KERNEL_FOLDERS.includes(below);
    if (isEntered && options.leadsOn(state)) yield* walk(below, { ...options, state }, depth + 1);
  }
}
