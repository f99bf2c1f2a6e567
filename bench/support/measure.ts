// Runs the cases under load, interleaved: each round runs every case once, every other round in reverse order, so that a
// change over time affects all cases. Collects samples, which figures.ts evaluates.
import { join } from 'node:path';
import type { BenchCase, CaseName, Load, LoadName, Protocol } from './cases.ts';
import { type Child, type Children, cpuMs } from './children.ts';
import type { LoadResponse, LoadCommand, LoadResult } from './load-client.ts';
import type { OriginCounts } from './origin.ts';
import { LOAD_CORE, type Scene } from './scene.ts';

export type Sample = {
  readonly latencies: Float64Array;
  readonly delays: Float64Array;
  readonly perSecond: number;
  /** CPU of the process in between, and of the load client, per request. */
  readonly cpuUs: number | undefined;
  readonly clientCpuUs: number;
};

export type Samples = ReadonlyMap<CaseName, ReadonlyMap<LoadName, readonly Sample[]>>;

export type LoadClient = {
  measure(subject: BenchCase, load: Load, settleMs: number): Promise<Sample>;
  /** The TLS version and suite of every connection so far; the same for all, or the comparison is unfair. */
  suites(): readonly string[];
};

const FEWEST_ROUNDS = 3;

export function startLoadClient(children: Children, { originCounts }: Scene): LoadClient {
  const child = children.start('load', [process.execPath, join(import.meta.dirname, 'load-client.ts')], {
    core: LOAD_CORE,
    output: 'ipc',
  });
  const suites = new Set<string>();
  return {
    async measure({ name, target, pid, upstream }, load, settleMs) {
      try {
        const countsBefore = await originCounts();
        const { clients, streams, durationMs, ratePerSecond } = load;
        const protocol: Protocol = streams === undefined ? 'h1' : 'h2';
        const inH2 = streams === undefined ? {} : { streams };
        const opened = await command(child, { do: 'open', target, clients, ...inH2 });
        if ('suites' in opened) opened.suites.forEach((suite) => suites.add(suite));
        const settled = (await command(child, { do: 'run', durationMs: settleMs })) as LoadResult;
        const beforeMs = pid === undefined ? 0 : cpuMs(pid);
        const rate = ratePerSecond === undefined ? {} : { ratePerSecond };
        const result = (await command(child, { do: 'run', durationMs, ...rate })) as LoadResult;
        const usedMs = pid === undefined ? undefined : cpuMs(pid) - beforeMs;
        await command(child, { do: 'close' });
        const responses = settled.latencies.length + result.latencies.length;
        checkCounts(countsBefore, await originCounts(), upstream ?? protocol, responses);
        return toSample(result, usedMs);
      } catch (error) {
        throw new Error(`case ${name}, load ${load.name}: ${(error as Error).message}`, { cause: error });
      }
    },
    suites: () => [...suites],
  };
}

/** Every case under every load, `rounds` times; fewer, but three, once `lastRoundMs` is past. */
export async function measureRounds(
  client: LoadClient,
  cases: readonly BenchCase[],
  loads: readonly Load[],
  options: {
    readonly rounds: number;
    readonly lastRoundMs: number;
    readonly settleMs: number;
    onRound(round: number): void;
  },
): Promise<Samples> {
  const samples = new Map(
    cases.map(({ name }) => [name, new Map(loads.map((load) => [load.name, [] as Sample[]]))]),
  );
  for (let round = 0; round < options.rounds; round += 1) {
    if (round >= FEWEST_ROUNDS && performance.now() > options.lastRoundMs) break;
    for (const load of loads) {
      for (const subject of round % 2 === 0 ? cases : cases.toReversed()) {
        const sample = await client.measure(subject, load, options.settleMs);
        samples.get(subject.name)?.get(load.name)?.push(sample);
      }
    }
    options.onRound(round + 1);
  }
  return samples;
}

/** The samples of all cases, by load. */
export function joinSamples(...all: readonly Samples[]): Samples {
  const names = new Set(all.flatMap((each) => [...each.keys()]));
  return new Map(
    [...names].map((name) => [name, new Map(all.flatMap((each) => [...(each.get(name) ?? [])]))]),
  );
}

/** Each response belongs to one request that the origin accepted, over the protocol that is compared. */
function checkCounts(before: OriginCounts, after: OriginCounts, upstream: Protocol, responses: number): void {
  const [h1, h2] = [after.h1 - before.h1, after.h2 - before.h2];
  if (h1 === (upstream === 'h1' ? responses : 0) && h2 === (upstream === 'h2' ? responses : 0)) return;
  throw new Error(`${responses} responses, but ${h1} correct requests over HTTP/1.1 and ${h2} over HTTP/2`);
}

async function command(child: Child, message: LoadCommand): Promise<LoadResponse> {
  const response = (await child.ask(message)) as LoadResponse;
  if ('error' in response) throw new Error(response.error);
  return response;
}

function toSample(result: LoadResult, usedMs: number | undefined): Sample {
  const { latencies, delays, seconds, cpuMs: clientMs } = result;
  const count = latencies.length;
  if (count === 0) throw new Error('no request got a response');
  return {
    latencies,
    delays,
    perSecond: count / seconds,
    cpuUs: usedMs === undefined ? undefined : (usedMs * 1000) / count,
    clientCpuUs: (clientMs * 1000) / count,
  };
}
