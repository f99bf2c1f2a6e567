// One claimed build from its beginning to the state of its revision. Whatever happens, the revision ends with a reason in its log, or
// the build is left to the runner that follows this one.
import { setTimeout as delay } from 'node:timers/promises';
import { describeBug, type Log } from '../../base/log.ts';
import {
  type Builder as Claimer,
  type BuildResult,
  type BuildTask,
  finishBuild,
  giveBuildBack,
  isBuilding,
  MAX_ATTEMPTS,
  replaceBuild,
} from '../deployments/builds.ts';
import type { Mask } from '../deployments/log-lines.ts';
import type { Store } from '../store/database.ts';
import { type BuildGround, buildSource } from './build.ts';
import type { BuildDirectories } from './build-directories.ts';
import { BuildError } from './build-error.ts';
import { BuildLog } from './build-log.ts';

/** `postponed`: its revision has another build, which begins elsewhere on this machine. */
export type BuildOutcome =
  | 'ready'
  | 'create_failed'
  | 'build_failed'
  | 'interrupted'
  | 'abandoned'
  | 'postponed';

export type RunningParts = {
  readonly store: Pick<Store, 'db' | 'write'>;
  readonly claimer: Claimer;
  readonly ground: BuildGround;
  readonly directories: BuildDirectories;
  openMask(task: BuildTask): Promise<Mask>;
  /** After a failure of the machine, longer with each attempt. */
  readonly pauseMs: number;
  readonly log: Log;
};

type UnwantedOutcome = 'interrupted' | 'abandoned';

/** Why the signal of a build was aborted. */
class Unwanted extends Error {
  readonly outcome: UnwantedOutcome;

  constructor(outcome: UnwantedOutcome) {
    super(outcome);
    this.outcome = outcome;
  }
}

const INTERRUPTED = 'the build was ended: a newer revision came, or the deployment is deleted';
const ABANDONED = 'the build was ended, because its machine stops: it begins again when the machine is back';
/** `attempts`: those that its revision has used up. */
type Postponed = { readonly kind: 'postponed'; readonly reason: string; readonly attempts: number };

const OCCUPIED =
  'what an earlier attempt has left cannot be removed yet: the build begins again in another directory';
const MACHINE_FAILED = 'the machine that builds has failed: its operator finds the reason in its log';
const TRIED_AGAIN = `${MACHINE_FAILED}. The build begins again`;
const HIDDEN = '*** (hidden: the secrets of the deployment cannot be read now)';
const RETRY_MS = 1_000;

export class RunningBuild {
  readonly task: BuildTask;
  /** Never rejects. Nothing of it runs then. */
  readonly ended: Promise<BuildOutcome>;
  readonly #parts: RunningParts;
  readonly #ending = new AbortController();

  constructor(parts: RunningParts, task: BuildTask) {
    this.#parts = parts;
    this.task = task;
    this.ended = this.#run();
  }

