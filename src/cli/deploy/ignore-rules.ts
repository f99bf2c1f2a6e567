// Which files of a directory are left out of its archive: those of .gitignore, of .dockerignore, and what is never a source. The
// adapter of `ignore`, which reads patterns as git does.
import { access, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import ignore, { type Ignore } from 'ignore';
import { InputError } from '../../base/input-error.ts';
import { codeOf } from '../../tls/pem-files.ts';

/** Installed or generated again where the source is built. A submodule has a file `.git`. */
const NEVER: ReadonlySet<string> = new Set([
  '.git',
  'node_modules',
  '__pycache__',
  '.venv',
  'venv',
  '.tox',
  '.mypy_cache',
]);

type IgnoreFile = { readonly file: string; readonly directory: string; readonly rules: Ignore };

/** Paths are relative to the packed directory, with `/`; that of a directory ends with one. */
export class IgnoreRules {
  readonly #root: string;
  /** From the top of the repository down. */
  readonly #git: readonly IgnoreFile[];
  readonly #docker: readonly IgnoreFile[];

  private constructor(root: string, git: readonly IgnoreFile[], docker: readonly IgnoreFile[]) {
    this.#root = root;
    this.#git = git;
    this.#docker = docker;
  }

  /** Of `root` and, in a repository, of what is above it: a .gitignore at the top may name files of every folder. */
  static async read(root: string): Promise<IgnoreRules> {
    const git = await Promise.all(
      [...(await directoriesAbove(root)), root].map((directory) => readRules(directory, '.gitignore')),
    );
    return new IgnoreRules(root, git.flat(), await readRules(root, '.dockerignore'));
  }

  /** The rules inside of `directory`, with its own .gitignore. */
  async inside(directory: string): Promise<IgnoreRules> {
    const own = await readRules(join(this.#root, directory), '.gitignore');
    return own.length === 0 ? this : new IgnoreRules(this.#root, [...this.#git, ...own], this.#docker);
  }

  /** What leaves `path` out, for a message; undefined: it is packed. */
  reasonFor(path: string): string | undefined {
    const name = path.replace(/\/$/, '').split('/').at(-1) ?? '';
    if (NEVER.has(name)) return 'its name, which no source has';
    const full = join(this.#root, path);
    return decidingFile(this.#docker, full) ?? decidingFile(this.#git.toReversed(), full);
  }
}

/** The deepest file with a pattern for the path decides, as in git. */
function decidingFile(files: readonly IgnoreFile[], full: string): string | undefined {
  const slash = full.endsWith('/') ? '/' : '';
  for (const { file, directory, rules } of files) {
    const { ignored, unignored } = rules.test(`${relative(directory, full)}${slash}`);
    if (ignored) return file;
    if (unignored) return undefined;
  }
  return undefined;
}

async function readRules(directory: string, name: string): Promise<readonly IgnoreFile[]> {
  const file = join(directory, name);
  try {
    // Otherwise patterns match names of another case, unlike those of git.
    const rules = ignore({ ignorecase: false }).add(await readFile(file, 'utf8'));
    return [{ file, directory, rules }];
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return [];
    throw new InputError(`${file} cannot be read (${String(codeOf(cause))})`, { cause });
  }
}

/** From the top of the repository down to the parent of `root`; none outside of a repository. */
async function directoriesAbove(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (let at = root; !(await isRepository(at)); at = dirname(at)) {
    if (dirname(at) === at) return [];
    found.unshift(dirname(at));
  }
  return found;
}

function isRepository(directory: string): Promise<boolean> {
  return access(join(directory, '.git')).then(
    () => true,
    () => false,
  );
}
