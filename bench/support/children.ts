// The processes of a benchmark: each on a core of its own if the system allows it, measured by the kernel, and ended when
// the benchmark ends for any reason. Linux only.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { cpus } from 'node:os';

export type Child = {
  readonly name: string;
  readonly pid: number;
  readonly process: ChildProcess;
  /** Sends a message and resolves with the next one from the child; rejects when the child ends instead. */
  ask(message: unknown): Promise<unknown>;
  /** Kills it and the processes that it started. */
  stop(): Promise<void>;
};

export type StartOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** The core to run on, if the system allows it. */
  readonly core?: number;
  /** A descriptor for standard output, a pipe, or `ipc` for a program that is controlled by messages. */
  readonly output: number | 'ipc' | 'pipe';
  readonly errors?: number;
  readonly uid?: number;
  /** By default that of this process, which another user may not have access to. */
  readonly cwd?: string;
};

export type Children = AsyncDisposable & {
  readonly isPinned: boolean;
  /** Name, process and command of all running children. */
  list(): readonly { readonly name: string; readonly pid: number; readonly command: string }[];
  start(name: string, command: readonly string[], options: StartOptions): Child;
};

const MS_PER_TICK = 1000 / Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout || 100);

export function createChildren(): Children {
  const running = new Set<Child>();
  const isPinned = canPin();
  // For ends without time for a clean-up: the system reaps what is signalled here.
  process.on('exit', () => running.forEach(killTree));
  return {
    isPinned,
    list: () =>
      [...running].map(({ name, pid, process: { spawnargs } }) => ({
        name,
        pid,
        command: spawnargs.join(' '),
      })),
    start(name, command, options) {
      const child = startChild(name, command, options, isPinned);
      running.add(child);
      child.process.once('exit', () => running.delete(child));
      return child;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...running].map((child) => child.stop()));
    },
  };
}

function canPin(): boolean {
  const isSet = (core: string): boolean => spawnSync('taskset', ['-c', core, 'true']).status === 0;
  return cpus().length > 1 && isSet('0') && isSet('1');
}

function startChild(
  name: string,
  command: readonly string[],
  options: StartOptions,
  isPinned: boolean,
): Child {
  const { core, output, errors, uid, env, cwd } = options;
  const pinned = isPinned && core !== undefined ? ['taskset', '-c', String(core)] : [];
  const [program = '', ...args] = [...pinned, ...command];
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: [
      'ignore',
      output === 'ipc' ? 'ignore' : output,
      errors ?? 'inherit',
      output === 'ipc' ? output : 'ignore',
    ],
    serialization: 'advanced',
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  if (child.pid === undefined) throw new Error(`${name} does not start: ${program}`);
  const self: Child = {
    name,
    pid: child.pid,
    process: child,
    async ask(message) {
      const ended = new AbortController();
      const { signal } = ended;
      const gone = once(child, 'exit', { signal }).then(() => Promise.reject(new Error(`${name} ended`)));
      try {
        child.send(message as object);
        const [response] = await Promise.race([once(child, 'message', { signal }), gone]);
        return response;
      } finally {
        gone.catch(() => undefined);
        ended.abort();
      }
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      killTree(self);
      await exited;
    },
  };
  return self;
}

function killTree({ pid, process: child }: Child): void {
  if (child.exitCode !== null || child.signalCode !== null) return;
  // Parents first: they would restart a child that ends.
  for (const each of treeOf(pid)) {
    try {
      process.kill(each, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** The running processes that a process started. */
export function childrenOf(pid: number): readonly number[] {
  const all = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return all.map(Number).filter((each) => statFields(each)?.[1] === String(pid));
}

/** A process and all that it started, by their numbers. */
export function treeOf(pid: number): readonly number[] {
  return [pid, ...childrenOf(pid).flatMap(treeOf)];
}

/** User and system time of processes, all their threads. */
export function cpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
}

function cpuMsOf(pid: number): number {
  const fields = statFields(pid);
  if (fields === undefined) throw new Error(`process ${pid} has ended`);
  return exactCpuMs(pid) ?? (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/**
 * The same in nanoseconds from the scheduler: `stat` rounds to ticks of 10 ms, several percent of one measurement. Undefined
 * when the kernel does not provide it.
 */
function exactCpuMs(pid: number): number | undefined {
  const threads = `/proc/${pid}/task`;
  if (!existsSync(`/proc/${pid}/schedstat`)) return undefined;
  const times = readdirSync(threads).map((thread) => {
    try {
      return readFileSync(`${threads}/${thread}/schedstat`, 'utf8');
    } catch {
      // A thread that ended after it was listed.
      return '0';
    }
  });
  return times.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e6, 0);
}

/** Whether the kernel counts pages that several processes share once: the proportional set size. */
export const hasSharedMemory: boolean = existsSync('/proc/self/smaps_rollup');

/** Undefined when the kernel does not let us read it. */
function proportionalMb(pids: readonly number[]): number | undefined {
  try {
    const texts = pids.map((pid) => readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
    return texts.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024, 0);
  } catch {
    return undefined;
  }
}

/**
 * Resident memory of processes, now and at its highest. What several processes share, such as forked workers, is counted once
 * now if the kernel provides it.
 */
export function residentMb(pids: readonly number[]): { readonly now: number; readonly peak: number } {
  const texts = pids.map((pid) => readFileSync(`/proc/${pid}/status`, 'utf8'));
  const mb = (key: string): number =>
    texts.reduce(
      (sum, text) => sum + Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024,
      0,
    );
  const shared = pids.length > 1 ? proportionalMb(pids) : undefined;
  return { now: shared ?? mb('VmRSS'), peak: mb('VmHWM') };
}

/** /proc/PID/stat from the third field on: the second is a name that may contain anything. */
export function statFields(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    // It ended after it was listed; reading it while it ends gives ESRCH.
    if (['ENOENT', 'ESRCH'].includes(String((error as NodeJS.ErrnoException).code))) return undefined;
    throw error;
  }
}
