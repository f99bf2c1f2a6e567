// Runs the commands of one build, each in a workload of its own: isolated, limited, and all of them within one time.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import {
  describeEnd,
  type Workload,
  type WorkloadEnd,
  type WorkloadLimits,
  type WorkloadMount,
  type WorkloadNetwork,
  type Workloads,
  type WorkloadUser,
} from '../../../workload/workload.ts';
import type { LogLevel } from '../../deployments/log-lines.ts';
import { BuildError } from '../build-error.ts';
import { RefusalLines } from '../environment/build-network.ts';
import type { PlannedCommand } from '../../deployments/command-text.ts';

export type CommandGround = {
  readonly workloads: Pick<Workloads, 'start'>;
  readonly user: WorkloadUser | undefined;
  readonly network: WorkloadNetwork;
  readonly limits: { readonly memoryBytes: number; readonly diskBytes: number };
  /** Programs of builds. */
  readonly bin: string;
  readonly mounts: readonly WorkloadMount[];
  readonly env: Readonly<Record<string, string>>;
  readonly log: { add(level: LogLevel, message: string, isCut?: boolean): void };
  /** When the build has taken too long, by `performance.now()`. */
  readonly deadlineMs: number;
  /** The build is not wanted any more. */
  readonly signal: AbortSignal;
};

const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin';
/** A package manager runs compilers beside each other; a bomb needs more. */
const PROCESSES = 1_024;
const OPEN_FILES = 16_384;
/** All commands of a build together. Whoever prints this much does nothing else. */
const MAX_OUTPUT_BYTES: number = 64 * 1024 * 1024;

/** Of one build. */
export class CommandRunner {
  readonly #ground: CommandGround;
  readonly #limits: WorkloadLimits;
  readonly #refusals: RefusalLines;
  #printed = 0;
  #reported: readonly string[] = [];

  constructor(ground: CommandGround) {
    this.#ground = ground;
    this.#refusals = new RefusalLines((line) => ground.log.add('WARNING', line));
    const { memoryBytes, diskBytes } = ground.limits;
    this.#limits = { memBytes: memoryBytes, diskBytes, pids: PROCESSES, openFiles: OPEN_FILES };
  }

  /** `root`: what the command may write to. Rejects with a BuildError when it fails, or with the reason of the signal. */
  async run(command: PlannedCommand, root: string): Promise<void> {
    const { log, signal } = this.#ground;
    const name = command.words.join(' ');
    log.add('INFO', `$ ${name}`);
    signal.throwIfAborted();
    const workload = await this.#start(command, root);
    const stop = (): void => void workload.stop(0);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted || this.#printed > MAX_OUTPUT_BYTES) stop();
    this.#reportHold(workload);
    try {
      const end = await workload.ended;
      signal.throwIfAborted();
      this.#check(name, end);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async #start(command: PlannedCommand, root: string): Promise<Workload> {
    const { workloads, user, network, mounts, log } = this.#ground;
    const timeoutMs = Math.floor(this.#ground.deadlineMs - performance.now());
    if (timeoutMs <= 0) throw failed('the build took longer than allowed');
    const started: { workload?: Workload } = {};
    const onLine = (line: string, isTruncated: boolean): void => {
      this.#printed += line.length + 1;
      log.add('INFO', line, isTruncated);
      if (this.#printed > MAX_OUTPUT_BYTES) void started.workload?.stop(0);
    };
    try {
      started.workload = await workloads.start({
        id: `build-${randomBytes(8).toString('hex')}`,
        command: command.words,
        cwd: join(root, command.directory),
        env: this.#environment(command, root),
        mounts: [...mounts, { source: root, target: root, writable: true }],
        ...{ limits: this.#limits, network, user, timeoutMs },
        onLine: (_, line, isTruncated) => onLine(line, isTruncated),
        onRefusal: (refusal) => this.#refusals.note(refusal),
      });
      return started.workload;
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : 'unknown';
      throw new BuildError('BUILD_FAILED', `a command of the build could not be started: ${reason}`, {
        cause,
      });
    }
  }

  /** Programs that were installed come after ours: `npm` of a package is not what installs packages. */
  #environment({ directory, env }: PlannedCommand, root: string): Readonly<Record<string, string>> {
    const installed = [...new Set([join(root, directory), root])].map((one) =>
      join(one, 'node_modules/.bin'),
    );
    const path = [this.#ground.bin, ...installed, SYSTEM_PATH].join(':');
    return { CI: 'true', ...this.#ground.env, ...env, PATH: path };
  }

  #reportHold({ held }: Workload): void {
    for (const note of held.notes) if (!this.#reported.includes(note)) this.#ground.log.add('INFO', note);
    this.#reported = held.notes;
  }

  #check(name: string, end: WorkloadEnd): void {
    const mebibytes = Math.round(MAX_OUTPUT_BYTES / 1024 ** 2);
    if (this.#printed > MAX_OUTPUT_BYTES)
      throw failed(`\`${name}\` failed: the build printed more than ${mebibytes} MiB`);
    if (end.code === 0 && end.reason === undefined) return;
    throw failed(`\`${name}\` failed: ${describeEnd(end, this.#limits)}`);
  }
}

function failed(message: string): BuildError {
  return new BuildError('BUILD_FAILED', message);
}
