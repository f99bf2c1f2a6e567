// Measures one subject under one load: the latencies of the load client, the CPU time of the processes in between, and
// whether each response belongs to one request that the origin accepted.
import { join } from 'node:path';
import { type Child, type Children, cpuMs, residentMb, treeOf } from './children.ts';
import type { LoadCommand, LoadResponse, LoadResult } from './load-client.ts';
import type { OriginCounts } from './origin.ts';
import { percentilesOf } from './percentiles.ts';
import type { Round } from './round.ts';
import { LOAD_CORE, type Scene } from './scene.ts';
import type { ShortLived, ShortLivedResult } from './short-lived.ts';
import type { Protocol, Subject } from './subject.ts';
import { type SubjectSuites, createSuiteLog } from './tls-suites.ts';
import type { Target } from './connection.ts';

export type KeepAliveLoad = {
  readonly clients: number;
  /** Concurrent requests on each connection, over HTTP/2. */
  readonly streams?: number;
  readonly durationMs: number;
  /** The same load on the new connections before, not measured. */
  readonly settleMs: number;
  readonly ratePerSecond?: number;
};

/** What is measured of a subject. */
export type Measured = Pick<Subject, 'name' | 'pid' | 'target' | 'upstream'>;

type Opened = { readonly suites: readonly string[] };

export type LoadClient = {
  /** Kept-alive connections; `targets`, used in turn, replace the one of the subject. */
  keepAlive(subject: Measured, load: KeepAliveLoad, targets?: readonly Target[]): Promise<Round>;
  /** Clients of one request each; `targets` replaces the one of the subject. */
  shortLived(
    subject: Measured,
    load: Omit<ShortLived, 'targets'>,
    targets?: readonly Target[],
  ): Promise<Round>;
  /** The groups of the key exchange that short-lived clients negotiated with a subject. */
  groups(subject: string): readonly string[];
  /** The TLS versions and cipher suites of each subject so far; the same for all, or the comparison is unfair. */
  suites(): SubjectSuites;
  /** Opens connections that stay idle until the load client ends. */
  hold(target: Target, connections: number): Promise<void>;
  end(): Promise<void>;
};

export function startLoadClient(children: Children, { originCounts, originPort }: Scene): LoadClient {
  const { command, end } = startController(children);
  const suites = createSuiteLog();
  const groups = new Map<string, Set<string>>();
  return {
    async keepAlive(subject, load, targets = [subject.target(originPort)]) {
      const { clients, streams, durationMs, settleMs, ratePerSecond } = load;
      const pids = pidsOf(subject);
      const before = await originCounts();
      const inH2 = streams === undefined ? {} : { streams };
      const opened = (await command({ do: 'open', targets, clients, ...inH2 })) as Opened;
      const settled = (await command({ do: 'run', durationMs: settleMs })) as LoadResult;
      const beforeMs = cpuMs(pids);
      const rate = ratePerSecond === undefined ? {} : { ratePerSecond };
      const result = (await command({ do: 'run', durationMs, ...rate })) as LoadResult;
      const usedMs = cpuMs(pids) - beforeMs;
      await command({ do: 'close' });
      const protocol: Protocol = streams === undefined ? 'h1' : (subject.upstream ?? 'h2');
      const after = await originCounts();
      checkCounts(before, after, protocol, settled.latencies.length + result.latencies.length);
      suites.add(subject.name, opened.suites, newSuites(before, after));
      const memory = pids.length === 0 ? {} : { rss_mb: residentMb(pids).now };
      return { ...figures(result, usedMs, pids), ...delays(result), ...memory };
    },
    async shortLived(subject, load, targets = [subject.target(originPort)]) {
      const pids = pidsOf(subject);
      const before = await originCounts();
      const beforeMs = cpuMs(pids);
      const result = (await command({ do: 'short-lived', targets, ...load })) as ShortLivedResult;
      const usedMs = cpuMs(pids) - beforeMs;
      const after = await originCounts();
      suites.add(subject.name, result.suites, newSuites(before, after));
      const count = result.latencies.length;
      checkCounts(before, after, 'h1', count);
      const connects = (after.connections - before.connections) / count;
      const found = groups.getOrInsertComputed(subject.name, () => new Set());
      result.groups.forEach((group) => found.add(group));
      const more = { upstream_connects: connects, resumed: result.resumed / count };
      return { ...figures(result, usedMs, pids), ...more };
    },
    groups: (subject) => [...(groups.get(subject) ?? [])],
    suites: suites.all,
    end,
    hold: async (target, connections) =>
      void (await command({ do: 'open', targets: [target], clients: connections })),
  };
}

type Controller = { command(message: LoadCommand): Promise<LoadResponse>; end(): Promise<void> };

/** The process of the load client; a new one after an error. */
function startController(children: Children): Controller {
  const program = join(import.meta.dirname, 'load-client.ts');
  const start = (): Child =>
    children.start('load', [process.execPath, program], { core: LOAD_CORE, output: 'ipc' });
  let child = start();
  const command = async (message: LoadCommand): Promise<LoadResponse> => {
    try {
      const response = (await child.ask(message)) as LoadResponse;
      if ('error' in response) throw new Error(response.error);
      return response;
    } catch (error) {
      // A load client ends with its first error.
      await child.stop();
      child = start();
      throw error;
    }
  };
  return { command, end: () => child.stop() };
}

export function pidsOf({ pid }: Pick<Subject, 'pid'>): readonly number[] {
  return pid === undefined ? [] : treeOf(pid);
}

/** Of the connections that the origin accepted in between. */
function newSuites(before: OriginCounts, after: OriginCounts): readonly string[] {
  return Object.keys(after.suites).filter((suite) => after.suites[suite] !== before.suites[suite]);
}

/** Each response belongs to one request that the origin accepted, over the protocol that is compared. */
function checkCounts(before: OriginCounts, after: OriginCounts, upstream: Protocol, responses: number): void {
  const [h1, h2] = [after.h1 - before.h1, after.h2 - before.h2];
  if (h1 === (upstream === 'h1' ? responses : 0) && h2 === (upstream === 'h2' ? responses : 0)) return;
  throw new Error(`${responses} responses, but ${h1} correct requests over HTTP/1.1 and ${h2} over HTTP/2`);
}

function figures(
  { latencies, seconds, cpuMs: clientMs }: Pick<LoadResult, 'latencies' | 'seconds' | 'cpuMs'>,
  usedMs: number,
  pids: readonly number[],
): Round {
  const count = latencies.length;
  if (count === 0) throw new Error('no request got a response');
  const { p50, p90, p99 } = percentilesOf([latencies]);
  return {
    ...(pids.length === 0 ? {} : { cpu_us: (usedMs * 1000) / count }),
    p50_ms: p50,
    p90_ms: p90,
    p99_ms: p99,
    per_second: count / seconds,
    client_cpu_us: (clientMs * 1000) / count,
    count,
  };
}

/** From due to sent: what the load client itself adds at a constant rate. */
function delays({ delays: samples }: LoadResult): Round {
  const { p50, p99 } = percentilesOf([samples]);
  return { delay_p50_ms: p50, delay_p99_ms: p99 };
}
