// Starts one workload: a record of it, its host user, files, limits and network, and then the program. What fails half-way is undone, so
// that nothing is left of a workload that nobody knows.
import { join } from 'node:path';
import type { Log } from '../base/log.ts';
import type { Cgroups } from '../box-host/cgroup/cgroups.ts';
import { placeholdersOf } from '../box-host/placeholders.ts';
import type { Isolation, LaunchPlan, NetworkPlace, WorkloadFiles } from './isolation/isolation.ts';
import { DiskWatch } from './limits/disk-watch.ts';
import { describeIsolation, describeLimits, processLimits } from './limits/held-limits.ts';
import { ProcessWatch } from './limits/process-watch.ts';
import { MadeParts } from './made-parts.ts';
import type { WorkloadProxies } from './network/workload-proxies.ts';
import type { WorkloadProxy } from './network/workload-proxy.ts';
import { openService } from './network/workload-services.ts';
import { StartedProgram } from './program/started-program.ts';
import { workloadEnvironment } from './program/workload-environment.ts';
import { RunningWorkload } from './running-workload.ts';
import { checkSources, checkSpec } from './spec-check.ts';
import { removeTree } from './tree-removal.ts';
import type { WorkloadUsers } from './users/workload-users.ts';
import type { Workload, WorkloadHold, WorkloadSpec, WorkloadUser } from './workload.ts';
import { createWorkloadFiles, writeBundle } from './workload-files.ts';
import { identifyProcess, type WorkloadRecords } from './workload-records.ts';

export type StarterParts = {
  readonly isolation: Isolation;
  readonly cgroups: Cgroups;
  readonly records: WorkloadRecords;
  readonly proxies: WorkloadProxies;
  /** Undefined: all run as the user of this process. */
  readonly users: WorkloadUsers | undefined;
  /** That of each workload is made in it. */
  readonly directory: string;
  readonly log: Log;
};

type Network = { readonly place: NetworkPlace; readonly proxy: WorkloadProxy | undefined };

export class WorkloadStarter {
  readonly #parts: StarterParts;
  readonly #watches = { disk: new DiskWatch(), processes: new ProcessWatch() };
  /** Workloads that run or begin. */
  readonly #current = new Map<string, RunningWorkload | undefined>();
  #isClosed = false;

  constructor(parts: StarterParts) {
    this.#parts = parts;
  }

  isCurrent(id: string): boolean {
    return this.#current.has(id);
  }

