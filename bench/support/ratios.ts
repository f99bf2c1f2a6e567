// The ratios of a run by which one commit is compared with another, each with both of its sides and its rounds. A ratio of
// which one side was not measured is absent. Measures nothing and reads no file.
import { type Series, seriesOf, valuesOf } from './round.ts';
import { type Spread, spreadOf } from './percentiles.ts';

type Side = { readonly load: string; readonly subject: string; readonly figure: string };

type Definition = {
  readonly key: string;
  readonly ours: Side;
  /** Undefined: the figure itself, no ratio. */
  readonly theirs?: Side;
  /** Subtracted on both sides: what each of them adds. */
  readonly base?: Side;
};

export type Ratio = {
  readonly value: number;
  /** One entry for each round. */
  readonly rounds: readonly number[];
  readonly spread: Spread;
  readonly ours: Spread & { readonly subject: string };
  readonly theirs?: Spread & { readonly subject: string };
};

const cpu = (load: string, subject: string): Side => ({ load, subject, figure: 'cpu_us' });
const at = (figure: 'p50_ms' | 'p99_ms', subject: string): Side => ({ load: 'h1_1', subject, figure });

const definitions: readonly Definition[] = [
  versus('cpu_vs_nginx_h1_32', cpu('h1_32', 'rule'), 'nginx'),
  versus('cpu_vs_goproxy_h1_32', cpu('h1_32', 'rule'), 'goproxy'),
  versus('cpu_vs_squid_h1_32', cpu('h1_32', 'rule'), 'squid'),
  { ...versus('p50_added_vs_nginx_1', at('p50_ms', 'rule'), 'nginx'), base: at('p50_ms', 'direct') },
  { ...versus('p99_added_vs_nginx_1', at('p99_ms', 'rule'), 'nginx'), base: at('p99_ms', 'direct') },
  versus('tunnel_8_vs_nginx', cpu('tunnel_8', 'rule'), 'nginx'),
  versus('callback_hit_vs_rule', cpu('h1_32', 'callback'), 'rule'),
  versus('h2_4x8_vs_nginx', cpu('h2_4x8', 'rule'), 'nginx'),
  { key: 'rss_idle_mb', ours: { load: 'start', subject: 'rule', figure: 'idle_mb' } },
  { key: 'rss_loaded_mb', ours: { load: 'h1_32', subject: 'rule', figure: 'rss_mb' } },
  { key: 'start_ms', ours: { load: 'start', subject: 'rule', figure: 'start_ms' } },
  versus('start_vs_node', { load: 'start', subject: 'rule', figure: 'start_ms' }, 'node'),
];

/** Printed beside them, and compared by nobody else: the floor, and the peers of the longer runs. */
const further: readonly Definition[] = [
  versus('cpu_vs_relay_h1_32', cpu('h1_32', 'rule'), 'relay'),
  versus('cpu_vs_hudsucker_h1_32', cpu('h1_32', 'rule'), 'hudsucker'),
  versus('cpu_without_records_vs_goproxy_h1_32', cpu('h1_32', 'no-records'), 'goproxy'),
  versus('h2_4x8_vs_haproxy', cpu('h2_4x8', 'rule'), 'haproxy'),
  versus('short_lived_20_ms_vs_direct', { load: 'away_20', subject: 'rule', figure: 'p50_ms' }, 'direct'),
  versus('down_100_mb_vs_nginx', { load: 'down_h1', subject: 'rule', figure: 'mb_per_second' }, 'nginx'),
  versus('up_100_mb_vs_nginx', { load: 'up_h1', subject: 'rule', figure: 'mb_per_second' }, 'nginx'),
];

function versus(key: string, ours: Side, subject: string): Definition {
  return { key, ours, theirs: { ...ours, subject } };
}

export type Ratios = Readonly<Record<string, Ratio>>;

export function ratiosOf(series: readonly Series[]): { readonly named: Ratios; readonly further: Ratios } {
  const all = (list: readonly Definition[]): Ratios =>
    Object.fromEntries(
      list.flatMap((each) => {
        const ratio = ratioOf(series, each);
        return ratio === undefined ? [] : [[each.key, ratio]];
      }),
    );
  return { named: all(definitions), further: all(further) };
}

function ratioOf(series: readonly Series[], { ours, theirs, base }: Definition): Ratio | undefined {
  const values = (side: Side): readonly number[] =>
    valuesOf(seriesOf(series, side.load, side.subject), side.figure);
  const mine = values(ours);
  if (mine.length === 0) return undefined;
  const spread = { ...spreadOf(mine), subject: ours.subject };
  if (theirs === undefined)
    return { value: round(spread.median), rounds: mine.map(round), spread, ours: spread };
  const others = values(theirs);
  const subtracted = base === undefined ? undefined : values(base);
  if (others.length === 0 || subtracted?.length === 0) return undefined;
  const less = (list: readonly number[]): readonly number[] =>
    list.map((value, i) => value - (subtracted?.[i] ?? 0));
  const [added, addedByOthers] = [less(mine), less(others)];
  // A difference that is zero or negative because of noise has no ratio.
  const rounds = added.flatMap((value, i) => divide(value, addedByOthers[i] ?? 0) ?? []);
  const [left, right] = [spreadOf(added), spreadOf(addedByOthers)];
  // What is added is the difference of two noisy figures: the medians of the sides are steadier than the rounds.
  const value = base === undefined ? spreadOf(rounds).median : divide(left.median, right.median);
  if (value === undefined || rounds.length === 0) return undefined;
  return {
    value: round(value),
    rounds: rounds.map(round),
    spread: spreadOf(rounds),
    ours: { ...left, subject: ours.subject },
    theirs: { ...right, subject: theirs.subject },
  };
}

function divide(one: number, by: number): number | undefined {
  return one > 0 && by > 0 ? one / by : undefined;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
