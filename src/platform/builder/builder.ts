// The builds of one machine: claimed up to a limit, ended when nobody wants them any more, and their directories removed when no
// revision needs them. A notification wakes it, and it looks by itself too, because a notification may be lost.
import { chmod, mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../../base/log.ts';
import type { Workloads } from '../../workload/workload.ts';
import { type Builder as Claimer, type BuildTask, claimNextBuild } from '../deployments/builds.ts';
import type { Mask } from '../deployments/log-lines.ts';
import type { SourceStore } from '../deployments/source-store.ts';
import type { Store } from '../store/database.ts';
import type { Notifications } from '../store/postgres/notifications.ts';
import type { BuildGround } from './build.ts';
import { BuildDirectories } from './build-directories.ts';
import { DependencyCache } from './dependencies/dependency-cache.ts';
import { prepareBuildEnvironment } from './environment/build-environment.ts';
import { type BuildOutcome, RunningBuild, type RunningParts } from './running-build.ts';
import type { BuilderSettings } from './settings.ts';

export type BuilderOptions = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly notifications: Pick<Notifications, 'subscribe'>;
  /** Its row is there before `run`. */
  readonly claimer: Claimer;
  readonly workloads: Workloads;
  readonly sources: Pick<SourceStore, 'read'>;
  /** For the secrets of a revision: its archive may have what its caller sends as secrets, too. */
  openMask(task: BuildTask): Promise<Mask>;
  /** Of this process alone. Nothing above it is writable for a workload, and every user of the machine may pass through it. */
  readonly directory: string;
  readonly settings: BuilderSettings;
  /** The Node that will run what is built. */
  readonly node: string;
  /** The variables of the operator. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
  /** For metrics. */
  readonly onEnd?: (end: BuildEnd) => void;
  readonly intervalMs?: number;
  /** For what an earlier process has left of a build. */
  readonly patienceMs?: number;
};

export type BuildEnd = {
  readonly revisionId: string;
  readonly outcome: BuildOutcome;
  readonly seconds: number;
};

export type Builder = {
  /** Builds until the signal aborts; resolves when nothing of it runs. What has begun is built by the runner that follows. */
  run(signal: AbortSignal): Promise<void>;
  /** For a deployment that goes, after its revisions have ended, whether it builds or not. Rejects while something is left. */
  removeBuilds(deploymentId: string): Promise<void>;
  readonly running: number;
};

const INTERVAL_MS = 5_000;
const SWEEP_MS = 15_000;
/** Of unfinished installations, below the directory of the builder. */
const INSTALLATIONS = 'installations';
/** As well. */
const BUILDS = 'builds';

export function createBuilder(options: BuilderOptions): Builder {
  return new MachineBuilder(options);
}

