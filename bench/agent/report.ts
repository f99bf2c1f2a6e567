// What the agent benchmark says: each question with both sides, the ratio, what it must be, and whether it is. Measures nothing.
import type { Machine } from '../support/machine.ts';
import type { OtherLoad } from '../support/other-load.ts';
import { percentilesOf, spreadOf } from '../support/percentiles.ts';
import type { Product } from '../support/product.ts';
import { formatTable } from '../support/table.ts';
import type { HistoryTimes, History } from './history.ts';
import type { Bystanders } from './hostile-graphs.ts';
import { STREAMS } from './idle-streams.ts';
import { type BySide, CLIENTS, EVENTS, type Loads } from './rounds.ts';

export type Verdict = {
  readonly question: string;
  readonly sallyport: number;
  /** The public server; of the history the same server with an empty database; undefined where only our figure counts. */
  readonly other?: number;
  /** The ratio, or our figure where there is no other. */
  readonly value: number;
  readonly unit: string;
  readonly limit: number;
  readonly goal?: number;
  readonly is: 'at most' | 'at least';
  readonly holds: boolean;
};

export type Report = {
  readonly machine: Machine;
  readonly other_load: OtherLoad;
  readonly sallyport: Product;
  readonly versions: Readonly<Record<string, string>>;
  readonly verdicts: readonly Verdict[];
  readonly loads?: BySide<Loads>;
  readonly idle_mb?: BySide<number>;
  readonly bystanders: readonly Bystanders[];
  readonly history?: History;
  readonly warnings: readonly string[];
};

type Wanted = Pick<Verdict, 'question' | 'unit' | 'limit' | 'goal' | 'is'>;

export function verdictsOf({
  loads,
  idle_mb: idle,
  bystanders,
  history,
}: Pick<Report, 'loads' | 'idle_mb' | 'bystanders' | 'history'>): readonly Verdict[] {
  return [
    ...(loads === undefined ? [] : verdictsOfLoads(loads)),
    ...(idle === undefined ? [] : [verdictOfIdle(idle)]),
    ...(history === undefined ? [] : [verdictOfHistory(history.full, history.empty)]),
    ...bystanders.filter(({ graph }) => graph !== 'nothing').map(verdictOfBystanders),
  ];
}

function verdictsOfLoads({ peer, sallyport }: BySide<Loads>): readonly Verdict[] {
  const [our, their] = [sallyport, peer].map(({ firstEvent }) =>
    percentilesOf([Float64Array.from(firstEvent)]),
  );
  const first = { unit: 'ms', limit: 1, goal: 0.5, is: 'at most' } as const;
  const rate = (question: string, name: keyof Loads, limit: number, goal?: number): Verdict =>
    ratioOf(
      { question, unit: '/s', limit, is: 'at least', ...(goal === undefined ? {} : { goal }) },
      spreadOf(sallyport[name]).median,
      spreadOf(peer[name]).median,
    );
  return [
    ratioOf({ question: 'first event of a node, p50', ...first }, our?.p50 ?? NaN, their?.p50 ?? NaN),
    ratioOf({ question: 'first event of a node, p99', ...first }, our?.p99 ?? NaN, their?.p99 ?? NaN),
    rate('runs by wait', 'runsPerSecond', 0.7, 1),
    rate(`events of one stream of ${EVENTS}`, 'eventsPerSecond', 0.8),
    rate(`events of ${CLIENTS} such streams at once`, 'eventsPerSecondTogether', 0.8),
  ];
}

function ratioOf(wanted: Wanted, sallyport: number, other: number): Verdict {
  return judge(wanted, { sallyport, other, value: sallyport / other });
}

function judge(wanted: Wanted, figures: Pick<Verdict, 'sallyport' | 'value' | 'other'>): Verdict {
  const { is, limit } = wanted;
  const { value } = figures;
  return { ...wanted, ...figures, holds: is === 'at most' ? value <= limit : value >= limit };
}

function verdictOfIdle({ peer, sallyport }: BySide<number>): Verdict {
  const wanted = {
    question: `memory of ${STREAMS} idle streams`,
    unit: 'MB',
    limit: 50,
    is: 'at most',
  } as const;
  return judge(wanted, { sallyport, other: peer, value: sallyport });
}

