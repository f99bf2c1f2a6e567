// Starts a program in a box and ends it with everything that it started. The program has one channel to us, descriptor 3.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { type BoxArguments, boxArguments, encodeArguments, mountPoints } from './arguments.ts';
import { joinedCommand } from '../cgroup/joined-command.ts';
import { limitOptions } from '../cgroup/resource-limits.ts';
import { systemEnvironment } from '../command.ts';
import { killContained } from './namespaces/contained-processes.ts';
import { enterNamespaces } from './namespaces/entering.ts';
import { LastLines } from './last-lines.ts';
import type { OpenNamespaces } from './namespaces/open-namespace.ts';
import { within } from './time-limit.ts';

export type BoxProgramOptions = {
  /** Of the box: mount, network and, without root, user namespace. */
  readonly namespaces: OpenNamespaces;
  /** The host user of the box; undefined: that of this process. */
  readonly uid: number | undefined;
  /** See `Cgroups.entryFiles`. */
  readonly cgroupFiles: readonly string[];
  /** A second limit, where the host user is the box's own. */
  readonly maxProcesses: number | undefined;
  /** The file of the filter. */
  readonly seccompFile: string;
  readonly box: Omit<BoxArguments, 'seccompDescriptor'>;
  /** Paths in the box; they are visible to every user of the host. */
  readonly command: readonly string[];
  /** Ends what has outlived the program; called when that has ended, however it ended. */
  endSurvivors(): Promise<void>;
};

export type ProgramExit = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines of standard error, of bwrap or of the program: input of a box, bounded. */
  readonly lastLines: string;
};

const SECCOMP = 4;
const ARGUMENTS = 5;
const NAMESPACES = 6;

const EXIT_GRACE_MS = 200;
/** Longer than anything that a program is waited for at its end. */
const END_MS = 20_000;

// No process of the box runs now. A link that it left where bwrap mounts would lead bwrap elsewhere.
const PREPARE = `
cd "$1" || exit 125
for name in ${mountPoints.map((path) => path.slice(1)).join(' ')}; do
  if [ -L "$name" ] || ! [ -d "$name" ]; then rm -f -- "$name" && mkdir -m 0755 -- "$name" || exit 125; fi
done
cd /
shift`;

export class BoxProgram {
  readonly #child: ChildProcess;
  /** Never stops waiting: the box decides whether it reads. */
  readonly channel: Duplex;
  /** Nothing of the program is left then. */
  readonly exited: Promise<ProgramExit>;

  private constructor(child: ChildProcess, endSurvivors: () => Promise<void>) {
    this.#child = child;
    this.channel = child.stdio[3] as unknown as Duplex;
    // A box that dies resets the channel; `exited` reports it.
    this.channel.on('error', () => undefined);
    this.exited = exitOf(child, endSurvivors);
    this.channel.once('close', () => this.#endAbandoned());
  }

  /** The program may fail at once: `exited` tells. Throws an Error for what can be seen before. */
  static start(options: BoxProgramOptions): BoxProgram {
    const { box, seccompFile } = options;
    const encoded = encodeArguments(boxArguments({ ...box, seccompDescriptor: SECCOMP }));
    const { command, descriptors } = startCommand(options);
    const [program = '', ...args] = command;
    const filter = openSync(seccompFile, 'r');
    try {
      const child = spawn(program, args, {
        cwd: '/',
        env: systemEnvironment,
        stdio: ['ignore', 'ignore', 'pipe', 'pipe', filter, 'pipe', ...descriptors],
      });
      // Reported by `exited`; without a listener it would end this process, and with it every box.
      child.on('error', () => undefined);
      // Node makes no streams when no descriptor is left for them.
      const { stdio }: { readonly stdio?: readonly unknown[] } = child;
      if (stdio === undefined) throw new Error('no descriptor is left for a program of the box');
      const argumentPipe = stdio[ARGUMENTS] as Duplex;
      argumentPipe.on('error', () => undefined).end(encoded);
      child.on('exit', () => argumentPipe.destroy());
      return new BoxProgram(child, options.endSurvivors);
    } finally {
      closeSync(filter);
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Nobody could speak to the program any more. One that is about to exit closes its descriptors before. */
  #endAbandoned(): void {
    const timer = setTimeout(() => void this.end().catch(() => undefined), EXIT_GRACE_MS);
    void this.exited.then(() => clearTimeout(timer));
  }

  /** Resolves when no process of the program is left; rejects if one cannot be ended. */
  async end(): Promise<void> {
    if (this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null)
      killContained(this.#child.pid);
    await within(this.exited, END_MS, 'the program of the box does not end');
  }
}

function startCommand({ namespaces, uid, cgroupFiles, maxProcesses, box, command }: BoxProgramOptions) {
  const limited = ['prlimit', ...limitOptions({ processes: maxProcesses }), '--'];
  const user = String(uid);
  const asUser = ['setpriv', '--reuid', user, '--regid', user, '--clear-groups', '--inh-caps=-all', '--'];
  const bwrap = ['bwrap', '--args', String(ARGUMENTS), '--', ...command];
  const prepared = [box.root, ...limited, ...(uid === undefined ? [] : asUser), ...bwrap];
  const entry = enterNamespaces(namespaces, prepared, { firstDescriptor: NAMESPACES, prepare: PREPARE });
  return {
    command: joinedCommand(cgroupFiles, entry.command),
    descriptors: entry.descriptors,
  };
}

function exitOf(child: ChildProcess, endSurvivors: () => Promise<void>): Promise<ProgramExit> {
  const { promise, resolve } = Promise.withResolvers<ProgramExit>();
  const lines = child.stderr === null ? undefined : new LastLines(child.stderr);
  child.on('error', ({ message }) => {
    if (child.pid === undefined) resolve({ code: null, signal: null, lastLines: message });
  });
  // Not the end of the channel: that waits for its reader.
  child.on('exit', async (code, signal) => {
    // Before the end of its standard error, which they hold. If it fails, the next start or the end of the box reports it.
    await endSurvivors().catch(() => undefined);
    resolve({ code, signal, lastLines: (await lines?.end()) ?? '' });
  });
  return promise;
}
