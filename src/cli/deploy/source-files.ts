// The files of a directory that its archive gets: regular ones that no rule leaves out. Links are not followed, because what they
// lead to may lie outside.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { IgnoreRules } from './ignore-rules.ts';

/** What the platform unpacks of one archive. */
const MAX_FILES = 100_000;

export type SourceFiles = {
  /** Relative to the directory, with `/`, in the order of their characters. */
  readonly paths: readonly string[];
  /** Links, sockets and devices, which are left out whatever the rules say. */
  readonly irregular: readonly string[];
};

/** `leftOut`: files that are not packed although no rule names them. */
export async function findSourceFiles(root: string, leftOut: readonly string[] = []): Promise<SourceFiles> {
  const paths: string[] = [];
  const irregular: string[] = [];
  const walk = async (directory: string, above: IgnoreRules): Promise<void> => {
    const rules = directory === '' ? above : await above.inside(directory);
    for (const entry of await readdir(join(root, directory), { withFileTypes: true })) {
      const path = `${directory}${entry.name}`;
      const isFolder = entry.isDirectory();
      if (leftOut.includes(path) || rules.reasonFor(isFolder ? `${path}/` : path) !== undefined) continue;
      if (isFolder) await walk(`${path}/`, rules);
      else if (entry.isFile()) paths.push(path);
      else irregular.push(path);
      if (paths.length > MAX_FILES) throw new InputError(tooMany(root));
    }
  };
  await walk('', await IgnoreRules.read(root));
  return { paths: paths.toSorted(byCharacters), irregular: irregular.toSorted(byCharacters) };
}

/** Not by the rules of a language, which differ between machines. */
function byCharacters(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function tooMany(root: string): string {
  return `${root} has more than ${MAX_FILES} files: leave out what is no source in .gitignore or .dockerignore`;
}
