// Runs one command line as a process group with a deadline, and returns how it ended and what it said.
import { spawn } from 'node:child_process';
import type { Ending } from './verdict.ts';

export type FinishedRun = { readonly ending: Ending; readonly output: string };

const MAX_OUTPUT_CHARS = 200_000;
const GRACE_MS = 2_000;

export async function runUntil(
  command: readonly string[],
  options: {
    readonly env: Readonly<Record<string, string>>;
    readonly cwd: string;
    readonly deadlineSeconds: number;
  },
): Promise<FinishedRun> {
  const [program = '', ...args] = command;
  const { env, cwd, deadlineSeconds } = options;
  const child = spawn(program, args, { env, cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => {
      if (output.length < MAX_OUTPUT_CHARS) output += bytes.toString();
    });
  let isLate = false;
  const timers: NodeJS.Timeout[] = [];
  const killLater = (): void => void timers.push(setTimeout(() => killGroup(child.pid, 'SIGKILL'), GRACE_MS));
  const endGroup = (): void => {
    isLate = true;
    killGroup(child.pid, 'SIGTERM');
    killLater();
  };
  timers.push(setTimeout(endGroup, deadlineSeconds * 1000));
  // Processes that it has left behind may hold its output open.
  child.on('exit', killLater);
  const code = await new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode) => resolve(exitCode ?? 128));
  });
  for (const timer of timers) clearTimeout(timer);
  const ending: Ending = isLate
    ? { kind: 'killed', afterSeconds: deadlineSeconds }
    : { kind: 'exited', code };
  return { ending, output };
}

function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // All of it has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
