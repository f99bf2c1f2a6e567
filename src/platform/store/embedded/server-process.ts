// The PostgreSQL server as a child process that ends with this process, however this process ends.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type Account, programEnvironment } from './account.ts';
import type { PostgresPrograms } from './programs.ts';

export type PostgresProcess = {
  /** Resolves when the server accepts connections; rejects with its last error when it ends first. */
  readonly ready: Promise<void>;
  /** Resolves when the server has ended. */
  readonly ended: Promise<void>;
  /** Shuts down in order: open transactions are rolled back, committed ones are written. */
  stop(): Promise<void>;
};

// The watcher reads from a pipe whose other end only this process holds. When this process dies, even by SIGKILL, the
// system closes the pipe, and the watcher shuts the server down (SIGINT). The server has a session of its own, so that
// the terminal's Ctrl-C does not stop it before our last transactions. The watcher ignores the signals of a supervisor
// that signals every process.
const WATCHER = `
  trap '' HUP INT TERM
  "$@" 3<&- &
  server=$!
  ( read -r _ <&3; kill -INT $server ) 2>/dev/null &
  watcher=$!
  exec 3<&-
  wait $server
  code=$?
  kill -KILL $watcher 2>/dev/null
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
  const ready = Promise.withResolvers<void>();
  // It may reject after the last caller has stopped waiting.
  ready.promise.catch(() => undefined);
  let lastError = 'it ended without an error message';
  // Never null: it is a pipe.
  createInterface({ input: child.stderr as Readable }).on('line', (line) => {
    if (line === '') return;
    if (line.includes('ready to accept connections')) ready.resolve();
    if (/^(FATAL|PANIC): /.test(line)) lastError = line;
    options.onLine(line);
  });
  const pipe = child.stdio[3];
  pipe?.on('error', () => undefined);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  child.on('error', (error) => ready.reject(error));
  // `close` rather than `exit`: by then all of its output has been read.
  child.on('close', () => {
    pipe?.destroy();
    ready.reject(new Error(lastError));
    resolve();
  });
  return {
    ready: ready.promise,
    ended,
    async stop() {
      pipe?.destroy();
      await ended;
    },
  };
}
