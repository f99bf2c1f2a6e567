// A program as a child of the platform: started as soon as it has something to do, started again when it ends, and ended with the platform,
// however that ends. It is given its settings on a pipe, because arguments and environment of a process can be read by others.
import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Log, LogSink } from '../../base/log.ts';
import { inheritedVariables } from '../../base/variables/inherited-variables.ts';
import {
  PARENT_INPUT_DESCRIPTOR,
  PARENT_INPUT_VARIABLE,
  type ParentInput,
  writeParentInput,
} from './parent-input.ts';

export type ProgramChildOptions = {
  /** The command that the name of the one to run is appended to. */
  readonly program: readonly string[];
  /** Switches of Node for it. */
  readonly switches?: readonly string[];
  readonly command: 'runner' | 'export-worker';
  /** In the log. */
  readonly title: string;
  readonly input: ParentInput;
  /** Whether there is something to do. */
  isNeeded(): Promise<boolean>;
  readonly log: Log;
  /** For the lines of its log. */
  readonly sink: Pick<LogSink, 'write'>;
};

export type ProgramChild = {
  /** Resolves when it has ended: after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>;
};

const LOOK_MS = 2_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;
const STABLE_MS = 60_000;
const KILL_MS = 5_000;

/** Returns at once. */
export function startProgramChild(options: ProgramChildOptions): ProgramChild {
  const closing = new AbortController();
  let child: ChildProcess | undefined;
  const running = keep(options, closing.signal, (started) => (child = started));
  return {
    async close(graceMs) {
      closing.abort();
      child?.kill('SIGTERM');
      const kill = (): void => {
        options.log.error(`${options.title} did not end in its time: it is killed`);
        child?.kill('SIGKILL');
      };
      const timer = setTimeout(kill, graceMs + KILL_MS);
      await running;
      clearTimeout(timer);
    },
  };
}

/** Resolves when it is not wanted any more, and has ended. */
async function keep(
  options: ProgramChildOptions,
  signal: AbortSignal,
  onStarted: (child: ChildProcess) => void,
): Promise<void> {
  const pause = (ms: number): Promise<unknown> =>
    delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
  while (!signal.aborted && !(await options.isNeeded().catch(() => false))) await pause(LOOK_MS);
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    const beganMs = performance.now();
    const ended = run(options, onStarted);
    const { code, signal: killedBy, lastError } = await ended;
    if (signal.aborted) return;
    if (performance.now() - beganMs >= STABLE_MS) pauseMs = FIRST_PAUSE_MS;
    options.log.error({ code, signal: killedBy, reason: lastError, pauseMs }, `${options.title} ended`);
    await pause(pauseMs);
    pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
  }
}

type Ended = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** That it has printed. */
  readonly lastError: string | undefined;
};

/** Which authorities Node trusts besides its own, which it reads at its start: the child connects to what the platform has connected to. */
function trustVariables(): Record<string, string> {
  const { NODE_EXTRA_CA_CERTS: file, NODE_USE_SYSTEM_CA: usesSystem } = process.env;
  return {
    // The child has another working directory.
    ...(file !== undefined && file !== '' && { NODE_EXTRA_CA_CERTS: resolve(file) }),
    ...(usesSystem !== undefined && { NODE_USE_SYSTEM_CA: usesSystem }),
  };
}

function run(
  { program, switches = [], command, input, sink, log }: ProgramChildOptions,
  onStarted: (child: ChildProcess) => void,
): Promise<Ended> {
  const [file = '', ...args] = program;
  const stateHome = process.env['XDG_STATE_HOME'];
  const child = spawn(file, [...switches, ...args, command], {
    cwd: '/',
    env: {
      ...inheritedVariables(),
      ...trustVariables(),
      ...(stateHome !== undefined && { XDG_STATE_HOME: stateHome }),
      [PARENT_INPUT_VARIABLE]: String(PARENT_INPUT_DESCRIPTOR),
    },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  onStarted(child);
  const pipe = child.stdio[PARENT_INPUT_DESCRIPTOR] as Writable;
  // It may end before it has read everything.
  pipe.on('error', () => undefined);
  writeParentInput(pipe, input);
  createInterface({ input: child.stdout as Readable }).on('line', (line) => sink.write(`${line}\n`));
  let lastError: string | undefined;
  createInterface({ input: child.stderr as Readable }).on('line', (line) => {
    lastError = line;
    log.warn({ line }, command);
  });
  return new Promise((settle) => {
    child.once('error', ({ message }) => settle({ code: null, signal: null, lastError: message }));
    child.once('close', (code, signal) => {
      pipe.destroy();
      settle({ code, signal, lastError });
    });
  });
}
