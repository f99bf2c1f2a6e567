// A report as text: one table of the whole run that a person reads in a minute, the ratios with both sides, and one sentence.
// A full run also has a table for each load. Measures nothing.
import { hasSharedMemory } from './children.ts';
import type { Spread } from './percentiles.ts';
import type { Question } from './question.ts';
import type { Report, Row } from './report.ts';

type Cell = {
  readonly title: string;
  readonly load: string;
  readonly figure: string;
  readonly digits: number;
};

const SUMMARY: readonly Cell[] = [
  { title: '1 client: p50 ms', load: 'h1_1', figure: 'p50_ms', digits: 3 },
  { title: 'p99 ms', load: 'h1_1', figure: 'p99_ms', digits: 3 },
  { title: '32 clients: CPU us/request', load: 'h1_32', figure: 'cpu_us', digits: 1 },
  { title: 'requests/s', load: 'h1_32', figure: 'per_second', digits: 0 },
  { title: 'CPU us/new tunnel', load: 'tunnel_8', figure: 'cpu_us', digits: 0 },
  { title: 'HTTP/2 4x8: CPU us', load: 'h2_4x8', figure: 'cpu_us', digits: 1 },
  { title: 'RSS MB', load: 'h1_32', figure: 'rss_mb', digits: 0 },
];

/** Shown when nothing else was measured. */
const START: readonly Cell[] = [
  { title: 'start: ms to ready', load: 'start', figure: 'start_ms', digits: 0 },
  { title: 'idle RSS MB', load: 'start', figure: 'idle_mb', digits: 0 },
];

export function formatReport(report: Report): string {
  const rounds = Math.max(...report.questions.flatMap(({ rows }) => rows.map((row) => row.rounds.length)));
  return [
    ...environmentOf(report),
    '',
    ...Object.entries(report.subjects).map(([name, about]) => `  ${name.padEnd(17)}${about}`),
    '',
    `Medians of up to ${rounds} rounds in turns; CPU (least to most) is that of the processes in between.`,
    '',
    ...formatTable(summaryOf(report)),
    '',
    ...ratioLines(report),
    ...report.skipped.map((line) => `without ${line}`),
    ...report.warnings.map((line) => `WARNING: ${line}`),
    '',
    sentenceOf(report),
  ].join('\n');
}

export function environmentOf({
  machine,
  versions,
  suite,
  seconds,
  started,
  sallyport,
  other_load,
}: Report): readonly string[] {
  const { cpu, cores, memory_gb, system, pinned, busy_percent, load_average } = machine;
  const from = sallyport.package === undefined ? '' : ` from ${sallyport.package}`;
  const product = `sallyport ${sallyport.version}${from} (commit ${sallyport.commit})`;
  const tls = suite === 'none' ? '' : `; mostly ${suite}`;
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${cpu}, ${cores} cores, ${memory_gb} GB, ${system}; before the run ${busy_percent} % busy, load ${load_average.join(' ')}; during it ${other_load.percent} % used by other processes`,
    `${[product, ...programs].join(', ')}${tls}; ${started}, ${seconds.toFixed(0)} s`,
    `memory: RSS of one process; of several the sum of their ${hasSharedMemory ? 'PSS' : 'RSS'}`,
    pinned ? 'the proxy on core 0, origin and load client on core 1' : 'not pinned to cores',
  ];
}

function summaryOf(report: Report): readonly (readonly string[])[] {
  const rows = report.questions.flatMap((question) => question.rows);
  const measured = SUMMARY.filter(({ load }) => rows.some((row) => row.load === load));
  const cells = measured.length > 0 ? measured : START;
  // The bare Node of the start is no way from a client to the origin.
  const names =
    measured.length > 0 ? Object.keys(report.subjects) : [...new Set(rows.map(({ subject }) => subject))];
  const line = (subject: string): readonly string[] => [
    subject,
    ...cells.map(({ load, figure, digits }) => {
      const found = rows.find((row) => row.load === load && row.subject === subject)?.figures[figure];
      if (found === undefined) return '';
      return figure === 'cpu_us' ? formatSpread(found, digits) : found.median.toFixed(digits);
    }),
  ];
  return [['', ...cells.map(({ title }) => title)], ...names.map(line)];
}

/** Whether a column is aligned as numbers; the first one names the rows. */
export function isNumeric(rows: readonly (readonly string[])[], column: number): boolean {
  return column > 0 && rows.every((row) => /^($|-?\d)/.test(row[column] ?? ''));
}

/** Lines with columns of equal width. */
export function formatTable(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)));
  return rows.map((row) =>
    row
      .map((cell, i) =>
        isNumeric(rows.slice(1), i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}

export function formatSpread({ median, low, high }: Spread, digits: number): string {
  if (low === high) return median.toFixed(digits);
  return `${median.toFixed(digits)} (${low.toFixed(digits)}-${high.toFixed(digits)})`;
}

/** Each ratio with both sides and the spread of its rounds. */
export function ratioLines(report: Report): readonly string[] {
  return formatTable(ratioTable(report));
}

export function ratioTable({ sides, further_ratios, rounds }: Report): readonly (readonly string[])[] {
  const all = { ...sides, ...further_ratios };
  const lines = Object.entries(all).map(([key, { value, spread, ours, theirs }]) => {
    const count = rounds[key]?.length ?? further_ratios[key]?.rounds.length ?? 0;
    const from = theirs
      ? `${ours.subject} ${ours.median.toPrecision(4)}, ${theirs.subject} ${theirs.median.toPrecision(4)}`
      : '';
    return [
      key,
      value.toFixed(3),
      `${spread.low.toFixed(2)}-${spread.high.toFixed(2)}`,
      from,
      `${count} rounds`,
    ];
  });
  return [['ratio', 'median', 'least-most', 'from', ''], ...lines];
}

/** What an injected header adds to a request of one client. */
export function sentenceOf({ questions }: Report): string {
  const rows = questions.flatMap((question) => question.rows);
  const figure = (subject: string, name: string): number | undefined =>
    rows.find((row) => row.load === 'h1_1' && row.subject === subject)?.figures[name]?.median;
  const added = (name: string): string | undefined => {
    const [through, direct] = [figure('rule', name), figure('direct', name)];
    return through === undefined || direct === undefined ? undefined : (through - direct).toFixed(2);
  };
  const [p50, p99] = [added('p50_ms'), added('p99_ms')];
  return p50 === undefined ? '' : `Sallyport adds ${p50} ms at p50 and ${p99} ms at p99 to a request.`;
}

/** One table for each load of a question. */
export function loadTables(
  question: Pick<Question, 'columns' | 'loads'>,
  rows: readonly Row[],
): readonly {
  readonly load: string;
  readonly about: string;
  readonly table: readonly (readonly string[])[];
}[] {
  const groups = Map.groupBy(rows, ({ load }) => load);
  return [...groups].map(([load, found]) => {
    const columns = question.columns.filter(({ figure }) => found.some(({ figures }) => figures[figure]));
    const lines = found.map(({ subject, figures }) => [
      subject,
      ...columns.map(({ figure, digits }) => {
        const spread = figures[figure];
        return spread === undefined ? '' : formatSpread(spread, digits);
      }),
    ]);
    const table = [['', ...columns.map(({ title }) => title)], ...lines];
    return { load, about: question.loads[load] ?? load, table };
  });
}
