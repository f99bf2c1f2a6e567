// The figures of the platform benchmark as a table, and its ratios with both sides and the spread of their rounds. Measures
// nothing.
import type { Machine } from '../support/machine.ts';
import type { OtherLoad } from '../support/other-load.ts';
import { type Spread, spreadOf } from '../support/percentiles.ts';
import type { Product } from '../support/product.ts';
import { formatSpread, formatTable } from '../support/table.ts';
import type { Counts } from './database-relay.ts';
import { type BySide, CLIENTS, type Figures, type Method, methods, type Side, sides } from './measure.ts';

type Figure = keyof Figures;
type Row = { readonly method: Method; readonly side: Side } & Readonly<Record<Figure, Spread>>;
type Ratio = Spread & {
  readonly sallyport: number;
  readonly fastify: number;
  readonly goal: number;
  readonly limit: number;
  readonly rounds: readonly number[];
};

export type Report = {
  readonly machine: Machine;
  readonly other_load: OtherLoad;
  readonly sallyport: Product;
  readonly versions: Readonly<Record<string, string>>;
  readonly counts: BySide<Counts>;
  readonly rows: readonly Row[];
  /** Of the CPU of the server. */
  readonly ratios: Readonly<Record<Method, Ratio>>;
  readonly warnings: readonly string[];
};

const LIMITS: Readonly<Record<Method, Pick<Ratio, 'goal' | 'limit'>>> = {
  GET: { goal: 3, limit: 4 },
  POST: { goal: 5, limit: 6 },
};

export function reportOf(figures: BySide<readonly Figures[]>): Pick<Report, 'rows' | 'ratios'> {
  const rowOf = (method: Method, side: Side): Row => {
    const spread = (figure: Figure): Spread => spreadOf(figures[method][side].map((one) => one[figure]));
    return {
      method,
      side,
      cpu_us: spread('cpu_us'),
      postgresql_us: spread('postgresql_us'),
      p50_ms: spread('p50_ms'),
      p99_ms: spread('p99_ms'),
      per_second: spread('per_second'),
    };
  };
  const ratioOf = (method: Method): Ratio => {
    const { sallyport, fastify } = figures[method];
    const rounds = sallyport.map(({ cpu_us: own }, i) => own / (fastify[i]?.cpu_us ?? Number.NaN));
    return {
      ...spreadOf(rounds),
      sallyport: rowOf(method, 'sallyport').cpu_us.median,
      fastify: rowOf(method, 'fastify').cpu_us.median,
      ...LIMITS[method],
      rounds,
    };
  };
  return {
    rows: methods.flatMap((method) => sides.map((side) => rowOf(method, side))),
    ratios: { GET: ratioOf('GET'), POST: ratioOf('POST') },
  };
}

const TITLES = [
  'CPU us/request',
  'PostgreSQL us',
  'p50 ms',
  'p99 ms',
  'requests/s',
  'statements',
  'round trips',
];

export function formatReport(report: Report): string {
  const { machine, other_load: others, sallyport, versions, rows, counts, ratios, warnings } = report;
  const { cpu, cores, memory_gb: memory, system, busy_percent: busy, load_average: load } = machine;
  const lines = rows.map((row) => [
    `${row.method} ${row.side}`,
    formatSpread(row.cpu_us, 0),
    row.postgresql_us.median.toFixed(0),
    row.p50_ms.median.toFixed(2),
    row.p99_ms.median.toFixed(2),
    row.per_second.median.toFixed(0),
    counts[row.method][row.side].statements.toFixed(0),
    counts[row.method][row.side].roundTrips.toFixed(0),
  ]);
  return [
    `${cpu}, ${cores} cores, ${memory} GB, ${system}; before the run ${busy} % busy, load ${load.join(' ')}; during it ${others.percent} % used by other processes`,
    [`sallyport ${sallyport.version} (commit ${sallyport.commit})`, ...programsOf(versions)].join(', '),
    machine.pinned ? 'the server on core 0, PostgreSQL and the clients on core 1' : 'not pinned to cores',
    `${CLIENTS} clients; medians of ${ratios.GET.rounds.length} rounds in turns, CPU of the server's process (least to most)`,
    '',
    ...formatTable([['', ...TITLES], ...lines]),
    '',
    ...methods.map((method) => describeRatio(method, ratios[method])),
    ...warnings.map((line) => `WARNING: ${line}`),
  ].join('\n');
}

function programsOf(versions: Report['versions']): readonly string[] {
  return Object.entries(versions).map(([name, version]) => `${name} ${version}`);
}

function describeRatio(method: Method, ratio: Ratio): string {
  const sidesOf = `${ratio.sallyport.toFixed(0)} and ${ratio.fastify.toFixed(0)} us`;
  return `${method}: ${ratio.median.toFixed(2)} times the CPU of Fastify (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)}; ${sidesOf}); at most ${ratio.limit}, goal ${ratio.goal}`;
}
