// Writes entries below a directory that nobody else writes to. Every parent is a directory that was made
// here, so no entry is written through a link of another one.
import { constants } from 'node:fs';
import { chmod, lchown, link, lstat, mkdir, open, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { InputError } from '../input-error.ts';
import { checkLinkTarget, parseEntryPath, refusal, type ArchiveEntry } from './entry.ts';

export type TreeLimits = { readonly maxBytes: number; readonly maxEntries: number };

/** Bits of setuid and setgid are not kept, nor are owners and attributes such as file capabilities. */
export type TreeModes = { readonly directory: number; readonly file: number; readonly executable: number };

/** Of everything in it; absent: the user of this process. */
export type TreeOwner = { readonly uid: number; readonly gid: number };

/** A box runs as one user who owns everything in it: what its owner could do in the source, that user can do. */
const BOX_MODES: TreeModes = { directory: 0o777, file: 0o666, executable: 0o777 };

/** Of all directories: they are held in memory, and a path may have 4,095. */
const MAX_PATH_CHARS = 64 * 1024 * 1024;

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

export class FileTree {
  readonly #root: string;
  readonly #limits: TreeLimits;
  readonly #modes: TreeModes;
  readonly #owner: TreeOwner | undefined;
  readonly #directories = new Set<string>(['']);
  #entries = 0;
  /** With the directories that the entries imply. */
  #counted = 0;
  #bytes = 0;
  #pathChars = 0;

  /** `root`: an empty directory. */
  constructor(
    root: string,
    limits: TreeLimits,
    { modes = BOX_MODES, owner }: { readonly modes?: TreeModes; readonly owner?: TreeOwner | undefined } = {},
  ) {
    this.#root = root;
    this.#limits = limits;
    this.#modes = modes;
    this.#owner = owner;
  }

  get entries(): number {
    return this.#entries;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Throws an InputError for an entry that a tree cannot have. A second entry of the same path replaces the first. */
  async add(entry: ArchiveEntry): Promise<void> {
    this.#entries += 1;
    this.#count();
    const path = parseEntryPath(entry.path);
    if (entry.kind === 'directory') return this.#addDirectory(path, entry.path);
    if (path === '') throw refusal(entry.path, 'is the root and must be a directory');
    if (this.#directories.has(path)) throw refusal(entry.path, 'was a directory before');
    await this.#addParent(path, entry.path);
    const file = join(this.#root, path);
    if (entry.kind === 'hardlink') return this.#addHardLink(path, entry.target);
    await rm(file, { force: true });
    if (entry.kind === 'file') return this.#addFile(file, entry);
    checkLinkTarget(path, entry.target);
    await symlink(entry.target, file);
    await this.#give(file);
  }

  async #addDirectory(path: string, shown: string): Promise<void> {
    if (this.#directories.has(path)) return;
    await this.#addParent(path, shown);
    try {
      await mkdir(join(this.#root, path));
    } catch (cause) {
      throw refusal(shown, 'is below an entry that is no directory', cause);
    }
    // The umask does not count.
    await chmod(join(this.#root, path), this.#modes.directory);
    await this.#give(join(this.#root, path));
    this.#directories.add(path);
    this.#pathChars += path.length;
    if (this.#pathChars > MAX_PATH_CHARS)
      throw new InputError(`The paths of directories have more than ${MAX_PATH_CHARS} characters`);
  }

  /** A directory that has no entry of its own counts as one: a short path can name a hundred of them. */
  async #addParent(path: string, shown: string): Promise<void> {
    const parent = parentOf(path);
    if (this.#directories.has(parent)) return;
    this.#count();
    await this.#addDirectory(parent, shown);
  }

  async #addFile(file: string, entry: ArchiveEntry & { readonly kind: 'file' }): Promise<void> {
    await using handle = await open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    for await (const piece of entry.content) {
      this.#bytes += piece.length;
      if (this.#bytes > this.#limits.maxBytes)
        throw new InputError(`The files have more than ${this.#limits.maxBytes} bytes`);
      await handle.writeFile(piece);
    }
    if (this.#owner !== undefined) await handle.chown(this.#owner.uid, this.#owner.gid);
    await handle.chmod(entry.isExecutable ? this.#modes.executable : this.#modes.file);
    await handle.utimes(entry.modifiedMs / 1000, entry.modifiedMs / 1000);
  }

  async #addHardLink(path: string, target: string): Promise<void> {
    const other = parseEntryPath(target);
    const file = join(this.#root, other);
    // Of a link, the file that it names could lie outside.
    const isFile = this.#directories.has(parentOf(other)) && (await isRegularFile(file));
    if (!isFile) throw refusal(path, 'is a hard link to something that is no earlier file');
    if (other === path) return;
    await rm(join(this.#root, path), { force: true });
    await link(file, join(this.#root, path));
  }

  async #give(path: string): Promise<void> {
    if (this.#owner !== undefined) await lchown(path, this.#owner.uid, this.#owner.gid);
  }

  #count(): void {
    this.#counted += 1;
    if (this.#counted > this.#limits.maxEntries)
      throw new InputError(`There are more than ${this.#limits.maxEntries} entries`);
  }
}

function parentOf(path: string): string {
  const parent = dirname(path);
  return parent === '.' ? '' : parent;
}

async function isRegularFile(file: string): Promise<boolean> {
  const stats = await lstat(file).catch(() => undefined);
  return stats?.isFile() ?? false;
}
