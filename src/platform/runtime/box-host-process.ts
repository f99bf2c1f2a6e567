// Starts the box host of this machine, detached: it outlives the platform, and the next one connects to it.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inheritedVariables } from '../../base/variables/inherited-variables.ts';
import { RuntimeError } from './contract.ts';

export type BoxHostProgram = {
  /** The command that `box-host` is appended to. */
  readonly command: readonly string[];
  readonly directory: string;
  /** `auto`: isolated where the machine can. */
  readonly runtime?: 'attached' | 'bubblewrap' | 'auto' | undefined;
  /** `ADDRESS:PORT` or `ADDRESS:FIRST-LAST`, of the listeners of attached boxes. */
  readonly attachedListen?: string | undefined;
  /** A config file for its sidecars. */
  readonly sidecarConfigFile?: string | undefined;
};

const START_MS = 15_000;
const PAUSE_MS = 20;
/** Only what went wrong is logged; a file that grew beyond this is begun anew. */
const MAX_LOG_BYTES = 16 * 1024 * 1024;

/** Resolves when a box host listens, whoever started it. Rejects with a RuntimeError. */
export async function ensureBoxHost(program: BoxHostProgram): Promise<void> {
  const { directory } = program;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const socketPath = join(directory, 'api.sock');
  const lateMs = performance.now() + START_MS;
  let child = start(program);
  for (;;) {
    if (await isListening(socketPath)) return;
    if (performance.now() > lateMs)
      throw new RuntimeError(
        'unavailable',
        'The box host does not start: see box-host.log in the data directory',
      );
    await delay(PAUSE_MS);
    // Another one had the lock, and may have ended meanwhile.
    if (child.exitCode !== null || child.signalCode !== null) {
      await delay(5 * PAUSE_MS);
      if (!(await isListening(socketPath))) child = start(program);
    }
  }
}

function start({
  command,
  directory,
  runtime,
  attachedListen,
  sidecarConfigFile,
}: BoxHostProgram): ChildProcess {
  const [file = '', ...args] = command;
  const options = [
    ...['--directory', directory],
    ...(runtime === undefined ? [] : ['--runtime', runtime]),
    ...(attachedListen === undefined ? [] : ['--attached-listen', attachedListen]),
    ...(sidecarConfigFile === undefined ? [] : ['--sidecar-config', sidecarConfigFile]),
  ];
  const logFile = join(directory, 'box-host.log');
  const log = openSync(logFile, isTooLong(logFile) ? 'w' : 'a', 0o600);
  try {
    const child = spawn(file, [...args, 'box-host', ...options], {
      cwd: '/',
      // No secret of the platform, and nothing that configures another program of this package.
      env: inheritedVariables(),
      detached: true,
      stdio: ['ignore', log, log],
    });
    // It is reported by the time limit.
    child.on('error', () => undefined);
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

function isTooLong(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES;
}

async function isListening(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ path }, () => resolve(true));
  socket.on('error', () => resolve(false));
  const isOpen = await promise;
  socket.destroy();
  return isOpen;
}
