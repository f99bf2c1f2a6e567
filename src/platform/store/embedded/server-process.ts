// The server as a child that ends with us, however we end. It must not know what the server keeps.
import { type ChildProcess, spawn } from 'node:child_process';
import { type Account, programEnvironment } from './account.ts';
import type { PostgresPrograms } from './programs.ts';

export type PostgresProcess = {
  /** Resolves when it takes connections; rejects with its last word when it ends before. */
  readonly ready: Promise<void>;
  /** Resolves when the server is gone. */
  readonly ended: Promise<void>;
  /** Ends it in order: transactions are undone, what was committed is written. */
  stop(): Promise<void>;
};

// The watcher reads a pipe whose other end only we hold: at our death, even by SIGKILL, the system closes that and the
// server is told to shut down at once (SIGINT). A session of its own keeps the terminal's Ctrl-C from the server, which
// would end it before our last transactions; a supervisor that signals every process must not end the watcher.
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
  // Nobody may be waiting any more when it ends.
  ready.promise.catch(() => undefined);
  let lastWord = 'it ended without a word';
  readLines(child, (line) => {
    if (line.includes('ready to accept connections')) ready.resolve();
    if (/^(FATAL|PANIC): /.test(line)) lastWord = line;
    options.onLine(line);
  });
  const lifeline = child.stdio[3];
  lifeline?.on('error', () => undefined);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  // `close`: when its last word has been read.
  child.on('error', (error) => ready.reject(error));
  child.on('close', () => {
    lifeline?.destroy();
    ready.reject(new Error(lastWord));
    resolve();
  });
  return {
    ready: ready.promise,
    ended,
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
