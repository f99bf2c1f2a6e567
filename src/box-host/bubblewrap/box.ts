// One box on this machine: its network namespace, its mounted files, its limits and at most one program at a time.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { WorkQueue } from '../../base/work-queue.ts';
import type { Cgroups, CgroupUsage, CgroupLimits } from '../cgroup/cgroups.ts';
import type { HiddenPath } from '../snapshots/base-snapshot.ts';
import type { Snapshot } from '../snapshots/snapshot-store.ts';
import { BoxProgram } from './box-program.ts';
import type { BoxRecord } from './box-record.ts';
import { etcFiles } from './etc-files.ts';
import { writeFileLayer } from './file-layer.ts';
import type { MountNamespace } from './namespaces/mount-namespace.ts';
import { NetworkNamespace } from './namespaces/network-namespace.ts';
import { growFiles, mountBox, programsIn, removeMounts, unmountBox, unmountRoot } from './storage.ts';
import { endSurvivors } from './namespaces/survivors.ts';

export type BoxSetup = {
  readonly id: string;
  readonly record: BoxRecord;
  /** With the image and our files. */
  readonly directory: string;
  readonly snapshot: Snapshot;
  readonly namespace: MountNamespace;
  /** See `openMounts`. */
  readonly mounts: string;
  readonly cgroups: Cgroups;
  readonly seccompFile: string;
  /** What it must not see of /usr of the host now. */
  findHidden(): Promise<readonly HiddenPath[]>;
  /** Stores that its file system has this size now. */
  onGrown(capacityBytes: number): Promise<void>;
};

/** What a later start may change. */
export type BoxSettings = {
  readonly limits: CgroupLimits;
  /** PEM: all certificates that the box trusts. */
  readonly caBundle: string;
  /** Not less than its files have. */
  readonly capacityBytes: number;
};

/** Without a limit by cgroups, this bounds a fork bomb where the box has a host user of its own. */
const DEFAULT_PROCESSES = 512;
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
const HOSTNAME = 'box';

export class Box {
  readonly #setup: BoxSetup;
  readonly #work = new WorkQueue();
  #pending = 0;
  #network: NetworkNamespace | undefined;
  #root = '';
  #program: BoxProgram | undefined;
  #settings: BoxSettings;
  /** That the mounted files of the box contain. */
  #writtenBundle: string | undefined;
  #capacityBytes: number;
  #ended = Promise.withResolvers<string>();

  constructor(setup: BoxSetup, settings: BoxSettings) {
    this.#setup = setup;
    this.#settings = settings;
    this.#capacityBytes = setup.record.capacityBytes;
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

  get isOpen(): boolean {
    return this.#network !== undefined;
  }

  /** Something is done to its mounts, or to a program. */
  get isBusy(): boolean {
    return this.#pending > 0;
  }

  /** Of a box that is open: resolves with a reason for its users when it cannot go on. */
  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  /** It cannot go on; whoever waits for that stops it. */
  fail(reason: string): void {
    this.#ended.resolve(reason);
  }

  /** In effect with the next `open`; certificates with the next program, the size when the box was stopped before. */
  configure(settings: BoxSettings): void {
    this.#settings = settings;
  }

  /** Mounts its files and makes its network. Continues with what is there, with the limits of now. */
  open(): Promise<void> {
    return this.#run(async () => {
      if (this.#network === undefined) await this.#open();
      else await this.#limit();
    });
  }