  /** Ends it if its revision is not to be built any more. Rejects when the database does. */
  async check(): Promise<void> {
    if (!(await isBuilding(this.#parts.store.db, this.task.revisionId)))
      this.#ending.abort(new Unwanted('interrupted'));
  }

  /** This process ends: the next one builds it again. */
  abandon(): void {
    this.#ending.abort(new Unwanted('abandoned'));
  }

  async #run(): Promise<BuildOutcome> {
    const { store, log, directories } = this.#parts;
    const startedMs = performance.now();
    const mask = await this.#openMask();
    const lines = new BuildLog(store.db, this.task, { log, mask });
    let outcome: BuildOutcome = 'abandoned';
    try {
      const result = await this.#build(lines, mask);
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
      outcome = 'outcome' in result ? result.outcome : await this.#conclude(result);
      const [level, text] = describe(outcome, result, seconds);
      await lines.end(level, text);
      if (outcome === 'abandoned') await giveBuildBack(store.db, this.task, this.#parts.claimer);
    } catch (error) {
      log.error(describeBug(error), 'a build could not be ended');
    }
    await directories.end(this.task.buildId).catch((error: unknown) => {
      log.warn(describeBug(error), 'the directory of a build is removed later');
    });
    return outcome;
  }

  /** Without the secrets nothing is shown but what this program says by itself. */
  async #openMask(): Promise<Mask> {
    try {
      return await this.#parts.openMask(this.task);
    } catch (error) {
      const { log } = this.#parts;
      log.error({ ...describeBug(error), build: this.task.buildId }, 'the log of a build is not shown');
      return () => HIDDEN;
    }
  }

  async #build(lines: BuildLog, mask: Mask): Promise<BuildResult | Postponed | Unwanted> {
    const { ground, directories, log } = this.#parts;
    const { signal } = this.#ending;
    try {
      if (this.task.attempt > 1)
        lines.add('WARNING', `attempt ${this.task.attempt}: the machine ended or failed before`);
      const root = await directories.begin(this.task.buildId);
      signal.throwIfAborted();
      // No attempt is used up: nothing of the revision has failed.
      if (root === undefined) return { kind: 'postponed', reason: OCCUPIED, attempts: this.task.attempt - 1 };
      const sizeBytes = await buildSource(ground, this.task, { root, log: lines, signal });
      return { kind: 'ready', directory: root, sizeBytes };
    } catch (error) {
      if (signal.aborted) return signal.reason as Unwanted;
      if (error instanceof BuildError)
        return { kind: 'failed', status: error.status, reason: mask(error.message) };
      log.error({ ...describeBug(error), build: this.task.buildId }, 'a build has failed on this machine');
      return this.#afterMachineFailure();
    }
  }

  /** Such as a bucket that does not respond: after a while it may. */
  async #afterMachineFailure(): Promise<BuildResult | Postponed | Unwanted> {
    const { attempt } = this.task;
    if (attempt >= MAX_ATTEMPTS) return { kind: 'failed', status: 'BUILD_FAILED', reason: MACHINE_FAILED };
    const { signal } = this.#ending;
    await delay(attempt * this.#parts.pauseMs, undefined, { signal }).catch(() => undefined);
    return signal.aborted
      ? (signal.reason as Unwanted)
      : { kind: 'postponed', reason: TRIED_AGAIN, attempts: attempt };
  }

  #conclude(result: BuildResult | Postponed): Promise<BuildOutcome> {
    return result.kind === 'postponed' ? this.#postpone(result.attempts) : this.#finish(result);
  }

  async #finish(result: BuildResult): Promise<BuildOutcome> {
    const { store, claimer } = this.#parts;
    return this.#untilStored(async (isAgain) => {
      if (await finishBuild(store, this.task, claimer, result)) return outcomeOf(result);
      // What failed before may have been the response alone.
      return isAgain && !(await isBuilding(store.db, this.task.revisionId))
        ? outcomeOf(result)
        : 'interrupted';
    });
  }

  async #postpone(attempts: number): Promise<BuildOutcome> {
    const { store, claimer } = this.#parts;
    return this.#untilStored(async () => {
      await replaceBuild(store, { buildId: this.task.buildId, attempts }, claimer);
      return 'postponed';
    });
  }

  /** As long as the database is away, unless this process ends. */
  async #untilStored(work: (isAgain: boolean) => Promise<BuildOutcome>): Promise<BuildOutcome> {
    const { log } = this.#parts;
    for (let isAgain = false; !this.#ending.signal.aborted; isAgain = true) {
      try {
        return await work(isAgain);
      } catch (error) {
        log.warn(describeBug(error), 'the end of a build is not stored yet');
        await delay(RETRY_MS, undefined, { signal: this.#ending.signal }).catch(() => undefined);
      }
    }
    return (this.#ending.signal.reason as Unwanted).outcome;
  }
}

function outcomeOf(result: BuildResult): BuildOutcome {
  if (result.kind === 'ready') return 'ready';
  return result.status === 'CREATE_FAILED' ? 'create_failed' : 'build_failed';
}

function describe(
  outcome: BuildOutcome,
  result: BuildResult | Postponed | Unwanted,
  seconds: string,
): readonly ['INFO' | 'WARNING' | 'ERROR', string] {
  if (outcome === 'interrupted') return ['WARNING', INTERRUPTED];
  if (outcome === 'abandoned' || 'outcome' in result) return ['WARNING', ABANDONED];
  if (result.kind === 'postponed') return ['WARNING', result.reason];
  if (result.kind === 'failed') return ['ERROR', result.reason];
  const mebibytes = (result.sizeBytes / 1024 ** 2).toFixed(1);
  return ['INFO', `built in ${seconds} s: ${mebibytes} MiB`];
}
