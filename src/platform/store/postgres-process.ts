// The server as a child that ends with us, however we end. It must not know what the server keeps.
import { type ChildProcess, spawn } from 'node:child_process';
import { type Account, programEnvironment } from './postgres-account.ts';
import type { PostgresPrograms } from './postgres-programs.ts';

export type PostgresProcess = {
  /** Resolves when the server is gone. */
  readonly ended: Promise<void>;
  readonly isRunning: boolean;
  /** Ends it in order: transactions are undone, what was committed is written. */
  stop(): Promise<void>;
};

// The watcher reads a pipe whose other end only we hold: at our death, even by SIGKILL, the system closes that and the
// server is told to shut down at once (SIGINT). A session of its own keeps the terminal's Ctrl-C from the server, which
// would end it before our last transactions. `exec 3<&-`: a server that kept the pipe's end would not matter, yet
// nothing that it does not need is left to it.
const WATCHER = `
  "$@" 3<&- &
  server=$!
  ( read -r _ <&3; kill -INT $server ) 2>/dev/null &
  watcher=$!
  exec 3<&-
  wait $server
  code=$?
  kill $watcher 2>/dev/null
  exit $code
`;

export function startProcess(options: {
  readonly programs: PostgresPrograms;
  readonly account: Account;
  readonly args: readonly string[];
  onLine(line: string): void;
}): PostgresProcess {
  const { programs, account, args } = options;
  const child = spawn('/bin/sh', ['-c', WATCHER, 'sallyport-postgres', programs.postgres, ...args], {
    ...account,
    cwd: '/',
    env: programEnvironment(programs.libraries),
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  readLines(child, options.onLine);
  const lifeline = child.stdio[3];
  lifeline?.on('error', () => undefined);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  child.on('error', () => resolve());
  child.on('exit', () => {
    lifeline?.destroy();
    resolve();
  });
  return {
    ended,
    get isRunning() {
      return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
    },
    async stop() {
      lifeline?.destroy();
      await ended;
    },
  };
}

function readLines({ stderr }: ChildProcess, onLine: (line: string) => void): void {
  let unfinished = '';
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines) if (line !== '') onLine(line);
  });
}
