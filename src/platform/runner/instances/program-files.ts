// What an agent server needs of this program in the namespace of a deployment: the launcher, the program with its packages, and Node.
// Nothing else of the machine, such as a data directory that is beside the sources.
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** In a checkout there is `src`, in the package and the image `dist`. */
const PARTS: readonly string[] = ['bin', 'dist', 'src', 'node_modules', 'package.json'];

/** `command`: Node and the launcher. Without symbolic links: what is mounted is what is there now. */
export function findProgramFiles([node = '', launcher = '']: readonly string[]): readonly string[] {
  const root = dirname(dirname(realpathSync(launcher)));
  const parts = PARTS.map((name) => join(root, name)).filter((path) => existsSync(path));
  const all = [node, ...parts, ...installedBeside(root)].map((path) => realpathSync(path));
  return [...new Set(all)].filter((path, _, others) => !others.some((one) => isWithin(path, one)));
}

/** An installed package finds its dependencies beside itself. */
function installedBeside(root: string): readonly string[] {
  const folders = [dirname(root), dirname(dirname(root))];
  return folders.filter((folder) => basename(folder) === 'node_modules').slice(0, 1);
}

function isWithin(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}
