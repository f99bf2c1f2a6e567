// The directories of builds on this machine, by the ids of builds. What no row knows is removed: what a killed process had begun, what
// was interrupted, and what no revision needs any more.
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { removeTree } from '../../workload/tree-removal.ts';
import type { Workloads } from '../../workload/workload.ts';
import { buildDirectories, expiredBuilds, keptDirectories, retireBuild } from '../deployments/kept-builds.ts';
import type { Store } from '../store/database.ts';
import { ownerOf } from './build.ts';

export type DirectoryParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly machineId: string;
  readonly workloads: Pick<Workloads, 'releaseUser'>;
  /** Of one workspace, of builds that nobody runs. */
  readonly keptBytes: number;
  readonly log: Pick<Log, 'warn'>;
};

export class BuildDirectories {
  readonly #parts: DirectoryParts;
  readonly #directory: string;
  /** Of builds that run here. */
  readonly #running = new Set<string>();

  /** `directory` is there, without links in its path. */
  constructor(directory: string, parts: DirectoryParts) {
    this.#directory = directory;
    this.#parts = parts;
  }

  /** Of a build that begins: nothing is there. Rejects if something stays that an earlier attempt has left. */
  async begin(buildId: string): Promise<string> {
    this.#running.add(buildId);
    const place = this.#placeOf(buildId);
    if (!(await removeTree(place))) throw new Error(`${place} cannot be removed: see its permissions`);
    return place;
  }

  /** It has ended: without a row that knows its directory, nothing is left of it. */
  async end(buildId: string): Promise<void> {
    try {
      if (!(await this.#readKnown()).has(buildId)) await removeTree(this.#placeOf(buildId));
    } finally {
      this.#running.delete(buildId);
    }
  }

  /** Removes what no revision needs, and what no row knows; what is not here any more is not kept. */
  async sweep(): Promise<void> {
    const { store, machineId, workloads, keptBytes } = this.#parts;
    await this.#retireLost();
    for (const { buildId } of await expiredBuilds(store.db, machineId, keptBytes))
      await store.write((trx) => retireBuild(trx, buildId));
    // Listed before the rows are read: what begins meanwhile is not among these.
    const present = (await readdir(this.#directory)).filter((id) => !this.#running.has(id));
    if (present.length === 0) return;
    const known = await this.#readKnown();
    for (const id of present) {
      if (known.has(id) || this.#running.has(id)) continue;
      await workloads.releaseUser(ownerOf(id));
      await removeTree(this.#placeOf(id));
    }
  }

  /** Of a deployment that goes: also those that a revision could still be deployed from. Rejects while something is left. */
  async removeOf(deploymentId: string): Promise<void> {
    const { store, machineId, workloads } = this.#parts;
    const rows = await store.db
      .selectFrom('builds')
      .select('id')
      .where('deployment_id', '=', deploymentId)
      .where('machine_id', '=', machineId)
      .where('removed_at', 'is', null)
      .execute();
    for (const { id } of rows) {
      // Of one that a killed process has left.
      await workloads.releaseUser(ownerOf(id));
      if (!(await removeTree(this.#placeOf(id))))
        throw new Error('a build of the deployment cannot be removed');
    }
  }

  /** Its source is built again with the next revision that would use it. */
  async #retireLost(): Promise<void> {
    const { store, machineId, log } = this.#parts;
    for (const { buildId, directory } of await keptDirectories(store.db, machineId)) {
      if (!(await isGone(directory))) continue;
      if (await store.write((trx) => retireBuild(trx, buildId, true)))
        log.warn(
          { build: buildId, directory },
          'the directory of a build is gone: it is built again when it is needed',
        );
    }
  }

  async #readKnown(): Promise<ReadonlySet<string>> {
    const { store, machineId } = this.#parts;
    const paths = await buildDirectories(store.db, machineId);
    return new Set([...paths].map((path) => basename(path)));
  }

  #placeOf(buildId: string): string {
    return join(this.#directory, buildId);
  }
}

/** What cannot be looked at may be there. */
async function isGone(directory: string): Promise<boolean> {
  try {
    return !(await stat(directory)).isDirectory();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
