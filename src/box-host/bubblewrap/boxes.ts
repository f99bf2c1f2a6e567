// The boxes of this machine that bubblewrap isolates. One process at a time uses a directory: its owner locks it.
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InputError } from '../../base/input-error.ts';
import { SingleFlight } from '../../base/single-flight.ts';
import type { Cgroups, CgroupLimits } from '../cgroup/cgroups.ts';
import { detectCgroups } from '../cgroup/detect-cgroups.ts';
import { type Snapshot, SnapshotStore } from '../snapshots/snapshot-store.ts';
import { Box, type BoxSetup } from './box.ts';
import { type BoxRecord, BoxRecords } from './box-record.ts';
import { defaultUserRange, HostUsers, type UserRange } from './host-users.ts';
import { HiddenPaths } from './hidden-paths.ts';
import { describeMounts, LIST_MOUNTS, parseMounts } from './mount-health.ts';
import { MountNamespace } from './namespaces/mount-namespace.ts';
import { encodeFilter } from './seccomp/filter.ts';
import {
  createImage,
  defaultCapacityBytes,
  MIN_CAPACITY_BYTES,
  openMounts,
  type StorageKind,
} from './storage.ts';

export type BoxesOptions = {
  /** Private to this user: snapshots, and the files of the boxes. */
  readonly directory: string;
  /** Where the mounts of boxes lie, in a namespace of their own. As root, every user must be able to enter what is above. */
  readonly mounts: string;
  readonly storage: StorageKind;
  /** What boxes find in `programsDirectory`: name and path. */
  readonly programs: Readonly<Record<string, string>>;
  readonly userRange?: UserRange;
  /** See `HostUsersOptions`. */
  readonly userRegistry?: string;
  readonly hidden?: HiddenPaths;
};

export type NewBox = {
  readonly id: string;
  readonly snapshotId: string;
  /** Undefined: what the box has, or a default for a new one. */
  readonly capacityBytes: number | undefined;
  readonly limits: CgroupLimits;
  /** PEM: all certificates that the box trusts. */
  readonly caBundle: string;
};

const CHECK_MS = 5_000;