  async #open(): Promise<void> {
    const { id, record, namespace, mounts, cgroups } = this.#setup;
    // At the same time: each waits for several programs.
    const [network, files] = await Promise.allSettled([
      NetworkNamespace.open(namespace),
      this.#prepareFiles(),
    ]);
    if (network.status === 'fulfilled' && files.status === 'fulfilled') {
      this.#network = network.value;
      this.#ended = Promise.withResolvers();
      return;
    }
    if (network.status === 'fulfilled') network.value[Symbol.dispose]();
    // What a script that failed or was killed has mounted by then.
    await Promise.allSettled([unmountBox(namespace, mounts, { id, kind: record.kind }), cgroups.remove(id)]);
    const [failed] = [files, network].filter((one) => one.status === 'rejected');
    throw failed?.reason;
  }

  async #prepareFiles(): Promise<void> {
    await this.#limit();
    await this.#writeFiles();
    await this.#grow();
    await this.#mount();
  }

  /** What has more memory than a lower limit allows is ended. */
  async #limit(): Promise<void> {
    const { limits } = this.#settings;
    await this.#setup.cgroups.create(this.id, { ...limits, pids: limits.pids ?? DEFAULT_PROCESSES });
  }

  async #mount(): Promise<void> {
    const { id, record, directory, snapshot, namespace, mounts } = this.#setup;
    this.#root = await mountBox(namespace, mounts, {
      id,
      kind: record.kind,
      capacityBytes: this.#capacityBytes,
      image: join(directory, 'disk.img'),
      snapshot: snapshot.root,
      files: join(directory, 'files'),
    });
  }

  async #grow(): Promise<void> {
    const { id, record, directory, namespace, mounts, onGrown } = this.#setup;
    const { capacityBytes } = this.#settings;
    if (capacityBytes <= this.#capacityBytes) return;
    const image = join(directory, 'disk.img');
    await growFiles(namespace, mounts, { id, kind: record.kind, image, capacityBytes });
    await onGrown(capacityBytes);
    this.#capacityBytes = capacityBytes;
  }

  /** While nothing is mounted over them: an overlay does not show reliably what changes below it. */
  async #writeFiles(): Promise<void> {
    const { directory, record } = this.#setup;
    const { caBundle } = this.#settings;
    await writeFileLayer(join(directory, 'files'), etcFiles({ hostname: HOSTNAME, caBundle }), record.uid);
    this.#writtenBundle = caBundle;
  }

  /** No program of the box runs. */
  async #renewFiles(): Promise<void> {
    if (this.#writtenBundle === this.#settings.caBundle) return;
    const { id, namespace, mounts } = this.#setup;
    await unmountRoot(namespace, mounts, id);
    await this.#writeFiles();
    await this.#mount();
  }

  /** Rejects while another program of the box runs: the files that bwrap mounts over must be at rest. */
  start(command: readonly string[], environment: Readonly<Record<string, string>>): Promise<BoxProgram> {
    return this.#run(async () => {
      if (this.#program !== undefined) throw new Error(`a program of the box ${this.id} runs already`);
      const { id, record, snapshot, namespace, mounts, cgroups, seccompFile, findHidden } = this.#setup;
      const { limits } = this.#settings;
      await this.#empty();
      await this.#renewFiles();
      const found = snapshot.hostUsr && (await findHidden());
      const hidden = found?.filter(({ path }) => existsSync(path));
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
        endSurvivors: () => this.#empty(),
      });
      this.#program = program;
      void program.exited.then(() => {
        if (this.#program === program) this.#program = undefined;
      });
      return program;
    });
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    this.#pending += 1;
    try {
      return await this.#work.run(work);
    } finally {
      this.#pending -= 1;
    }
  }

  usage(): Promise<CgroupUsage> {
    return this.#setup.cgroups.usage(this.id);
  }

  /** Ends everything that runs in it: also what outlived a bwrap that was killed. */
  async #empty(): Promise<void> {
    const { id, cgroups } = this.#setup;
    await cgroups.empty(id);
    const net = this.#network?.namespaces.net;
    if (cgroups.version === 'none' && net !== undefined) await endSurvivors(net);
  }

  /** Ends everything that runs in it and closes its network; its files stay. */
  stop(): Promise<void> {
    return this.#run(() => this.#stop());
  }

  /** Nothing of it is left but its directory. */
  dismantle(): Promise<void> {
    return this.#run(async () => {
      await this.#stop();
      await removeMounts(this.#setup.namespace, this.#setup.mounts, this.id);
    });
  }

  async #stop(): Promise<void> {
    const { id, record, namespace, mounts, cgroups } = this.#setup;
    // Together: neither waits for what the other one ends.
    const ended = await Promise.allSettled([this.#program?.end(), cgroups.remove(id)]);
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    this.#program = undefined;
    this.#network?.[Symbol.dispose]();
    this.#network = undefined;
    await unmountBox(namespace, mounts, { id, kind: record.kind });
  }
}
