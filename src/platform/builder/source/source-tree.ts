// Writes what an archive of a tenant contains below an empty directory. There is no link in it while files are written: links
// are made last, when it is known where each of them leads.
import { type ArchiveEntry, checkLinkTarget, parseEntryPath, refusal } from '../../../base/archive/entry.ts';
import {
  FileTree,
  type TreeLimits,
  type TreeModes,
  type TreeOwner,
} from '../../../base/archive/file-tree.ts';
import { InputError } from '../../../base/input-error.ts';
import { findLinkProblem } from './link-resolution.ts';

const MODES: TreeModes = { directory: 0o755, file: 0o644, executable: 0o755 };

/** Of all paths and targets: they are held in memory, and one may have 4,095 bytes that compress to nothing. */
const MAX_PATH_CHARS = 32 * 1024 * 1024;

export class SourceTree {
  readonly #tree: FileTree;
  readonly #maxEntries: number;
  readonly #kinds = new Map<string, ArchiveEntry['kind']>();
  /** As a file system has them that knows no case. */
  readonly #folded = new Map<string, string>();
  readonly #links = new Map<string, { readonly target: string; readonly entry: ArchiveEntry }>();
  #pathChars = 0;

  /** `root`: an empty directory that nobody else writes to. */
  constructor(root: string, limits: TreeLimits, owner: TreeOwner | undefined) {
    this.#tree = new FileTree(root, limits, { modes: MODES, owner });
    this.#maxEntries = limits.maxEntries;
  }

  get bytes(): number {
    return this.#tree.bytes;
  }

  get entries(): number {
    return this.#tree.entries;
  }

  get isEmpty(): boolean {
    return this.#kinds.size === 0;
  }

  /** Throws an InputError for an entry that a source cannot have. */
  async add(entry: ArchiveEntry): Promise<void> {
    const path = parseEntryPath(entry.path);
    if (path !== '') this.#require(path, entry);
    if (entry.kind !== 'symlink') {
      await this.#tree.add(entry);
      return;
    }
    checkLinkTarget(path, entry.target);
    if (path === '') throw refusal(entry.path, 'is the root and must be a directory');
    this.#pathChars += entry.target.length;
    this.#links.set(path, { target: entry.target, entry });
  }

  /** Makes the links. Nothing is added afterwards. */
  async finish(): Promise<void> {
    const targets = new Map(Array.from(this.#links, ([path, { target }]) => [path, target]));
    const problem = findLinkProblem(targets);
    if (problem !== undefined) throw refusal(problem.path, problem.reason);
    for (const { entry } of this.#links.values()) await this.#tree.add(entry);
  }

  /** Two readers of an archive must not see two different sources: what is ambiguous is refused. */
  #require(path: string, { path: shown, kind }: ArchiveEntry): void {
    if (path.includes('\uFFFD')) throw refusal(shown, 'has a name that is not UTF-8');
    const earlier = this.#kinds.get(path);
    if (earlier === 'directory' && kind === 'directory') return;
    if (earlier !== undefined)
      throw refusal(shown, `was ${earlier === 'symlink' ? 'a link' : `a ${earlier}`} before: pack it once`);
    this.#requireDirectories(path, shown);
    this.#set(path, shown, kind);
  }

  #requireDirectories(path: string, shown: string): void {
    for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
      const parent = path.slice(0, end);
      const kind = this.#kinds.get(parent);
      if (kind === undefined) this.#set(parent, shown, 'directory');
      else if (kind !== 'directory') throw refusal(shown, 'is below an entry that is no directory');
    }
  }

  #set(path: string, shown: string, kind: ArchiveEntry['kind']): void {
    const folded = path.normalize('NFC').toLowerCase();
    const other = this.#folded.get(folded);
    if (other !== undefined && other !== path)
      throw refusal(shown, `differs from ${JSON.stringify(other)} by case alone: rename one`);
    this.#folded.set(folded, path);
    this.#kinds.set(path, kind);
    this.#pathChars += path.length;
    if (this.#kinds.size > this.#maxEntries)
      throw new InputError(`There are more than ${this.#maxEntries} entries`);
    if (this.#pathChars > MAX_PATH_CHARS)
      throw new InputError(`The paths of the archive have more than ${MAX_PATH_CHARS} characters`);
  }
}
