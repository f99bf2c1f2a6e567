// Installed packages by what they were installed from, for each workspace by itself: what one tenant's scripts have written is never
// another's. Only sealed trees come in, no build ever writes to them, and those that were not used for longest go.
import { chmod, mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { parseJsonDocument } from '../../../base/json/json-document.ts';
import { parseWith, z } from '../../../base/schema.ts';
import { describeBug, type Log } from '../../../base/log.ts';
import { removeTree } from '../../../workload/tree-removal.ts';

/** `release` it when its tree has been read. */
export type HeldTree = { readonly path: string; release(): unknown };

type Entry = { readonly workspaceId: string; readonly bytes: number; usedAt: number; holders: number };

const MANIFEST = 'entry.json';
const TREE = 'tree';
const UNFINISHED = '.unfinished-';
/** What the killed process had started may write for a moment. */
const PATIENCE_MS = 2_000;
const manifest = z.object({ bytes: z.int().min(0) });

export class DependencyCache {
  readonly #directory: string;
  readonly #maxBytes: number;
  /** By their directory. */
  readonly #entries = new Map<string, Entry>();
  /** The directories of entries that are not there yet. */
  readonly #adding = new Set<string>();

  private constructor(directory: string, maxBytes: number) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
  }

  /** Of this process alone. Removes what a killed one had begun. */
  static async open(directory: string, maxBytes: number, log: Pick<Log, 'warn'>): Promise<DependencyCache> {
    const cache = new DependencyCache(directory, maxBytes);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const name of await readdir(directory)) {
      if (name.startsWith(UNFINISHED)) await removeTree(join(directory, name), { patienceMs: PATIENCE_MS });
      else
        await cache.#load(name).catch((error: unknown) => {
          // A file that somebody has left there, or a directory of another user: it is not ours, and no reason not to build.
          const path = join(directory, name);
          log.warn(
            { ...describeBug(error), path },
            'what is no directory of installed packages is not used: remove it',
          );
        });
    }
    await cache.#evict();
    return cache;
  }

  get bytes(): number {
    return [...this.#entries.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Undefined: there is none. `key`: hexadecimal digits. */
  hold(workspaceId: string, key: string): HeldTree | undefined {
    const directory = this.#placeOf(workspaceId, key);
    const entry = this.#entries.get(directory);
    if (entry === undefined) return undefined;
    entry.holders += 1;
    entry.usedAt = Date.now();
    // For the order after a restart.
    void utimes(join(directory, MANIFEST), new Date(), new Date()).catch(() => undefined);
    return {
      path: join(directory, TREE),
      release() {
        entry.holders -= 1;
      },
    };
  }

  /** Takes over the sealed `tree`, which is on the same file system. False: there is one already, or it is too large. */
  async add(
    workspaceId: string,
    key: string,
    { tree, bytes }: { readonly tree: string; readonly bytes: number },
  ): Promise<boolean> {
    const directory = this.#placeOf(workspaceId, key);
    const isKnown = this.#entries.has(directory) || this.#adding.has(directory);
    if (isKnown || bytes > this.#maxBytes) return false;
    const unfinished = join(this.#directory, `${UNFINISHED}${randomUUID()}`);
    this.#adding.add(directory);
    try {
      await mkdir(unfinished, { mode: 0o700 });
      // Without root, a directory that cannot be written to cannot be moved.
      await chmod(tree, 0o755);
      await rename(tree, join(unfinished, TREE));
      await writeFile(join(unfinished, MANIFEST), JSON.stringify({ bytes }));
      await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
      await rename(unfinished, directory);
    } catch (error) {
      await removeTree(unfinished);
      throw error;
    } finally {
      this.#adding.delete(directory);
    }
    const entry: Entry = { workspaceId, bytes, usedAt: Date.now(), holders: 1 };
    this.#entries.set(directory, entry);
    await this.#evict();
    entry.holders -= 1;
    return true;
  }

  async #load(workspaceId: string): Promise<void> {
    for (const key of await readdir(join(this.#directory, workspaceId))) {
      const directory = this.#placeOf(workspaceId, key);
      const file = join(directory, MANIFEST);
      const text = await readFile(file, 'utf8').catch(() => '');
      const json = parseJsonDocument(text);
      const parsed = json.ok ? parseWith(manifest, json.value) : undefined;
      if (!parsed?.ok) {
        await removeTree(directory);
        continue;
      }
      const { mtimeMs } = await stat(file);
      this.#entries.set(directory, { workspaceId, bytes: parsed.value.bytes, usedAt: mtimeMs, holders: 0 });
    }
  }

  /** Of the workspace that has most goes the tree that was not used for longest: nobody displaces the trees of others. */
  async #evict(): Promise<void> {
    while (this.bytes > this.#maxBytes) {
      const found = this.#findOldest();
      if (found === undefined) return;
      this.#entries.delete(found);
      const trash = join(this.#directory, `${UNFINISHED}${randomUUID()}`);
      await rename(found, trash);
      await removeTree(trash);
    }
  }

  #findOldest(): string | undefined {
    const free = [...this.#entries].filter(([, { holders }]) => holders === 0);
    const totals = new Map<string, number>();
    for (const { workspaceId, bytes } of this.#entries.values())
      totals.set(workspaceId, (totals.get(workspaceId) ?? 0) + bytes);
    const totalOf = ([, { workspaceId }]: (typeof free)[number]): number => totals.get(workspaceId) ?? 0;
    return free.toSorted((a, b) => totalOf(b) - totalOf(a) || a[1].usedAt - b[1].usedAt)[0]?.[0];
  }

  #placeOf(workspaceId: string, key: string): string {
    return join(this.#directory, workspaceId, key);
  }
}
