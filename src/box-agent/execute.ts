// Runs a command by a shell in a process group of its own. Its output waits for credit, so that a command whose output nobody
// reads is stopped by its pipe and not held in memory. What the command leaves running in the background lives on.
import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { RunMethod } from './agent.ts';
import type { AgentCall } from './agent-call.ts';
import { CallError } from './call-error.ts';
import type { CallParams } from './protocol/messages.ts';
import { toCommandVariables } from './protocol/variables.ts';

type ExecuteParams = Extract<CallParams, { readonly method: 'execute' }>;
type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** How long output of background processes is awaited once the command itself has ended. */
const QUIET_MS = 100;
/** Images without bash have this. */
const FALLBACK_SHELL = '/bin/sh';
const DEFAULT_SHELL = '/bin/bash';

export const execute: RunMethod<'execute'> = async (call, params) => {
  if (params.cwd !== null && !isDirectory(params.cwd)) throw new CallError('CWD_MISSING');
  const child = await start(params);
  const pid = child.pid ?? 0;
  let hasExited = false;
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      hasExited = true;
      resolve({ code, signal });
    });
  });
  const kill = (): void => {
    // The number may belong to another group once the leader was reaped.
    if (!hasExited) killGroup(pid);
  };
  call.onKill = kill;
  call.aborted.addEventListener('abort', kill);
  if (call.aborted.aborted) kill();
  const outputs = outputsOf(child, call);
  await call.sendHead({ pid });
  void writeInput(call, child);
  const { code, signal } = await exited;
  await Promise.all(outputs.map((output) => output.settle()));
  return { exitCode: code ?? 0, signal: signal === null ? 0 : constants.signals[signal] };
};

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

async function start({ shell, ...params }: ExecuteParams): Promise<ChildProcess> {
  for (const one of shell === DEFAULT_SHELL ? [shell, FALLBACK_SHELL] : [shell])
    try {
      return await spawnShell(one, params);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    }
  throw new CallError('SHELL_MISSING');
}

function spawnShell(
  shell: string,
  { command, env, cwd, stdin }: Omit<ExecuteParams, 'shell'>,
): Promise<ChildProcess> {
  const { promise, resolve, reject } = Promise.withResolvers<ChildProcess>();
  const child = spawn(shell, ['-c', command], {
    cwd: cwd ?? undefined,
    env: { ...toCommandVariables(process.env), ...env },
    stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    detached: true,
  });
  child.once('spawn', () => resolve(child)).once('error', reject);
  return promise;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

async function writeInput(call: AgentCall, { stdin }: ChildProcess): Promise<void> {
  // A command that has closed its input: what comes is discarded.
  stdin?.on('error', () => stdin.destroy());
  try {
    for await (const piece of call.input()) {
      if (stdin === null || stdin.destroyed || stdin.write(piece)) continue;
      await new Promise<void>((resolve) => {
        stdin.once('drain', resolve).once('close', resolve);
      });
    }
    stdin?.end();
  } catch {
    stdin?.destroy();
  }
}

function outputsOf({ stdout, stderr }: ChildProcess, call: AgentCall): readonly Output[] {
  const outputs: Output[] = [];
  if (stdout !== null) outputs.push(new Output(stdout, (bytes) => call.sendData('data', bytes)));
  if (stderr !== null) outputs.push(new Output(stderr, (bytes) => call.sendData('error_data', bytes)));
  return outputs;
}

/** Sends what a pipe holds, one piece at a time. */
class Output {
  readonly #stream: Readable;
  #isEnded = false;
  #isSending = false;
  #pieces = 0;
  #wake: (() => void) | undefined;

  constructor(stream: Readable, send: (bytes: Buffer) => Promise<void>) {
    this.#stream = stream;
    const end = (): void => {
      this.#isEnded = true;
      this.#wake?.();
    };
    stream.on('data', (bytes: Buffer) => {
      this.#pieces += 1;
      this.#isSending = true;
      stream.pause();
      send(bytes)
        // The call was aborted: background processes may go on writing.
        .catch(() => this.#discard())
        .finally(() => {
          this.#isSending = false;
          stream.resume();
          this.#wake?.();
        });
    });
    stream.on('end', end).on('close', end).on('error', end);
  }

  /** Resolves when the pipe has ended and all of it is sent; or when the command's background processes are quiet. */
  async settle(): Promise<void> {
    let isQuiet = false;
    while (this.#isSending || !(this.#isEnded || isQuiet)) {
      const before = this.#pieces;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      this.#wake = () => resolve(false);
      const limit = setTimeout(resolve, QUIET_MS, true);
      const isLate = await promise;
      clearTimeout(limit);
      isQuiet = isLate && before === this.#pieces;
    }
    this.#discard();
  }

  /** A pipe that nobody reads would stop a background process; one that is closed would end it. */
  #discard(): void {
    this.#stream.removeAllListeners('data');
    this.#stream.resume();
  }
}
