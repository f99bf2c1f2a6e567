// Runs the programs of the machine that make namespaces and mounts, and waits for their end.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';

/**
 * Nothing is inherited: these programs run as root, and our environment may hold secrets or a variable that makes them
 * load foreign code.
 */
export const systemEnvironment: Readonly<Record<string, string>> = {
  PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};

export type CommandResult = {
  /** Undefined when the program is missing or was killed. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
};

/** None of these programs waits for anything but the disk. */
const TIMEOUT_MS = 60_000;
/** What does not end by SIGKILL waits in the kernel: nobody waits for it any longer. */
const KILLED_MS = 1_000;
/** The list of what is hidden is longest. One that is cut off would show the rest to boxes. */
const MAX_OUTPUT = 16 * 1024 * 1024;

/** `descriptors`: what the program has from 3 on. One that takes longer than `timeoutMs` is killed with what it started. */
export async function runCommand(
  [program = '', ...args]: readonly string[],
  descriptors: readonly number[] = [],
  timeoutMs: number = TIMEOUT_MS,
): Promise<CommandResult> {
  const child = spawn(program, args, {
    cwd: '/',
    env: systemEnvironment,
    stdio: ['ignore', 'pipe', 'pipe', ...descriptors],
    // A group of its own, which can be killed as a whole: a shell does not end what it waits for.
    detached: true,
  });
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const fail = (text: string): void => {
    stderr.text = text;
    resolve(undefined);
  };
  child.on('error', ({ message }) => fail(message));
  child.on('close', (code) => resolve(code ?? undefined));
  let late = setTimeout(() => {
    const text = `${program} did not end within ${timeoutMs / 1_000} s`;
    child.prependOnceListener('close', () => fail(text));
    late = setTimeout(() => fail(text), KILLED_MS);
    killGroup(child);
  }, timeoutMs);
  try {
    const code = await promise;
    const isCut = stdout.text.length >= MAX_OUTPUT;
    return { code: isCut ? undefined : code, stdout: stdout.text, stderr: stderr.text };
  } finally {
    clearTimeout(late);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
}

/** Kills a program that was started with `detached`, and what it started. */
export function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

/** As `runCommand`, and throws an Error that says what failed and why. */
export async function requireCommand(
  what: string,
  command: readonly string[],
  descriptors: readonly number[] = [],
  timeoutMs: number = TIMEOUT_MS,
): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, descriptors, timeoutMs);
  if (code !== 0) throw new Error(`${what}: ${lastLine(stderr) || `${command[0]} ended with ${code}`}`);
  return stdout;
}

export function lastLine(text: string): string {
  // mount ends with a hint instead of the reason.
  const lines = text.trimEnd().split('\n');
  return lines.findLast((line) => !line.includes('dmesg(1)'))?.trim() ?? '';
}

function collect(stream: Readable | null): { text: string } {
  const collected = { text: '' };
  stream?.setEncoding('utf8').on('data', (piece: string) => {
    collected.text = (collected.text + piece).slice(0, MAX_OUTPUT);
  });
  return collected;
}
