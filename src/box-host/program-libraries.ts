// The shared libraries of a program of ours, and what loads them. A box gets them beside the program: the snapshot of the box may
// have other ones, or none.
import { basename } from 'node:path';
import { requireCommand } from './command.ts';

export type ProgramLibraries = {
  /** By the names that the program asks for; the loader is one of them. */
  readonly files: Readonly<Record<string, string>>;
  readonly loader: string;
};

/** Rejects with an Error that says why they are not found. */
export async function findLibraries(program: string): Promise<ProgramLibraries> {
  return parseLibraries(await requireCommand(`the libraries of ${program} are not found`, ['ldd', program]));
}

/** What ldd prints: `libm.so.6 => /lib/libm.so.6 (0x7f…)`, `/lib64/ld-linux-x86-64.so.2 (0x7f…)`. Throws an Error. */
export function parseLibraries(text: string): ProgramLibraries {
  const files: Record<string, string> = {};
  let loader: string | undefined;
  for (const line of text.split('\n')) {
    const { name, path } = LINE.exec(line)?.groups ?? {};
    if (line.includes('not found')) throw new Error(`a library of Node is missing: ${line.trim()}`);
    if (path === undefined) continue;
    if (name === undefined) loader = basename(path);
    files[name ?? basename(path)] = path;
  }
  if (loader === undefined) throw new Error('ldd names nothing that loads the libraries of Node');
  return { files, loader };
}

/** The one without an arrow loads the others; the vDSO has no path. */
const LINE = /^\s*(?:(?<name>[\w.+-]+) => )?(?<path>\/\S+) \(0x[0-9a-f]+\)$/;