export class Boxes implements AsyncDisposable {
  readonly #options: BoxesOptions;
  readonly #records: BoxRecords;
  readonly #users: HostUsers | undefined;
  readonly #hidden: HiddenPaths;
  readonly #check: NodeJS.Timeout;
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
      readonly users: HostUsers | undefined;
    },
  ) {
    this.#options = options;
    this.#records = opened.records;
    this.#namespace = opened.namespace;
    this.#seccompFile = opened.seccompFile;
    this.snapshots = opened.snapshots;
    this.cgroups = opened.cgroups;
    this.#users = opened.users;
    this.#hidden = options.hidden ?? new HiddenPaths();
    this.#check = setInterval(() => void this.checkMounts().catch(() => undefined), CHECK_MS).unref();
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
      for (const { snapshotId } of records.all.values()) snapshots.hold(snapshotId);
      const users = namespace.privilege === 'root' ? await openUsers(options, records) : undefined;
      return new Boxes(options, { records, namespace, seccompFile, snapshots, cgroups, users });
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

  /**
   * Makes the box, or continues with the files that it has; `open` it then. Its limits are those of now, and a bigger capacity
   * makes its file system grow. Rejects with an InputError for a smaller one, which its files may not fit into and which would
   * count as less than it takes, and for another snapshot, which is below its files.
   */
  create(given: NewBox): Promise<Box> {
    return this.#creations.run(given.id, () => this.#create(given));
  }

  async #create(given: NewBox): Promise<Box> {
    const { id, snapshotId, capacityBytes, limits, caBundle } = given;
    if (capacityBytes !== undefined && capacityBytes < MIN_CAPACITY_BYTES)
      throw new InputError(`fs_capacity_bytes must be at least ${MIN_CAPACITY_BYTES}`);
    const before = this.#records.all.get(id);
    if (before !== undefined) requireContinuation(before, given);
    if (before === undefined) this.snapshots.hold(snapshotId);
    const made = this.#requireFiles(given, before);
    const { snapshot, record } = await made.catch((error: unknown) => {
      if (before === undefined) this.snapshots.release(snapshotId);
      throw error;
    });
    const settings = { limits, caBundle, capacityBytes: capacityBytes ?? record.capacityBytes };
    const known = this.#boxes.get(id);
    known?.configure(settings);
    const box = known ?? new Box(this.#setupOf(id, record, snapshot), settings);
    this.#boxes.set(id, box);
    return box;
  }

  async #requireFiles(given: NewBox, before: BoxRecord | undefined) {
    const snapshot = await this.#requireSnapshot(given.snapshotId);
    return { snapshot, record: before ?? (await this.#createFiles(given)) };
  }

  #setupOf(id: string, record: BoxRecord, snapshot: Snapshot): BoxSetup {
    return {
      id,
      record,
      directory: this.#records.place(id),
      snapshot,
      namespace: this.#namespace,
      mounts: this.#options.mounts,
      cgroups: this.cgroups,
      seccompFile: this.#seccompFile,
      findHidden: () => this.#hidden.current(),
      onGrown: (capacityBytes) => this.#records.update(id, { ...record, capacityBytes }),
    };
  }

  async #createFiles({ id, snapshotId, capacityBytes: asked }: NewBox): Promise<BoxRecord> {
    const kind = this.#options.storage;
    const capacityBytes = asked ?? defaultCapacityBytes[kind];
    const uid = this.#users?.take();
    const record = { snapshotId, capacityBytes, kind, ...(uid === undefined ? {} : { uid }) };
    try {
      await this.#records.create(id, record, async (directory) => {
        if (kind === 'loop') await createImage(join(directory, 'disk.img'), capacityBytes);
      });
      return record;
    } catch (error) {
      if (uid !== undefined) this.#users?.release(uid);
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
    if (record !== undefined) this.snapshots.release(record.snapshotId);
    if (record?.uid !== undefined) this.#users?.release(record.uid);
  }

  /** Ends the boxes whose files are gone or closed for writes. */
  async checkMounts(): Promise<void> {
    const before = [...this.#boxes.values()].filter(({ isOpen }) => isOpen);
    if (before.length === 0) return;
    const { code, stdout } = await this.#namespace.run(LIST_MOUNTS, [this.#options.mounts]);
    if (code !== 0) return;
    const mounts = parseMounts(stdout);
    for (const box of before) {
      const reason = describeMounts(box.id, mounts);
      // One that was stopped, or whose files are mounted again, meanwhile.
      if (reason !== undefined && box.isOpen && !box.isBusy) box.fail(reason);
    }
  }

  /** Stops every box; their files stay, except those in memory. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#check);
    const ended = await Promise.allSettled([...this.#boxes.values()].map((box) => box.stop()));
    this.#boxes.clear();
    try {
      await this.cgroups.close();
    } finally {
      this.#users?.[Symbol.dispose]();
      this.#namespace[Symbol.dispose]();
    }
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }
}

function openUsers(options: BoxesOptions, records: BoxRecords): Promise<HostUsers> {
  return HostUsers.open({
    range: options.userRange ?? defaultUserRange,
    directory: options.directory,
    taken: [...records.all.values()].flatMap(({ uid }) => uid ?? []),
    registry: options.userRegistry,
  });
}

function requireContinuation(
  { snapshotId, capacityBytes }: BoxRecord,
  { snapshotId: other, capacityBytes: asked = capacityBytes }: NewBox,
): void {
  if (asked < capacityBytes)
    throw new InputError(`fs_capacity_bytes of a box cannot become smaller: it has ${capacityBytes}`);
  if (other !== snapshotId)
    throw new InputError(`the snapshot of a box cannot be changed: it has ${snapshotId}`);
}

/** The same for the same directory: the groups that a killed process left are found by it. */
function groupName(directory: string): string {
  return `sallyport-${createHash('sha256').update(directory).digest('hex').slice(0, 12)}`;
}
