// The results of the benchmark as one JSON object. Measures nothing and prints nothing.
import { cpus, loadavg, release, type } from 'node:os';
import type { LoadName, Plan } from './cases.ts';
import { type Figures, type LoadRatios, type Ratios, figuresOf, ratiosUnder } from './figures.ts';
import type { Samples } from './measure.ts';
import type { StartTimes } from './start-time.ts';

export type Report = {
  readonly ratios: Ratios;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly system: string;
    readonly pinned: boolean;
    readonly load_average: readonly number[];
  };
  readonly seconds: number;
  readonly ratios_by_load: Readonly<Record<LoadName, LoadRatios>>;
  readonly cases: readonly Figures[];
} & Measured;

/** The results of a run besides its samples. */
export type Measured = {
  readonly plan: Plan;
  readonly versions: {
    readonly node: string;
    readonly nginx: string | null;
    readonly haproxy: string | null;
  };
  readonly commands: Readonly<Record<string, string>>;
  /** TLS version and suite, the same on every connection of clients. */
  readonly suite: string;
  /** Null when only HTTP/2 was measured. */
  readonly rate_per_second: number | null;
  readonly callback_calls: number;
  readonly memory: Readonly<
    Record<'idle_mb' | 'loaded_mb' | 'peak_mb' | 'h2_loaded_mb' | 'h2_peak_mb', number>
  >;
  readonly start_ms: StartTimes;
};

export function createReport(
  samples: Samples,
  measured: Measured,
  run: { readonly isPinned: boolean; readonly startedMs: number },
): Report {
  const figures = figuresOf(samples);
  const byLoad = {
    h1_1: ratiosUnder(figures, 'h1_1'),
    h1_32: ratiosUnder(figures, 'h1_32'),
    h2_4x8: ratiosUnder(figures, 'h2_4x8'),
    h2_4x100: ratiosUnder(figures, 'h2_4x100'),
    rate: ratiosUnder(figures, 'rate'),
  };
  const { h1_1: one, h1_32: many, h2_4x8: few, h2_4x100: full } = byLoad;
  const { memory, start_ms: start } = measured;
  return {
    ratios: {
      cpu_vs_nginx_h1_32: many.cpu_vs_nginx,
      cpu_vs_nginx_h2_4x8: few.cpu_vs_nginx,
      cpu_vs_nginx_h2_4x100: full.cpu_vs_nginx,
      cpu_vs_haproxy_h2_4x8: few.cpu_vs_haproxy,
      cpu_vs_haproxy_h2_4x100: full.cpu_vs_haproxy,
      p50_added_vs_nginx_1: one.p50_added_vs_nginx,
      p99_added_vs_nginx_1: one.p99_added_vs_nginx,
      callback_hit_vs_rule: many.callback_hit_vs_rule,
      rss_idle_mb: Math.round(memory.idle_mb * 10) / 10,
      rss_loaded_mb: Math.round(memory.loaded_mb * 10) / 10,
      start_ms: Math.round(start.warm.median),
    },
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      system: `${type()} ${release()}`,
      pinned: run.isPinned,
      load_average: loadavg(),
    },
    seconds: (performance.now() - run.startedMs) / 1000,
    ...measured,
    ratios_by_load: byLoad,
    cases: figures,
  };
}
