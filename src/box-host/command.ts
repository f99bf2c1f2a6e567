// Runs the programs of the machine that make namespaces and mounts, and waits for their end.
import { spawn } from 'node:child_process';
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
const MAX_OUTPUT = 64 * 1024;

/** `descriptors`: what the program has from 3 on. */
export async function runCommand(
  [program = '', ...args]: readonly string[],
  descriptors: readonly number[] = [],
): Promise<CommandResult> {
  const child = spawn(program, args, {
    cwd: '/',
    env: systemEnvironment,
    stdio: ['ignore', 'pipe', 'pipe', ...descriptors],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  child.on('error', (error) => {
    stderr.text = error.message;
    resolve(undefined);
  });
  child.on('close', (code) => resolve(code ?? undefined));
  return { code: await promise, stdout: stdout.text, stderr: stderr.text };
}

/** As `runCommand`, and throws an Error that says what failed and why. */
export async function requireCommand(
  what: string,
  command: readonly string[],
  descriptors: readonly number[] = [],
): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, descriptors);
  if (code !== 0) throw new Error(`${what}: ${lastLine(stderr) || `${command[0]} ended with ${code}`}`);
  return stdout;
}

export function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}

function collect(stream: Readable | null): { text: string } {
  const collected = { text: '' };
  stream?.setEncoding('utf8').on('data', (piece: string) => {
    collected.text = (collected.text + piece).slice(0, MAX_OUTPUT);
  });
  return collected;
}
