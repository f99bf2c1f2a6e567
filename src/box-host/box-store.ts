// What is kept of each box across restarts: which sidecar serves it, and its port. No rule and no secret is stored.
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseWith, z } from '../base/schema.ts';
import { boxId } from './box-document.ts';

const placement = z.strictObject({
  workspace_id: z.uuid(),
  /** Number of the sidecar among those of the workspace. */
  slot: z.int().min(0),
  /** Of its listener on this machine, once it was open. */
  port: z.int().min(1).max(65_535).optional(),
});
export type Placement = z.output<typeof placement>;

/** Boxes of one workspace that a sidecar serves. */
const MAX_BOXES = 50;

export class BoxStore {
  readonly #folder: string;
  readonly #placements: Map<string, Placement>;

  private constructor(folder: string, placements: Map<string, Placement>) {
    this.#folder = folder;
    this.#placements = placements;
  }

  /** A file that cannot be read is of a box whose place is forgotten: its platform starts it anew. */
  static async open(directory: string): Promise<BoxStore> {
    const folder = join(directory, 'boxes');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const placements = new Map<string, Placement>();
    for (const name of await readdir(folder)) {
      const id = boxId.safeParse(name.replace(/\.json$/, '')).data;
      const found = id === undefined ? undefined : await readPlacement(join(folder, name));
      if (id === undefined || found === undefined)
        await rm(join(folder, name), { recursive: true, force: true });
      else placements.set(id, found);
    }
    return new BoxStore(folder, placements);
  }

  ids(): readonly string[] {
    return [...this.#placements.keys()];
  }

  get(id: string): Placement | undefined {
    return this.#placements.get(id);
  }

  /** Whether a box has this place. */
  isUsed({ workspace_id, slot }: Placement): boolean {
    return [...this.#placements.values()].some(
      (one) => one.workspace_id === workspace_id && one.slot === slot,
    );
  }

  ports(): ReadonlySet<number> {
    return new Set([...this.#placements.values()].flatMap(({ port }) => port ?? []));
  }

  /** The place that the box had, or one beside other boxes of its workspace. */
  async place(id: string, workspaceId: string): Promise<Placement> {
    const before = this.#placements.get(id);
    if (before?.workspace_id === workspaceId) return before;
    const placed = { workspace_id: workspaceId, slot: this.#freeSlot(workspaceId) };
    await this.set(id, placed);
    return placed;
  }

  async set(id: string, placed: Placement): Promise<void> {
    const before = this.#placements.get(id);
    // At once: the next box that is placed counts it.
    this.#placements.set(id, placed);
    const file = join(this.#folder, `${id}.json`);
    const draft = `${file}.${randomBytes(4).toString('hex')}`;
    try {
      await writeFile(draft, JSON.stringify(placed), { flag: 'wx', mode: 0o600, flush: true });
      await rename(draft, file);
    } catch (error) {
      if (before === undefined) this.#placements.delete(id);
      else this.#placements.set(id, before);
      await rm(draft, { force: true });
      throw error;
    }
  }

  async remove(id: string): Promise<void> {
    this.#placements.delete(id);
    await rm(join(this.#folder, `${id}.json`), { force: true });
  }

  #freeSlot(workspaceId: string): number {
    const taken = [...this.#placements.values()].filter(({ workspace_id }) => workspace_id === workspaceId);
    for (let slot = 0; ; slot += 1)
      if (taken.filter((one) => one.slot === slot).length < MAX_BOXES) return slot;
  }
}

async function readPlacement(file: string): Promise<Placement | undefined> {
  if (!file.endsWith('.json')) return undefined;
  try {
    const parsed = parseWith(placement, JSON.parse(await readFile(file, 'utf8')));
    return parsed.ok ? parsed.value : undefined;
  } catch {
    return undefined;
  }
}