function verdictOfHistory(full: HistoryTimes, empty: HistoryTimes): Verdict {
  const question = 'history p99, full against empty database';
  return ratioOf({ question, unit: 'ms', limit: 1.5, is: 'at most' }, full.p99Ms, empty.p99Ms);
}

const NAMES: Readonly<Record<Bystanders['graph'], string>> = {
  nothing: 'nothing',
  emit: 'a graph that emits without end',
  allocate: 'a graph that takes all memory',
  loop: 'a graph in an endless loop',
};

function verdictOfBystanders({ graph, okP99Ms }: Bystanders): Verdict {
  const wanted = {
    question: `/ok p99 beside ${NAMES[graph]}`,
    unit: 'ms',
    limit: 100,
    is: 'at most',
  } as const;
  return judge(wanted, { sallyport: okP99Ms, value: okP99Ms });
}

export function formatReport(report: Report): string {
  const {
    machine,
    other_load: others,
    sallyport,
    versions,
    verdicts,
    bystanders,
    history,
    warnings,
  } = report;
  const { cpu, cores, memory_gb: memory, system, busy_percent: busy, load_average: load } = machine;
  const rows = verdicts.map((verdict) => [
    verdict.question,
    format(verdict.sallyport, verdict.unit),
    verdict.other === undefined ? '' : format(verdict.other, verdict.unit),
    `${verdict.value.toFixed(2)}`,
    `${verdict.is} ${verdict.limit}${verdict.goal === undefined ? '' : `, goal ${verdict.goal}`}`,
    verdict.holds ? 'holds' : 'MISSED',
  ]);
  return [
    `${cpu}, ${cores} cores, ${memory} GB, ${system}; before the run ${busy} % busy, load ${load.join(' ')}; during it ${others.percent} % used by other processes`,
    [
      `sallyport ${sallyport.version} (commit ${sallyport.commit})`,
      ...Object.entries(versions).map(([name, version]) => `${name} ${version}`),
    ].join(', '),
    `${CLIENTS} clients; servers, PostgreSQL and clients share all cores; the public server is in memory and is measured first in each round`,
    '',
    ...formatTable([['', 'sallyport', 'other side', 'value', 'must be', ''], ...rows]),
    '',
    ...bystanders.map(describeBystanders),
    ...(history === undefined ? [] : [describeHistory(history)]),
    ...spreadLines(report),
    ...warnings.map((line) => `WARNING: ${line}`),
  ].join('\n');
}

function format(value: number, unit: string): string {
  return `${value.toFixed(unit === '/s' ? 0 : 1)}${unit === '/s' ? unit : ` ${unit}`}`;
}

function describeBystanders(one: Bystanders): string {
  const read = one.graph === 'emit' ? `, ${one.megabytesPerSecond.toFixed(0)} MB/s read by its client` : '';
  return `beside ${NAMES[one.graph]}: /ok p50 ${one.okP50Ms.toFixed(1)} ms, p99 ${one.okP99Ms.toFixed(1)} ms (${one.okCount}); ${one.runs} ordinary runs, p99 ${one.runP99Ms.toFixed(0)} ms${read}`;
}

function describeHistory({ threads, checkpoints, empty, full }: History): string {
  return `history: p50 ${empty.p50Ms.toFixed(1)} ms of an empty database (${empty.count} requests), ${full.p50Ms.toFixed(1)} ms with ${checkpoints} checkpoints of ${threads} threads (${full.count} requests)`;
}

function spreadLines({ loads }: Report): readonly string[] {
  if (loads === undefined) return [];
  const { peer, sallyport } = loads;
  const names = ['runsPerSecond', 'eventsPerSecond', 'eventsPerSecondTogether'] as const;
  return [
    `first events: ${sallyport.firstEvent.length} of sallyport, ${peer.firstEvent.length} of the public server`,
    ...names.map((name) => {
      const ratios = sallyport[name].map((own, round) => own / (peer[name][round] ?? NaN));
      return `${name}: the ratio of each of the rounds is ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`;
    }),
  ];
}
