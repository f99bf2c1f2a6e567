// The process of one worker: Node with the program of workers, the variables of the deployment and nothing of the server's
// own, a heap of its own limit, and the first place when memory runs out.
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { errorCode, type Log } from '../../../base/log.ts';

export type WorkerProgram = {
  /** Absent: the one that belongs to this version. */
  readonly file?: string;
  /** The directory of the configuration file. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly heapMegabytes: number;
};

export type WorkerProcess = {
  readonly pid: number | undefined;
  readonly channel: Duplex;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process has ended: `SIGKILL`, `exit code 1`, or why it was not started. */
  readonly ended: Promise<string>;
  /** With everything that it has started. */
  kill(): void;
};

/** Between 0 and 1000: of this machine, the kernel ends workers before the server and the database. */
const OOM_SCORE = '800';
/** Of the server's own variables, those without which no program works. */
const INHERITED: readonly string[] = ['PATH', 'HOME'];

export function startProcess(program: WorkerProgram, log: Log): WorkerProcess {
  const { file = findProgram(), root, heapMegabytes } = program;
  const nodeArguments = [
    '--enable-source-maps',
    `--max-old-space-size=${heapMegabytes}`,
    '--disable-warning=ExperimentalWarning',
  ];
  const child = spawn(process.execPath, [...nodeArguments, file], {
    cwd: root,
    env: { ...inherited(), ...program.env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    // The leader of a group: what it has started ends with it.
    detached: true,
  });
  if (child.pid !== undefined) void raiseOomScore(child.pid, log);
  return {
    pid: child.pid,
    channel: child.stdio[3] as Duplex,
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
    ended: endOf(child),
    kill: () => killGroup(child),
  };
}

/** In the bundle the program is a file beside this one. */
function findProgram(): string {
  return basename(import.meta.filename).endsWith('.js')
    ? join(import.meta.dirname, 'agent-worker.js')
    : join(import.meta.dirname, '..', '..', '..', 'agent-worker', 'main.ts');
}

function inherited(): Record<string, string> {
  const found = INHERITED.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(found.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

async function raiseOomScore(pid: number, log: Log): Promise<void> {
  if (process.platform !== 'linux') return;
  try {
    await writeFile(`/proc/${pid}/oom_score_adj`, OOM_SCORE);
  } catch (error) {
    const code = errorCode(error);
    // It has ended already.
    if (code !== 'ENOENT' && code !== 'ESRCH')
      log.warn({ worker: pid, code }, 'oom_score_adj of a worker cannot be raised');
  }
}

function endOf(child: ChildProcess): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  child.once('error', (error) => resolve(errorCode(error) ?? 'it cannot be started'));
  return promise;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // No process of the group is left.
  }
}