  async start(spec: WorkloadSpec): Promise<Workload> {
    const { isolation, records, log } = this.#parts;
    checkSpec(spec, isolation.kind);
    await checkSources(spec.mounts, isolation.kind);
    if (this.#isClosed) throw new Error('workloads are closed');
    if (this.#current.has(spec.id)) throw new Error(`the workload ${spec.id} runs already`);
    this.#current.set(spec.id, undefined);
    const made = new MadeParts(spec.id, log);
    const dispose = async (): Promise<void> => {
      // A record stays with what is left: the next cleanup removes that.
      if (await made.undo()) await records.remove(spec.id).catch(() => undefined);
      this.#current.delete(spec.id);
    };
    try {
      const workload = await this.#begin(spec, made, dispose);
      if (this.#isClosed) await workload.stop(0);
      return workload;
    } catch (error) {
      await dispose();
      throw error;
    }
  }

  /** Ends all workloads; those that begin meanwhile end at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#current.values()].map((workload) => workload?.stop(0)));
  }

  async #begin(spec: WorkloadSpec, made: MadeParts, dispose: () => Promise<void>): Promise<RunningWorkload> {
    const { isolation, cgroups, records, directory, log } = this.#parts;
    const { id, limits } = spec;
    const user = await this.#userOf(spec, made);
    const record = { isolation: isolation.kind, ...(user !== undefined && { uid: user.uid }) };
    await records.write(id, record);
    const place = join(directory, id);
    made.add('its files', () => removeWhole(place));
    const files = await createWorkloadFiles(place, user);
    made.add('its group', () => cgroups.remove(id));
    await cgroups.create(id, limits);
    const network = await this.#openNetwork(spec, files, made);
    const plan: LaunchPlan = {
      ...{ id, command: spec.command, mounts: spec.mounts, user, files, network: network.place },
      cgroupFiles: cgroups.entryFiles(id),
      limits: processLimits(limits, cgroups.missing),
    };
    const program = await this.#launch(spec, plan);
    const containment = isolation.contain(plan, program.pid);
    try {
      const recorded = await identifyProcess(program.pid);
      await records.write(id, { ...record, ...(recorded && { process: recorded }) });
      await program.begin({ environment: this.#environmentOf(spec, files, network), cwd: spec.cwd });
    } catch (error) {
      containment.kill();
      await program.exited;
      await containment.empty();
      await program.endOutput();
      throw error;
    }
    const workload = new RunningWorkload({
      ...{ spec, program, containment, proxy: network.proxy, cgroups, log, dispose, watches: this.#watches },
      held: this.#holdOf(spec),
      writable: writableOf(spec, files),
    });
    this.#current.set(id, workload);
    return workload;
  }

  async #userOf({ user }: WorkloadSpec, made: MadeParts): Promise<WorkloadUser | undefined> {
    const { users } = this.#parts;
    if (users === undefined) {
      if (user !== undefined) throw new TypeError('user: there are no host users of workloads here');
      return undefined;
    }
    const used = user ?? users.take();
    if (user !== undefined) await users.hold(user);
    made.add('its host user', () => (user === undefined ? users.release(used) : users.letGo(used)));
    return used;
  }

  async #launch(spec: WorkloadSpec, plan: LaunchPlan): Promise<StartedProgram> {
    const launch = this.#parts.isolation.launch(plan);
    try {
      return await StartedProgram.start(launch, spec);
    } finally {
      launch.close();
    }
  }

  async #openNetwork(spec: WorkloadSpec, files: WorkloadFiles, made: MadeParts): Promise<Network> {
    const { isolation, proxies } = this.#parts;
    const { id, network } = spec;
    const place = await isolation.openNetwork();
    made.add('its network', () => place.close());
    if (network === 'none') return { place, proxy: undefined };
    const listen = await place.openListen();
    const { group, policy } = network;
    const proxy = await proxies.create({ id, group, policy, listen, onRefusal: spec.onRefusal });
    made.add('its sandbox', () => proxies.remove(id));
    await writeBundle(files, await proxy.caBundle());
    for (const service of network.services ?? []) made.add('a service', await openService(service, place));
    return { place, proxy };
  }

  #environmentOf(
    { env, limits, network }: WorkloadSpec,
    files: WorkloadFiles,
    { place, proxy }: Network,
  ): Readonly<Record<string, string>> {
    const { temporary, bundle } = this.#parts.isolation.pathsOf(files);
    const used = proxy !== undefined && network !== 'none';
    return workloadEnvironment({
      ...{ own: env, temporary, memBytes: limits.memBytes },
      ...(used && {
        proxy: {
          url: place.proxyUrl(proxy.url, proxy.token),
          bundle,
          placeholders: placeholdersOf(network.policy),
        },
      }),
    });
  }

  #holdOf({ limits, network }: WorkloadSpec): WorkloadHold {
    const { isolation, cgroups } = this.#parts;
    const notes = [
      ...describeIsolation(isolation.kind, network),
      ...describeLimits(limits, cgroups.missing).map(({ note }) => note),
    ];
    return { isolation: isolation.kind, notes };
  }
}

function writableOf(
  { mounts }: WorkloadSpec,
  { temporary, longTemporary }: WorkloadFiles,
): readonly string[] {
  return [temporary, longTemporary, ...mounts.filter(({ writable }) => writable).map(({ source }) => source)];
}

async function removeWhole(path: string): Promise<void> {
  if (!(await removeTree(path))) throw new Error(`${path} cannot be removed`);
}
