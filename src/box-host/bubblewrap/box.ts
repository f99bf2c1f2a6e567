// One box on this machine: its network namespace, its mounted files, its limits and at most one program at a time.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { WorkQueue } from '../../base/work-queue.ts';
import type { Cgroups, CgroupUsage, CgroupLimits } from '../cgroup/cgroups.ts';
import type { Snapshot } from '../snapshots/snapshot-store.ts';
import { BoxProgram } from './box-program.ts';
import type { BoxRecord } from './box-record.ts';
import type { MountNamespace } from './mount-namespace.ts';
import { NetworkNamespace } from './network-namespace.ts';
import { mountBox, programsIn, removeMounts, unmountBox } from './storage.ts';

export type BoxSetup = {
  readonly id: string;
  readonly record: BoxRecord;
  /** With the image and our files. */
  readonly directory: string;
  readonly snapshot: Snapshot;
  readonly limits: CgroupLimits;
  readonly namespace: MountNamespace;
  /** See `openMounts`. */
  readonly mounts: string;
  readonly cgroups: Cgroups;
  readonly seccompFile: string;
};

/** Without a limit by cgroups, this bounds a fork bomb where the box has a host user of its own. */
const DEFAULT_PROCESSES = 512;
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
const HOSTNAME = 'box';

export class Box {
  readonly #setup: BoxSetup;
  readonly #work = new WorkQueue();
  #network: NetworkNamespace | undefined;
  #root = '';
  #program: BoxProgram | undefined;

  constructor(setup: BoxSetup) {
    this.#setup = setup;
  }

  get id(): string {
    return this.#setup.id;
  }

  get record(): BoxRecord {
    return this.#setup.record;
  }

  /** Of a box that is open: where the listener of the proxy belongs. */
  get network(): NetworkNamespace {
    if (this.#network === undefined) throw new Error(`the box ${this.id} is stopped`);
    return this.#network;
  }

  /** The program that runs now. */
  get program(): BoxProgram | undefined {
    return this.#program;
  }

  /** Mounts its files and makes its network. Continues with what is there. */
  open(): Promise<void> {
    return this.#work.run(async () => {
      const { id, record, directory, snapshot, limits, namespace, mounts, cgroups } = this.#setup;
      if (this.#network !== undefined) return;
      const network = await NetworkNamespace.open(namespace);
      try {
        await cgroups.create(id, { ...limits, pids: limits.pids ?? DEFAULT_PROCESSES });
        this.#root = await mountBox(namespace, mounts, {
          id,
          kind: record.kind,
          capacityBytes: record.capacityBytes,
          image: join(directory, 'disk.img'),
          snapshot: snapshot.root,
          files: join(directory, 'files'),
        });
        this.#network = network;
      } catch (error) {
        network[Symbol.dispose]();
        throw error;
      }
    });
  }

  /** Rejects while another program of the box runs: the files that bwrap mounts over must be at rest. */
  start(command: readonly string[], environment: Readonly<Record<string, string>>): Promise<BoxProgram> {
    return this.#work.run(async () => {
      if (this.#program !== undefined) throw new Error(`a program of the box ${this.id} runs already`);
      const { id, record, snapshot, namespace, mounts, cgroups, seccompFile, limits } = this.#setup;
      const hidden = snapshot.hostUsr?.hidden.filter(({ path }) => existsSync(path));
      const program = BoxProgram.start({
        namespaces: { ...namespace.namespaces, ...this.network.namespaces },
        uid: record.uid,
        cgroupFiles: cgroups.entryFiles(id),
        maxProcesses: record.uid === undefined ? undefined : (limits.pids ?? DEFAULT_PROCESSES),
        seccompFile,
        box: {
          root: this.#root,
          hostUsr: hidden && { hidden },
          programs: programsIn(mounts),
          sharedMemoryBytes: SHARED_MEMORY_BYTES,
          hostname: HOSTNAME,
          environment,
        },
        command,
      });
      this.#program = program;
      void program.exited.then(() => {
        if (this.#program === program) this.#program = undefined;
      });
      return program;
    });
  }

  usage(): Promise<CgroupUsage> {
    return this.#setup.cgroups.usage(this.id);
  }

  /** Ends everything that runs in it and closes its network; its files stay. */
  stop(): Promise<void> {
    return this.#work.run(() => this.#stop());
  }

  /** Nothing of it is left but its directory. */
  dismantle(): Promise<void> {
    return this.#work.run(async () => {
      await this.#stop();
      await removeMounts(this.#setup.namespace, this.#setup.mounts, this.id);
    });
  }

  async #stop(): Promise<void> {
    const { id, record, namespace, mounts, cgroups } = this.#setup;
    const ended = this.#program?.end();
    // Not after it: what outlives bwrap holds the end of the program up.
    await cgroups.remove(id);
    await ended;
    this.#program = undefined;
    this.#network?.[Symbol.dispose]();
    this.#network = undefined;
    await unmountBox(namespace, mounts, { id, kind: record.kind });
  }
}
