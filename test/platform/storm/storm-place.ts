// A platform process that is killed and started again, one life after the other. Each life has a name of its own for the
// database server, so that what is left of it there can be told.
import type { LogRecord } from '../../support/spawned-process.ts';
import { type PlatformOptions, type PlatformProcess, startPlatform } from '../../support/platform-process.ts';
import type { Place } from './storm-client.ts';

/** What is seen of a life from outside of it. */
export type Monitor = {
  /** Processes of the database server that work for it. */
  backendsOf(life: string): Promise<readonly number[]>;
  /** Those that it has, as soon as it has one or `given` settles. */
  connected(life: string, given: Promise<unknown>): Promise<readonly number[]>;
  /** How long since then until nothing of it was left there; undefined when something is after all. */
  gone(life: string, backends: readonly number[], sinceMs: number): Promise<number | undefined>;
};

export type Death = { readonly life: string; readonly atMs: number };

export type StormPlace = Place & {
  readonly name: string;
  /** Of each start until it took requests. */
  readonly startsMs: readonly number[];
  /** Until nothing was left of a killed life in the database. */
  readonly gonesMs: readonly number[];
  readonly deaths: readonly Death[];
  readonly errors: readonly string[];
  /** SIGKILL, now and then once more on the way up, and a new life that takes requests. */
  kill(isTwice: boolean): Promise<void>;
  /** A line in the log of the life of now. */
  logged(predicate: (record: LogRecord) => boolean): Promise<LogRecord>;
  /** A signal to the life of now. */
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, and the end that it asks for. */
  end(): Promise<void>;
};

export type StormPlaceOptions = PlatformOptions & {
  readonly name: string;
  readonly monitor: Monitor;
  /** Undefined: it has a server of its own. */
  readonly database?: { readonly url: string; readonly ownerUrl: string };
  /** Of its first life alone. */
  readonly firstEnv?: Readonly<Record<string, string>>;
  /** Told of every line of the log, with the life that wrote it. */
  onRecord(life: string, record: LogRecord): void;
};

export function openStormPlace(options: StormPlaceOptions): StormPlace & AsyncDisposable {
  const { name, monitor } = options;
  const startsMs: number[] = [];
  const gonesMs: number[] = [];
  const deaths: Death[] = [];
  const errors: string[] = [];
  const goings: Promise<void>[] = [];
  let lives = 0;
  let life = '';
  let backends: readonly number[] = [];
  let platform = start();
  let whereabouts = follow(platform);
  whereabouts.catch(() => undefined);

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
    const { port, ms } = await ready;
    startsMs.push(ms);
    backends = await monitor.backendsOf(life);
    if (backends.length === 0) errors.push(`${life} is ready without a database server`);
    return port;
  }

  function readLog(): void {
    for (const record of platform.process.records) {
      options.onRecord(life, record);
      if (record['level'] === 'error' || record['level'] === 'fatal')
        errors.push(`${life} logged ${JSON.stringify(record)}`);
    }
  }

  /** Now: nothing is awaited before the signal. */
  async function strike(): Promise<void> {
    platform.process.kill('SIGKILL');
    const sinceMs = performance.now();
    deaths.push({ life, atMs: Date.now() });
    const { signal } = await platform.process.exited;
    if (signal !== 'SIGKILL') errors.push(`${life} ended before it was killed\n${platform.process.stderr}`);
    // The next life need not wait for it.
    goings.push(seeGone(life, backends, sinceMs));
    readLog();
  }

  async function seeGone(ended: string, backends: readonly number[], sinceMs: number): Promise<void> {
    const ms = await monitor.gone(ended, backends, sinceMs);
    if (ms === undefined) errors.push(`connections or locks of ${ended} are left`);
    else gonesMs.push(ms);
  }

  return {
    name,
    startsMs,
    gonesMs,
    deaths,
    errors,
    whereabouts: () => whereabouts,
    async kill(isTwice) {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      promise.catch(() => undefined);
      whereabouts = promise;
      await strike();
      platform = start();
      if (isTwice) {
        const ready = platform.ready.catch(() => undefined);
        backends = await monitor.connected(life, ready);
        await strike();
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
        errors.push(`${life} ended with ${code ?? signal} at SIGTERM\n${platform.process.stderr}`);
      await Promise.all([...goings, seeGone(life, backends, performance.now())]);
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
