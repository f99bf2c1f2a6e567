// Figures from samples: medians over rounds with their spread, percentiles of all samples together, and the ratios for which
// there are targets. Prints nothing.
import type { CaseName, LoadName } from './cases.ts';
import type { Sample, Samples } from './measure.ts';
import { type Percentiles, type Spread, percentilesOf, spreadOf } from './percentiles.ts';

export type Figures = {
  readonly case: CaseName;
  readonly load: LoadName;
  /** One entry for each round, as measured. */
  readonly rounds: readonly Round[];
  readonly cpu_us: Spread | null;
  readonly client_cpu_us: Spread;
  readonly per_second: Spread;
  /** Milliseconds. The percentile of each round; the median of the rounds is robust against a disturbed one. */
  readonly p50: Spread;
  readonly p90: Spread;
  readonly p99: Spread;
  readonly p999: Spread;
  /** Of the samples of all rounds together. */
  readonly all: Percentiles;
  /** From due to sent, all rounds together: what the load client adds at a constant rate. */
  readonly delay: Percentiles;
};

export type Round = {
  readonly cpu_us: number | null;
  readonly per_second: number;
} & Pick<Percentiles, 'count' | 'p50' | 'p99'>;

export type Ratios = {
  readonly cpu_vs_nginx_h1_32: number | null;
  readonly cpu_vs_nginx_h2_4x8: number | null;
  readonly cpu_vs_nginx_h2_4x100: number | null;
  readonly cpu_vs_haproxy_h2_4x8: number | null;
  readonly cpu_vs_haproxy_h2_4x100: number | null;
  readonly p50_added_vs_nginx_1: number | null;
  readonly p99_added_vs_nginx_1: number | null;
  readonly callback_hit_vs_rule: number | null;
  readonly rss_idle_mb: number;
  readonly rss_loaded_mb: number;
  readonly start_ms: number;
};

/** The maximum cost of a rule relative to nginx. */
export const cpuGoals: Readonly<Partial<Record<LoadName, number>>> = {
  h1_32: 1.25,
  h2_4x8: 3,
  h2_4x100: 1.5,
};

export type LoadRatios = {
  readonly cpu_vs_nginx: number | null;
  readonly cpu_vs_haproxy: number | null;
  readonly p50_added_vs_nginx: number | null;
  readonly p99_added_vs_nginx: number | null;
  readonly p999_added_vs_nginx: number | null;
  readonly callback_hit_vs_rule: number | null;
};

export function figuresOf(samples: Samples): readonly Figures[] {
  return [...samples].flatMap(([name, byLoad]) =>
    [...byLoad].map(([load, list]) => summarize(name, load, list)),
  );
}

function summarize(name: CaseName, load: LoadName, list: readonly Sample[]): Figures {
  const rounds = list.map(({ latencies }) => percentilesOf([latencies]));
  const cpu = list.flatMap(({ cpuUs }) => cpuUs ?? []);
  return {
    case: name,
    load,
    rounds: list.map(({ cpuUs, perSecond }, i) => {
      const { count = 0, p50 = 0, p99 = 0 } = rounds[i] ?? {};
      return { cpu_us: cpuUs ?? null, per_second: perSecond, count, p50, p99 };
    }),
    cpu_us: cpu.length === 0 ? null : spreadOf(cpu),
    client_cpu_us: spreadOf(list.map(({ clientCpuUs }) => clientCpuUs)),
    per_second: spreadOf(list.map(({ perSecond }) => perSecond)),
    p50: spreadOf(rounds.map(({ p50 }) => p50)),
    p90: spreadOf(rounds.map(({ p90 }) => p90)),
    p99: spreadOf(rounds.map(({ p99 }) => p99)),
    p999: spreadOf(rounds.map(({ p999 }) => p999)),
    all: percentilesOf(list.map(({ latencies }) => latencies)),
    delay: percentilesOf(list.map(({ delays }) => delays)),
  };
}

type Percentile = 'p50' | 'p90' | 'p99' | 'p999';

/** Milliseconds that a case adds to a direct connection. */
export function addedMs(
  figures: readonly Figures[],
  name: CaseName,
  load: LoadName,
  at: Percentile,
): number | null {
  const through = find(figures, name, load);
  const direct = find(figures, 'direct', load);
  return through && direct ? through[at].median - direct[at].median : null;
}

/** A rule compared with the other proxies, and a callback hit with a rule, under one load; null when one did not run. */
export function ratiosUnder(figures: readonly Figures[], load: LoadName): LoadRatios {
  const cpu = (name: CaseName): number | null => find(figures, name, load)?.cpu_us?.median ?? null;
  const added = (at: Percentile): number | null =>
    divide(addedMs(figures, 'rule', load, at), addedMs(figures, 'nginx', load, at));
  return {
    cpu_vs_nginx: divide(cpu('rule'), cpu('nginx')),
    cpu_vs_haproxy: divide(cpu('rule'), cpu('haproxy')),
    p50_added_vs_nginx: added('p50'),
    p99_added_vs_nginx: added('p99'),
    p999_added_vs_nginx: added('p999'),
    callback_hit_vs_rule: divide(cpu('callback'), cpu('rule')),
  };
}

/** Null when a difference is zero or negative because of noise: it has no ratio. */
function divide(one: number | null, by: number | null): number | null {
  return one === null || by === null || !(one > 0 && by > 0) ? null : Math.round((one / by) * 1000) / 1000;
}

export function find(figures: readonly Figures[], name: CaseName, load: LoadName): Figures | undefined {
  return figures.find((each) => each.case === name && each.load === load);
}
