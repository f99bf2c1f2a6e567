// The boxes of this machine that bubblewrap isolates. One process at a time uses a directory: its owner locks it.
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { SingleFlight } from '../../base/single-flight.ts';
import type { Cgroups, CgroupLimits } from '../cgroup/cgroups.ts';
import { detectCgroups } from '../cgroup/detect-cgroups.ts';
import { type Snapshot, SnapshotStore } from '../snapshots/snapshot-store.ts';
import { Box } from './box.ts';
import { BoxRecords } from './box-record.ts';
import { etcFiles } from './etc-files.ts';
import { writeFileLayer } from './file-layer.ts';
import { defaultUserRange, HostUsers, type UserRange } from './host-users.ts';
import { MountNamespace } from './mount-namespace.ts';
import { encodeFilter } from './seccomp/filter.ts';
import { createImage, MIN_CAPACITY_BYTES, openMounts, type StorageKind } from './storage.ts';

export type BoxesOptions = {
  /** Private to this user: snapshots, and the files of the boxes. */
  readonly directory: string;
  /** Where the mounts of boxes lie, in a namespace of their own. As root, every user must be able to enter what is above. */
  readonly mounts: string;
  readonly storage: StorageKind;
  /** What boxes find in `programsDirectory`: name and path. */
  readonly programs: Readonly<Record<string, string>>;
  readonly userRange?: UserRange;
};

export type NewBox = {
  readonly id: string;
  readonly snapshotId: string;
  readonly capacityBytes: number;
  readonly limits: CgroupLimits;
  /** PEM: all certificates that the box trusts. */
  readonly caBundle: string;
};

export class Boxes implements AsyncDisposable {
  readonly #options: BoxesOptions;
  readonly #records: BoxRecords;
  readonly #users: HostUsers;
  readonly #namespace: MountNamespace;
  readonly #seccompFile: string;
  readonly #boxes = new Map<string, Box>();
  readonly #creations = new SingleFlight<Box>();
  readonly snapshots: SnapshotStore;
  readonly cgroups: Cgroups;

  private constructor(
    options: BoxesOptions,
    opened: {
      readonly records: BoxRecords;
      readonly namespace: MountNamespace;
      readonly seccompFile: string;
      readonly snapshots: SnapshotStore;
      readonly cgroups: Cgroups;
    },
  ) {
    this.#options = options;
    this.#records = opened.records;
    this.#namespace = opened.namespace;
    this.#seccompFile = opened.seccompFile;
    this.snapshots = opened.snapshots;
    this.cgroups = opened.cgroups;
    const taken = [...opened.records.all.values()].flatMap(({ uid }) => uid ?? []);
    this.#users = new HostUsers(options.userRange ?? defaultUserRange, taken);
  }

  /** Ends what a killed process left of groups and half-made files. */
  static async open(options: BoxesOptions): Promise<Boxes> {
    const { directory, mounts, programs } = options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const seccompFile = join(directory, 'seccomp.bpf');
    const filter = encodeFilter(process.arch);
    if (filter === undefined) throw new Error(`there is no seccomp filter for ${process.arch}`);
    await writeFile(seccompFile, filter);
    const cgroups = await detectCgroups(groupName(directory));
    await cgroups.sweep();
    const namespace = await MountNamespace.open();
    try {
      await openMounts(namespace, mounts, programs);
      const records = await BoxRecords.open(join(directory, 'boxes'));
      const snapshots = await SnapshotStore.open(join(directory, 'snapshots'));
      return new Boxes(options, { records, namespace, seccompFile, snapshots, cgroups });
    } catch (error) {
      namespace[Symbol.dispose]();
      throw error;
    }
  }

  get namespace(): MountNamespace {
    return this.#namespace;
  }

  /** The ids of boxes with files, also of those that were not opened since the start. */
  ids(): readonly string[] {
    return [...this.#records.all.keys()];
  }

  get(id: string): Box | undefined {
    return this.#boxes.get(id);
  }

  /** Makes the box, or continues with the files that it has; `open` it then. */
  create(given: NewBox): Promise<Box> {
    return this.#creations.run(
      given.id,
      async () => this.#boxes.get(given.id) ?? (await this.#create(given)),
    );
  }

  async #create(given: NewBox): Promise<Box> {
    const { id, snapshotId, capacityBytes, limits, caBundle } = given;
    const snapshot = await this.#requireSnapshot(snapshotId);
    if (capacityBytes < MIN_CAPACITY_BYTES)
      throw new InputError(`fs_capacity_bytes must be at least ${MIN_CAPACITY_BYTES}`);
    const record = this.#records.all.get(id) ?? (await this.#createFiles(given));
    const directory = this.#records.place(id);
    const files = etcFiles({ hostname: 'box', caBundle });
    await writeFileLayer(join(directory, 'files'), files, record.uid);
    const box = new Box({
      id,
      record,
      directory,
      snapshot,
      limits,
      namespace: this.#namespace,
      mounts: this.#options.mounts,
      cgroups: this.cgroups,
      seccompFile: this.#seccompFile,
    });
    this.#boxes.set(id, box);
    return box;
  }

  async #createFiles({ id, snapshotId, capacityBytes }: NewBox) {
    const kind = this.#options.storage;
    const uid = this.#namespace.privilege === 'root' ? this.#users.take() : undefined;
    const record = { snapshotId, capacityBytes, kind, ...(uid === undefined ? {} : { uid }) };
    try {
      await this.#records.create(id, record, async (directory) => {
        if (kind === 'loop') await createImage(join(directory, 'disk.img'), capacityBytes);
      });
      return record;
    } catch (error) {
      if (uid !== undefined) this.#users.release(uid);
      throw error;
    }
  }

  async #requireSnapshot(id: string): Promise<Snapshot> {
    const snapshot = await this.snapshots.find(id);
    if (snapshot === undefined) throw new InputError(`There is no snapshot ${id}`);
    return snapshot;
  }

  /** Ends the box and deletes its files, also of one that was not opened since the start. */
  async remove(id: string): Promise<void> {
    const box = this.#boxes.get(id);
    const record = this.#records.all.get(id);
    await box?.dismantle();
    await this.#records.remove(id);
    this.#boxes.delete(id);
    if (record?.uid !== undefined) this.#users.release(record.uid);
  }

  /** Stops every box; their files stay, except those in memory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([...this.#boxes.values()].map((box) => box.stop()));
    this.#boxes.clear();
    await this.cgroups.close();
    this.#namespace[Symbol.dispose]();
  }
}

/** The same for the same directory: the groups that a killed process left are found by it. */
function groupName(directory: string): string {
  return `sallyport-${createHash('sha256').update(directory).digest('hex').slice(0, 12)}`;
}
