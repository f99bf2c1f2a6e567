// Which Sallyport is measured: its version, and the commit of its checkout if it is one.
import { spawnSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';

export type Product = {
  readonly version: string;
  /** With `-dirty` when files of the checkout were changed. */
  readonly commit: string;
  /** The folder of --package, as it was given. */
  readonly package?: string;
};

const UNKNOWN = 'unknown';
const root: string = join(import.meta.dirname, '..', '..');

export function describeProduct(packageFolder: string | undefined): Product {
  const folder = packageFolder ?? root;
  return {
    version: versionOf(folder),
    commit: commitOf(folder),
    ...(packageFolder === undefined ? {} : { package: packageFolder }),
  };
}

function versionOf(folder: string): string {
  try {
    return String(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version ?? UNKNOWN);
  } catch {
    return UNKNOWN;
  }
}

/** Only of a folder that is a checkout itself: one inside of another repository is not what that repository has. */
function commitOf(folder: string): string {
  if (git(folder, ['rev-parse', '--show-toplevel']) !== realpathSync(folder)) return UNKNOWN;
  return git(folder, ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']) ?? UNKNOWN;
}

function git(folder: string, args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}
