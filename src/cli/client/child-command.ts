// Runs a command in place of this process: it has our standard streams and gets our signals; its exit code is ours.
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import type { CoreDumps } from '../process/core-dumps.ts';

export type SignalRelay = ReturnType<typeof createSignalRelay>;

/** From this call on signals go to the command; those that arrive before it runs are delivered when it starts. */
export function createSignalRelay() {
  // A terminal sends its signals to every process in the foreground: forwarding one would deliver it twice.
  const fromTerminal = [0, 1, 2].some((fd) => isatty(fd)) ? TERMINAL : [];
  const early: NodeJS.Signals[] = [];
  let child: ChildProcess | undefined;
  for (const signal of RELAYED) {
    process.on(signal, () => {
      if (!child) early.push(signal);
      else if (!fromTerminal.includes(signal)) child.kill(signal);
    });
  }
  return {
    passTo(started: ChildProcess): void {
      child = started;
      for (const signal of early) child.kill(signal);
    },
  };
}

/**
 * Runs the command to its end and returns the exit code that a shell would: the command's own, 128 + the number of the
 * signal that ended it, 127 if it does not exist, 126 if it cannot be run. `hasStarted`: it ran at all.
 */
export async function runCommand(
  [command = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  signals: SignalRelay,
  cores: CoreDumps,
): Promise<{ readonly code: number; readonly hasStarted: boolean }> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const child = cores.whileAllowed(() => spawn(command, args, { stdio: 'inherit', env }));
  child.once('error', (error: NodeJS.ErrnoException) => {
    // A signal that could not be delivered is an error too; the command is still running.
    if (child.pid !== undefined) return;
    process.stderr.write(`sallyport: ${command} cannot be run: ${error.code ?? 'unknown error'}\n`);
    resolve(error.code === 'ENOENT' ? 127 : 126);
  });
  child.once('exit', (code, signal) =>
    resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]),
  );
  signals.passTo(child);
  return { code: await promise, hasStarted: child.pid !== undefined };
}

const TERMINAL: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT', 'SIGWINCH'];
const RELAYED: readonly NodeJS.Signals[] = [...TERMINAL, 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
