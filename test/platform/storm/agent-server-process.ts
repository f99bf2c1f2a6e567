// An agent server that is killed and started again, or stopped and continued. Each process in the series has a name, which its connections to the database
// carry, so that what it has claimed is known as its own.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { type AgentProcess, startAgentServer } from '../../support/agent-process.ts';
import { descendantsOf } from './box-storm-machine.ts';

export type AgentSeries = {
  readonly name: string;
  /** Undefined while it starts. */
  readonly url: string | undefined;
  /** When each process was killed, by the name of the process. */
  readonly deaths: ReadonlyMap<string, number>;
  /** When each process was stopped, and continued. */
  readonly stops: readonly Stop[];
  /** When it accepted requests, until `Infinity` for the last one. */
  readonly spans: readonly Span[];
  readonly startsMs: readonly number[];
  readonly errors: readonly string[];
  /** Resolves when it accepts requests. */
  ready(): Promise<void>;
  /** Kills it, and starts another at once. */
  kill(): void;
  /** Stops it for so long: it keeps its sockets and transactions, and does nothing. */
  stop(ms: number): void;
  /** Stops a worker for so long, or for ever. */
  stopWorker(pid: number, ms: number | undefined): void;
  /** The processes of its workers. */
  workers(): readonly number[];
  /** Sends SIGTERM, and waits for the end. */
  end(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

export type Stop = { readonly life: string; readonly fromMs: number; readonly untilMs: number };
export type Span = { readonly fromMs: number; untilMs: number };

type SeriesOptions = {
  readonly name: string;
  readonly config: string;
  readonly dataDirectory: string;
  readonly database: { readonly url: string; readonly ownerUrl: string };
  readonly program: string | undefined;
};

/** What a worker that is killed has the server say. */
const CAUSED: ReadonlySet<unknown> = new Set([
  'a worker has ended',
  'a worker has not started',
  'a worker for one run has not started',
]);
/** What a server says whose waits for a connection have timed out while it was stopped. */
const STOPPED = 'the database cannot be reached: requests that need it get a 503';
const AFTER_STOP_MS = 2_000;
/** Workers see that their server is gone once a second. */
const WORKERS_GONE_MS = 10_000;

export function openAgentSeries(options: SeriesOptions): AgentSeries {
  const { name, config, dataDirectory, database, program } = options;
  const deaths = new Map<string, number>();
  const stops: Stop[] = [];
  const spans: Span[] = [];
  const startsMs: number[] = [];
  const errors: string[] = [];
  const watched: Promise<void>[] = [];
  let lives = 0;
  let life = '';
  let url: string | undefined;
  let ready: Promise<void>;
  let server = start();

  function start(): AgentProcess {
    lives += 1;
    life = `agent-${name}${lives}`;
    const startedMs = performance.now();
    const as = `&application_name=${life}`;
    const started = startAgentServer(config, {
      dataDirectory,
      program,
      database: { url: `${database.url}${as}`, ownerUrl: `${database.ownerUrl}${as}` },
      env: { SALLYPORT_AGENT_WORKERS: '2' },
    });
    ready = started.ready.then(({ url: at }) => {
      url = at;
      spans.push({ fromMs: Date.now(), untilMs: Number.POSITIVE_INFINITY });
      startsMs.push(performance.now() - startedMs);
    });
    ready.catch(() => undefined);
    return started;
  }

  function readLog(of: AgentProcess, named: string): void {
    const isAfterStop = (time: unknown): boolean =>
      stops.some(({ life: stopped, untilMs }) => {
        const fromMs = Math.abs(Date.parse(String(time)) - untilMs);
        return stopped === named && fromMs < AFTER_STOP_MS;
      });
    const found = of.process.records.filter(
      ({ level, msg, time }) =>
        level === 'error' && !CAUSED.has(msg) && !(msg === STOPPED && isAfterStop(time)),
    );
    for (const record of found) errors.push(`${named} logged ${JSON.stringify(record)}`);
  }

  async function watchEnd(of: AgentProcess, named: string, workers: readonly number[]): Promise<void> {
    await of.process.exited;
    readLog(of, named);
    const lateMs = performance.now() + WORKERS_GONE_MS;
    while (workers.some(isWorker)) {
      if (performance.now() > lateMs)
        return void errors.push(`workers ${workers.filter(isWorker)} of ${named} outlive it by 10 s`);
      await pause(200);
    }
  }

  const workersOf = (of: AgentProcess): readonly number[] => descendantsOf(of.process.pid).filter(isWorker);
  return {
    name,
    deaths,
    stops,
    spans,
    startsMs,
    errors,
    get url() {
      return url;
    },
    ready: () => ready,
    workers: () => workersOf(server),
    kill() {
      const workers = workersOf(server);
      const span = spans.at(-1);
      if (url !== undefined && span !== undefined) span.untilMs = Date.now();
      url = undefined;
      server.process.kill('SIGKILL');
      // One that is stopped cannot see that its server is gone.
      for (const pid of workers) signalTo(pid, 'SIGCONT');
      deaths.set(life, Date.now());
      watched.push(watchEnd(server, life, workers));
      server = start();
    },
    stop(ms) {
      const [stopped, at, named, span] = [server, url, life, spans.at(-1)];
      if (at === undefined || span === undefined) return;
      const continued = Promise.withResolvers<void>();
      ready = continued.promise;
      url = undefined;
      span.untilMs = Date.now();
      stopped.process.kill('SIGSTOP');
      void pause(ms).then(() => {
        stopped.process.kill('SIGCONT');
        stops.push({ life: named, fromMs: span.untilMs, untilMs: Date.now() });
        spans.push({ fromMs: Date.now(), untilMs: Number.POSITIVE_INFINITY });
        url = at;
        continued.resolve();
      });
    },
    stopWorker(pid, ms) {
      signalTo(pid, 'SIGSTOP');
      if (ms !== undefined) void pause(ms).then(() => signalTo(pid, 'SIGCONT'));
    },
    async end() {
      const workers = workersOf(server);
      server.process.kill('SIGTERM');
      const { code } = await server.process.exited;
      if (code !== 0) errors.push(`${life} ended with ${code} after SIGTERM`);
      await Promise.all([...watched, watchEnd(server, life, workers)]);
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
    },
  };
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    if (isWorker(pid)) process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

function isWorker(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('agent-worker');
  } catch {
    return false;
  }
}
