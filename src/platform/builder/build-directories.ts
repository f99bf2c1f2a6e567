// The directories of builds on this machine, by the ids of builds, and those in which their packages are installed. What no row knows is
// removed, with the host user of the build: what a killed process had begun, what was interrupted, and what no revision needs any more.
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describeBug, type Log } from '../../base/log.ts';
import { removeTree } from '../../workload/tree-removal.ts';
import type { Workloads } from '../../workload/workload.ts';
import { buildDirectories, expiredBuilds, keptDirectories, retireBuild } from '../deployments/kept-builds.ts';
import type { Store } from '../store/database.ts';
import { buildIdOf, ownerOf } from './build.ts';

export type DirectoryParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly machineId: string;
  readonly workloads: Pick<Workloads, 'releaseUser' | 'owners'>;
  /** Where the packages of builds are installed, in a directory of each. */
  readonly installations: string;
  /** Of one workspace, of builds that nobody runs. */
  readonly keptBytes: number;
  /** For what an earlier process has left: programs that it had started may still write to it. */
  readonly patienceMs?: number | undefined;
  readonly log: Pick<Log, 'warn'>;
};

const PATIENCE_MS = 5_000;

export class BuildDirectories {
  readonly #parts: DirectoryParts;
  readonly #directory: string;
  /** Of builds that run here. */
  readonly #running = new Set<string>();
  /** What is being removed, by the ids of builds. */
  readonly #removing = new Map<string, Promise<void>>();
  #hasLeftovers = false;

  /** `directory` is there, without links in its path. */
  constructor(directory: string, parts: DirectoryParts) {
    this.#directory = directory;
    this.#parts = parts;
  }

  /** Of a build that begins: nothing is there. Undefined: what an earlier attempt has left cannot be removed now. */
  async begin(buildId: string): Promise<string | undefined> {
    const { log, patienceMs = PATIENCE_MS } = this.#parts;
    this.#running.add(buildId);
    await this.#removing.get(buildId);
    const places = [this.#placeOf(buildId), this.#installationOf(buildId)];
    for (const path of places) {
      if (await removeTree(path, { patienceMs })) continue;
      log.warn(
        { build: buildId, path },
        'what an earlier process has left of a build cannot be removed: see its permissions, and who writes to it',
      );
      return undefined;
    }
    return places[0];
  }

  /** It has ended: without a row that knows its directory, nothing is left of it, or the next sweep is due. */
  async end(buildId: string): Promise<void> {
    try {
      const isKept = (await this.#readKnown()).has(buildId);
      const isGone = await this.#removeFiles(buildId, isKept);
      if (!isGone || this.#parts.workloads.owners.has(ownerOf(buildId))) this.#hasLeftovers = true;
    } catch (error) {
      this.#hasLeftovers = true;
      throw error;
    } finally {
      this.#running.delete(buildId);
    }
  }

  /** Something is left of a build that has ended, or could not be removed by the last sweep. */
  get hasLeftovers(): boolean {
    return this.#hasLeftovers;
  }

  /**
   * Removes what no revision needs, and what no row knows; what is not here any more is not kept. One that cannot be removed holds up no
   * other.
   */
  async sweep(signal?: AbortSignal): Promise<void> {
    const { store, machineId, workloads, keptBytes, installations } = this.#parts;
    await this.#retireLost();
    for (const { buildId } of await expiredBuilds(store.db, machineId, keptBytes))
      await store.write((trx) => retireBuild(trx, buildId));
    // Listed before the rows are read: what begins meanwhile is not among these.
    const names = [...(await readdir(this.#directory)), ...(await readdir(installations))];
    const present = new Set([...names, ...[...workloads.owners].flatMap((owner) => buildIdOf(owner) ?? [])]);
    const ended = [...present].filter((id) => !this.#running.has(id));
    this.#hasLeftovers = false;
    if (ended.length === 0) return;
    const known = await this.#readKnown();
    for (const id of ended) {
      if (signal?.aborted) return;
      if (this.#running.has(id)) continue;
      const removing = this.#removeLeftover(id, known.has(id));
      this.#removing.set(id, removing);
      await removing;
      this.#removing.delete(id);
    }
  }

  /** Never rejects: it is tried again with the next sweep. */
  async #removeLeftover(id: string, isKept: boolean): Promise<void> {
    const { workloads, log } = this.#parts;
    try {
      await workloads.releaseUser(ownerOf(id));
      if (!(await this.#removeFiles(id, isKept))) throw new Error('its files cannot be removed');
    } catch (error) {
      this.#hasLeftovers = true;
      log.warn({ ...describeBug(error), build: id }, 'something is left of a build: it is removed later');
    }
  }

  /** False: something is left. */
  async #removeFiles(buildId: string, isKept: boolean): Promise<boolean> {
    const hasInstallation = !(await removeTree(this.#installationOf(buildId)));
    return (isKept || (await removeTree(this.#placeOf(buildId)))) && !hasInstallation;
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
      if (!(await this.#removeFiles(id, false)))
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

  #installationOf(buildId: string): string {
    return join(this.#parts.installations, buildId);
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
