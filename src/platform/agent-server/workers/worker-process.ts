// The process of one worker: Node with the program of workers, the variables of the deployment and nothing of the server's
// own, a heap of its own limit, and the first place when memory runs out.
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Duplex, Readable } from 'node:stream';
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
  let child: ChildProcess;
  try {
    child = spawn(process.execPath, [...nodeArguments, file, String(process.pid)], {
      cwd: root,
      env: { ...inherited(), ...program.env },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      // The leader of a group: what it has started ends with it.
      detached: true,
    });
  } catch (error) {
    // What `spawn` throws instead of emitting it: no memory is left, for example.
    return unstarted(Promise.resolve(describeStart(error)));
  }
  const { pid, stdio } = child;
  const ended = endOf(child);
  // Without a descriptor left there are no streams either.
  if (pid === undefined || stdio === undefined) {
    for (const stream of stdio ?? []) stream?.destroy();
    return unstarted(ended);
  }
  void raiseOomScore(pid, log);
  return {
    pid,
    channel: stdio[3] as Duplex,
    stdout: child.stdout as Readable,
    stderr: child.stderr as Readable,
    ended,
    kill: () => killGroup(pid),
  };
}

/** There is no process: it ends with the reason, as one that was started does. */
function unstarted(ended: Promise<string>): WorkerProcess {
  const channel = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const empty = (): Readable => Readable.from([]);
  return { pid: undefined, channel, stdout: empty(), stderr: empty(), ended, kill: () => undefined };
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
  child.once('error', (error) => resolve(describeStart(error)));
  return promise;
}

function describeStart(error: unknown): string {
  return errorCode(error) ?? 'it cannot be started';
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // No process of the group is left.
  }
}
