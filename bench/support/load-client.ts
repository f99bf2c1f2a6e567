// The load client, a process of its own that is controlled by messages: open connections, run for a time, close; or short-
// lived clients for a time. It returns every latency, and the CPU time that it used itself. Over HTTP/2 each connection has
// several lines.
import { createClosedLoop, createConstantRate, dispatch } from './arrivals.ts';
import { type Target, openConnection } from './connection.ts';
import { type H2Connection, openH2Connection } from './h2-connection.ts';
import { type ShortLived, type ShortLivedResult, runShortLived } from './short-lived.ts';
import { type Ticker, startTicker } from './ticker.ts';

export type LoadCommand =
  | {
      readonly do: 'open';
      readonly targets: readonly Target[];
      readonly clients: number;
      readonly streams?: number;
    }
  | { readonly do: 'run'; readonly durationMs: number; readonly ratePerSecond?: number }
  | ({ readonly do: 'short-lived' } & ShortLived)
  | { readonly do: 'close' };

export type LoadResponse =
  | { readonly suites: readonly string[] }
  | { readonly error: string }
  | LoadResult
  | ShortLivedResult
  | Record<string, never>;

export type LoadResult = {
  /** In milliseconds, one per request. */
  readonly latencies: Float64Array;
  /** From due to sent: what the client itself adds at a constant rate. */
  readonly delays: Float64Array;
  readonly seconds: number;
  readonly cpuMs: number;
};

const FINEST_TICK_MS = 0.1;

const OPENED_AT_ONCE = 64;
let connections: H2Connection[] = [];

function fail(error: Error): void {
  process.send?.({ error: error.message }, () => process.exit(1));
}

/** With `streams` over HTTP/2. The targets are used in turn. */
async function open(
  targets: readonly Target[],
  clients: number,
  streams: number | undefined,
): Promise<LoadResponse> {
  const openOne = async (_: unknown, i: number): Promise<H2Connection> => {
    const target = targets[i % targets.length];
    if (target === undefined) throw new Error('there is no target');
    if (streams !== undefined) return openH2Connection(target, streams, fail);
    const connection = await openConnection(target, fail);
    return { ...connection, lines: [connection] };
  };
  // Not all at once: a flood of handshakes is not what is measured.
  for (let at = 0; at < clients; at += OPENED_AT_ONCE) {
    const some = Array.from({ length: Math.min(OPENED_AT_ONCE, clients - at) }, (each, i) =>
      openOne(each, at + i),
    );
    connections.push(...(await Promise.all(some)));
  }
  return { suites: [...new Set(connections.map(({ suite }) => suite))] };
}

async function run(durationMs: number, ratePerSecond: number | undefined): Promise<LoadResult> {
  const latencies: number[] = [];
  const delays: number[] = [];
  const { promise: over, resolve: onFinished } = Promise.withResolvers<void>();
  let pump = (): void => {};
  let ticker: Ticker | undefined;
  if (ratePerSecond !== undefined)
    ticker = await startTicker(Math.max(1000 / ratePerSecond, FINEST_TICK_MS), () => pump());
  const usage = process.cpuUsage();
  const startMs = performance.now();
  const arrivals =
    ratePerSecond === undefined
      ? createClosedLoop(startMs + durationMs)
      : createConstantRate(startMs, ratePerSecond, Math.ceil((ratePerSecond * durationMs) / 1000));
  const lines = connections.flatMap((connection) => connection.lines);
  const options = { lines, arrivals, now: () => performance.now(), latencies, delays, onFinished };
  ({ pump } = dispatch(options));
  pump();
  await over;
  const seconds = (performance.now() - startMs) / 1000;
  const { user, system } = process.cpuUsage(usage);
  await ticker?.stop();
  return {
    latencies: Float64Array.from(latencies),
    delays: Float64Array.from(delays),
    seconds,
    cpuMs: (user + system) / 1000,
  };
}

function close(): LoadResponse {
  for (const connection of connections) connection.close();
  connections = [];
  return {};
}

function obey(command: LoadCommand): Promise<LoadResponse> | LoadResponse {
  if (command.do === 'open') return open(command.targets, command.clients, command.streams);
  if (command.do === 'run') return run(command.durationMs, command.ratePerSecond);
  if (command.do === 'short-lived') return runShortLived(command);
  return close();
}

process.on('message', (command: LoadCommand) => {
  Promise.try(obey, command).then((response) => process.send?.(response), fail);
});
process.on('disconnect', () => process.exit());