class MachineBuilder implements Builder {
  readonly #options: BuilderOptions;
  readonly #running = new Map<string, RunningBuild>();
  #parts: RunningParts | undefined;
  #wake = Promise.withResolvers<void>();
  #sweptMs = Number.NEGATIVE_INFINITY;
  #sweeping: Promise<void> | undefined;
  #isAway = false;

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running.size;
  }

  async run(signal: AbortSignal): Promise<void> {
    const parts = await this.#prepare(signal);
    if (parts === undefined) return;
    this.#parts = parts;
    const wake = (): void => this.#wake.resolve();
    const subscriber = { onMessage: wake, onMissed: wake };
    const subscribing = this.#options.notifications.subscribe('deployments', subscriber);
    signal.addEventListener('abort', wake, { once: true });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      const timer = setTimeout(wake, this.#options.intervalMs ?? INTERVAL_MS);
      await this.#pass(parts, signal);
      if (!signal.aborted) await this.#wake.promise;
      clearTimeout(timer);
    }
    for (const build of this.#running.values()) build.abandon();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await this.#sweeping;
    signal.removeEventListener('abort', wake);
    // A database that is away holds up nobody who ends.
    void subscribing.then((unsubscribe) => unsubscribe());
  }

  /** Tried again until it succeeds: a disk may be full, or a file unreadable, for a while. Undefined: the signal has aborted. */
  async #prepare(signal: AbortSignal): Promise<RunningParts | undefined> {
    const { log, intervalMs = INTERVAL_MS } = this.#options;
    for (let isReported = false; !signal.aborted; isReported = true) {
      try {
        return await prepare(this.#options);
      } catch (error) {
        if (!isReported)
          log.error(describeBug(error), 'nothing is built until the machine is ready for builds');
      }
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
    }
    return undefined;
  }

  async removeBuilds(deploymentId: string): Promise<void> {
    const own = [...this.#running.values()].filter(({ task }) => task.deploymentId === deploymentId);
    await Promise.all(own.map((build) => build.check()));
    await Promise.all(own.map(({ ended }) => ended));
    const directories = this.#parts?.directories ?? this.#directoriesBefore();
    await directories.removeOf(deploymentId);
  }

  /** Those of an earlier process, for as long as this one does not build. */
  #directoriesBefore(): BuildDirectories {
    return directoriesOf(this.#options, this.#options.directory);
  }

  /** Never rejects. */
  async #pass(parts: RunningParts, signal: AbortSignal): Promise<void> {
    try {
      await Promise.all([...this.#running.values()].map((build) => build.check()));
      while (this.#running.size < this.#options.settings.concurrency && !signal.aborted) {
        const task = await claimNextBuild(parts.store, parts.claimer);
        if (task === undefined) break;
        this.#begin(parts, task);
      }
      this.#sweep(parts, signal);
      this.#isAway = false;
    } catch (error) {
      if (!this.#isAway) this.#options.log.warn(describeBug(error), 'builds cannot be read');
      this.#isAway = true;
    }
  }

  /** In the background: what takes long to be removed holds up no build. */
  #sweep({ directories }: RunningParts, signal: AbortSignal): void {
    const { log, intervalMs = INTERVAL_MS } = this.#options;
    const pauseMs = directories.hasLeftovers ? intervalMs : SWEEP_MS;
    if (this.#sweeping !== undefined || performance.now() - this.#sweptMs < pauseMs) return;
    this.#sweptMs = performance.now();
    this.#sweeping = directories
      .sweep(signal)
      .catch((error: unknown) => log.warn(describeBug(error), 'directories of builds were not removed'))
      .finally(() => (this.#sweeping = undefined));
  }

  #begin(parts: RunningParts, task: BuildTask): void {
    const startedMs = performance.now();
    const build = new RunningBuild(parts, task);
    this.#running.set(task.buildId, build);
    void build.ended.then((outcome) => {
      this.#running.delete(task.buildId);
      this.#wake.resolve();
      const seconds = (performance.now() - startedMs) / 1000;
      this.#options.onEnd?.({ revisionId: task.revisionId, outcome, seconds });
    });
  }
}

/** `directory`: of the builder, without links in its path. */
function directoriesOf(
  { store, claimer, workloads, settings, patienceMs, log }: BuilderOptions,
  directory: string,
): BuildDirectories {
  return new BuildDirectories(join(directory, BUILDS), {
    ...{ store, machineId: claimer.machineId, workloads, patienceMs, log },
    ...{ installations: join(directory, INSTALLATIONS), keptBytes: settings.keptBytes },
  });
}

/** Users of workloads pass through it, and see no names. */
async function createPassage(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await chmod(directory, 0o711);
}

async function prepare(options: BuilderOptions): Promise<RunningParts> {
  const { store, claimer, workloads, sources, settings, node, env, log } = options;
  const openMask = (task: BuildTask): Promise<Mask> => options.openMask(task);
  await createPassage(options.directory);
  const directory = await realpath(options.directory);
  const installations = join(directory, INSTALLATIONS);
  await createPassage(installations);
  const cache = await DependencyCache.open(join(directory, 'packages'), settings.cacheBytes, log);
  const environment = await prepareBuildEnvironment(join(directory, 'programs'), { node, env, log });
  await createPassage(join(directory, BUILDS));
  const directories = directoriesOf(options, directory);
  const ground: BuildGround = { workloads, sources, cache, installations, environment, settings };
  const pauseMs = options.intervalMs ?? INTERVAL_MS;
  return { store, claimer, ground, directories, openMask, pauseMs, log };
}
