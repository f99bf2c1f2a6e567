// A platform process that is killed and restarted. Each process in the series has its own name on the database server, so
// that its leftover connections can be found there.
import type { LogRecord } from '../../support/spawned-process.ts';
import { type PlatformOptions, type PlatformProcess, startPlatform } from '../../support/platform-process.ts';
import type { Target } from './storm-client.ts';

/** Observes a process from the outside. `life` is the name of one process in the series. */
export type Monitor = {
  /** The processes of the database server that serve it. */
  backendsOf(life: string): Promise<readonly number[]>;
  /** The same, once there is one or `limit` settles. */
  connected(life: string, limit: Promise<unknown>): Promise<readonly number[]>;
  /** How long after `sinceMs` all of them had ended; undefined when some have not ended in time. */
  cleanedUp(life: string, backends: readonly number[], sinceMs: number): Promise<number | undefined>;
};

export type Death = { readonly life: string; readonly atMs: number };

export type StormProcess = Target & {
  readonly name: string;
  /** The duration of each start until the process accepted requests. */
  readonly startsMs: readonly number[];
  /** The time after each kill until all of its connections had ended. */
  readonly cleanupsMs: readonly number[];
  readonly deaths: readonly Death[];
  readonly errors: readonly string[];
  /** Sends SIGKILL, with `isTwice` again during the restart, and resolves when a new process accepts requests. */
  kill(isTwice: boolean): Promise<void>;
  /** A line in the log of the current process. */
  logged(predicate: (record: LogRecord) => boolean): Promise<LogRecord>;
  /** Sends a signal to the current process. */
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGTERM and waits for the end. */
  end(): Promise<void>;
};

export type StormProcessOptions = PlatformOptions & {
  readonly name: string;
  readonly monitor: Monitor;
  /** Undefined: an embedded server. */
  readonly database?: { readonly url: string; readonly ownerUrl: string };
  /** For the first process only. */
  readonly firstEnv?: Readonly<Record<string, string>>;
  /** Called for every line of the log. */
  onRecord(life: string, record: LogRecord): void;
};

export function openStormProcess(options: StormProcessOptions): StormProcess & AsyncDisposable {
  const { name, monitor } = options;
  const startsMs: number[] = [];
  const cleanupsMs: number[] = [];
  const deaths: Death[] = [];
  const errors: string[] = [];
  const watches: Promise<void>[] = [];
  let lives = 0;
  let life = '';
  let backends: readonly number[] = [];
  let platform = start();
  let port = follow(platform);
  port.catch(() => undefined);

  function start(): PlatformProcess {
    lives += 1;
    life = `storm-${name}${lives}`;
    const { database } = options;
    const named = database && nameConnections(database, life);
    const env = {
      ...options.env,
      ...(named && { STORM_DATABASE_URL: named.url }),
      ...(lives === 1 ? options.firstEnv : {}),
    };
    return startPlatform({ ...options, ...(named && { database: named }), env });
  }

  async function follow({ ready }: PlatformProcess): Promise<number> {
    const { port: listening, ms } = await ready;
    startsMs.push(ms);
    backends = await monitor.backendsOf(life);
    if (backends.length === 0) errors.push(`${life} is ready without a database server`);
    return listening;
  }

  function readLog(): void {
    for (const record of platform.process.records) {
      options.onRecord(life, record);
      if (record['level'] === 'error' || record['level'] === 'fatal')
        errors.push(`${life} logged ${JSON.stringify(record)}`);
    }
  }

  /** Sends the signal synchronously. */
  async function killNow(): Promise<void> {
    platform.process.kill('SIGKILL');
    const sinceMs = performance.now();
    deaths.push({ life, atMs: Date.now() });
    const { signal } = await platform.process.exited;
    if (signal !== 'SIGKILL') errors.push(`${life} ended before it was killed\n${platform.process.stderr}`);
    // The next process need not wait for it.
    watches.push(watchEnd(life, backends, sinceMs));
    readLog();
  }

  async function watchEnd(ended: string, backends: readonly number[], sinceMs: number): Promise<void> {
    const ms = await monitor.cleanedUp(ended, backends, sinceMs);
    if (ms === undefined) errors.push(`connections or locks of ${ended} remain`);
    else cleanupsMs.push(ms);
  }

  return {
    name,
    startsMs,
    cleanupsMs,
    deaths,
    errors,
    port: () => port,
    async kill(isTwice) {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      promise.catch(() => undefined);
      port = promise;
      await killNow();
      platform = start();
      if (isTwice) {
        const ready = platform.ready.catch(() => undefined);
        backends = await monitor.connected(life, ready);
        await killNow();
        platform = start();
      }
      await follow(platform).then(resolve, reject);
      await promise;
    },
    logged: (predicate) => platform.process.record(predicate),
    signal: (signal) => platform.process.kill(signal),
    async end() {
      platform.process.kill('SIGTERM');
      const { code, signal } = await platform.process.exited;
      if (code !== 0)
        errors.push(`${life} ended with ${code ?? signal} after SIGTERM\n${platform.process.stderr}`);
      await Promise.all([...watches, watchEnd(life, backends, performance.now())]);
      readLog();
    },
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  };
}

type Database = NonNullable<PlatformOptions['database']>;

function nameConnections({ url, ownerUrl }: Database, life: string): Database {
  const as = `&application_name=${life}`;
  return { url: `${url}${as}`, ownerUrl: `${ownerUrl}${as}` };
}
