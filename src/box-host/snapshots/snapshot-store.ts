// The snapshots of this machine. An import is built beside its final place and renamed: half of one is never seen.
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJsonDocument } from '../../base/json/json-document.ts';
import { parseWith, z } from '../../base/schema.ts';
import { InputError } from '../../base/input-error.ts';
import { SingleFlight } from '../../base/single-flight.ts';
import { requireCommand } from '../command.ts';
import { createBase } from './base-snapshot.ts';
import { readDirectory } from './directory-source.ts';
import type { ArchiveEntry } from '../../base/archive/entry.ts';
import { type TreeLimits, FileTree } from '../../base/archive/file-tree.ts';
import { readTar } from '../../base/archive/tar-archive.ts';

export type Snapshot = {
  readonly id: string;
  /** The lowest directory of a box. */
  readonly root: string;
  readonly bytes: number;
  readonly entries: number;
  /** Present: boxes of it see /usr of the host. */
  readonly hostUsr?: z.infer<typeof hostUsr> | undefined;
};

const hiddenPath = z.object({ path: z.string(), isDirectory: z.boolean() });
const hostUsr = z.object({ hidden: z.array(hiddenPath).readonly() });
const manifest = z.object({ bytes: z.number(), entries: z.number(), hostUsr: hostUsr.optional() });

const MANIFEST = 'snapshot.json';
const UNFINISHED = '.importing-';

export const defaultLimits: TreeLimits = { maxBytes: 16 * 1024 ** 3, maxEntries: 1_000_000 };

export class SnapshotStore {
  readonly #directory: string;
  readonly #imports = new SingleFlight<Snapshot>();
  /** How many boxes lie over each. */
  readonly #holders = new Map<string, number>();
  readonly #removals = new Set<string>();

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** Removes what an import left that was killed. One process at a time uses the directory. */
  static async open(directory: string): Promise<SnapshotStore> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(directory))
      if (name.startsWith(UNFINISHED)) await rm(join(directory, name), { recursive: true, force: true });
    return new SnapshotStore(directory);
  }

  /** Undefined: there is none with this id. */
  async find(id: string): Promise<Snapshot | undefined> {
    const directory = this.#place(id);
    const text = await readFile(join(directory, MANIFEST), 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    const json = parseJsonDocument(text);
    const parsed = json.ok ? parseWith(manifest, json.value) : undefined;
    if (!parsed?.ok) throw new Error(`${join(directory, MANIFEST)} is damaged: import the snapshot again`);
    return { id, root: join(directory, 'root'), ...parsed.value };
  }

  async list(): Promise<readonly Snapshot[]> {
    const names = (await readdir(this.#directory)).filter((name) => !name.startsWith('.'));
    const found = await Promise.all(names.map((name) => this.find(name)));
    return found.filter((one) => one !== undefined);
  }

  /** How long it has been there. */
  async ageMs(id: string): Promise<number> {
    return Date.now() - (await stat(join(this.#place(id), MANIFEST))).mtimeMs;
  }

  /** Streams the archive; rejects with an InputError that says which entry cannot be imported. */
  importTar(
    id: string,
    archive: AsyncIterable<Uint8Array>,
    limits: TreeLimits = defaultLimits,
  ): Promise<Snapshot> {
    return this.#import(id, readTar(archive), limits);
  }

  importDirectory(id: string, directory: string, limits: TreeLimits = defaultLimits): Promise<Snapshot> {
    return this.#import(id, readDirectory(directory), limits);
  }

  /** As `importDirectory`, of a directory below one of `within`. Idempotent: whoever asked before may have left. */
  requireDirectory(
    id: string,
    { directory, within }: { readonly directory: string; readonly within: readonly string[] },
    limits: TreeLimits = defaultLimits,
  ): Promise<Snapshot> {
    return this.#imports.run(
      id,
      async () => (await this.find(id)) ?? this.#import(id, readDirectory(directory, within), limits),
    );
  }

  /** From the programs of this machine. */
  createBase(id = 'base'): Promise<Snapshot> {
    return this.#create(id, async (root) => ({ bytes: 0, entries: 0, hostUsr: await createBase(root) }));
  }

  /** For a box that lies over it: it is not removed before `release`. Throws an InputError while it is being removed. */
  hold(id: string): void {
    if (this.#removals.has(id)) throw new InputError(`There is no snapshot ${id}`);
    this.#holders.set(id, (this.#holders.get(id) ?? 0) + 1);
  }

  release(id: string): void {
    const left = (this.#holders.get(id) ?? 1) - 1;
    if (left > 0) this.#holders.set(id, left);
    else this.#holders.delete(id);
  }

  /** Rejects with an InputError if a box lies over it: the files of that box would vanish while it runs. */
  async remove(id: string): Promise<void> {
    if (this.#holders.has(id)) throw new InputError(`The snapshot ${id} is used: remove its boxes first`);
    const trash = join(this.#directory, `${UNFINISHED}${randomUUID()}`);
    this.#removals.add(id);
    try {
      await rename(this.#place(id), trash);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
      throw error;
    } finally {
      this.#removals.delete(id);
    }
    await rm(trash, { recursive: true, force: true });
  }

  #import(id: string, entries: AsyncIterable<ArchiveEntry>, limits: TreeLimits): Promise<Snapshot> {
    return this.#create(id, async (root) => {
      const tree = new FileTree(root, limits);
      for await (const entry of entries) await tree.add(entry);
      if (tree.entries === 0) throw new InputError('The archive or directory is empty');
      return { bytes: tree.bytes, entries: tree.entries };
    });
  }

  async #create(id: string, fill: (root: string) => Promise<z.infer<typeof manifest>>): Promise<Snapshot> {
    const place = this.#place(id);
    if ((await this.find(id)) !== undefined) throw new InputError(`The snapshot ${id} exists already`);
    const unfinished = join(this.#directory, `${UNFINISHED}${randomUUID()}`);
    try {
      await mkdir(join(unfinished, 'root'), { recursive: true });
      // Whatever the umask: directories of a box are read by its user.
      await chmod(join(unfinished, 'root'), 0o755);
      const content = await fill(join(unfinished, 'root'));
      await writeFile(join(unfinished, MANIFEST), JSON.stringify(content), { mode: 0o600 });
      // On disk before it is seen: after a power failure a file would be empty.
      await requireCommand('the snapshot could not be written', ['sync', '-f', unfinished]);
      await rename(unfinished, place);
      return { id, root: join(place, 'root'), ...content };
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  }

  /** An id becomes a name of a directory. */
  #place(id: string): string {
    if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(id))
      throw new InputError('The id of a snapshot has 1 to 64 of the characters a to z, 0 to 9 and -');
    return join(this.#directory, id);
  }
}
