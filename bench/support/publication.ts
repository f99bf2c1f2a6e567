// `--report`: the results of a run as files of a folder: Markdown with a table for each load, a plot of the main figure of
// each, the raw JSON, and latest.json with the ratios. They are written and never read. No other file is touched.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Question } from './question.ts';
import { DEFAULT_FOLDER, PLOTS_FOLDER, RAW_FILE } from './output-folder.ts';
import { type Bar, plotBars } from './plot.ts';
import type { Report, Row } from './report.ts';
import { environmentOf, isNumeric, loadTables, ratioTable, sentenceOf } from './table.ts';

const OURS: readonly string[] = ['tunnel', 'intercepted', 'rule', 'callback', 'no-records'];

export function publish(
  folder: string,
  report: Report,
  questions: readonly Question[],
  command: string,
): void {
  const plots = join(folder, PLOTS_FOLDER);
  mkdirSync(plots, { recursive: true });
  const raw = { command, ...report };
  writeFileSync(join(folder, RAW_FILE), `${JSON.stringify(raw)}\n`);
  const { ratios, rounds, sides, machine, versions, sallyport, started } = report;
  const latest = { ratios, rounds, sides, machine, versions, sallyport, started, command };
  writeFileSync(join(folder, 'latest.json'), `${JSON.stringify(latest, null, 2)}\n`);
  const sections = report.questions.flatMap(({ name, title, notes, rows }) => {
    const question = questions.find((each) => each.name === name);
    return question === undefined ? [] : [sectionOf(question, title, notes, rows, plots)];
  });
  writeFileSync(
    join(folder, 'README.md'),
    [...headOf(report, command, folder), ...sections, ...tailOf(report)].join('\n'),
  );
}

function headOf(report: Report, command: string, folder: string): readonly string[] {
  const sentence = sentenceOf(report);
  const explanation =
    resolve(folder) === resolve(DEFAULT_FOLDER)
      ? '[bench/README.md](../../bench/README.md)'
      : 'bench/README.md';
  return [
    '# Benchmark',
    '',
    `Written by \`${command}\`. ${explanation} says how it measures. Figures are medians over rounds (least-most).`,
    '',
    ...(sentence === '' ? [] : [`**${sentence}**`, '']),
    ...environmentOf(report).map((line) => `- ${line}`),
    ...report.warnings.map((line) => `- **warning**: ${line}`),
    ...report.skipped.map((line) => `- without ${line}`),
    '',
    ...markdownTable([
      ['', 'what it is'],
      ...Object.entries(report.subjects).map(([name, about]) => [name, about]),
    ]),
    '',
    '## Ratios',
    '',
    ...markdownTable(ratioTable(report)),
    '',
  ];
}

function sectionOf(
  question: Question,
  title: string,
  notes: readonly string[],
  rows: readonly Row[],
  plots: string,
): string {
  const parts = loadTables(question, rows).map(({ load, about, table }) => {
    const image = writePlot(question, load, about, rows, plots);
    return [`### ${about}`, '', ...image, ...markdownTable(table), ''].join('\n');
  });
  return [`## ${title}`, '', ...notes.map((note) => `- ${note}`), '', ...parts].join('\n');
}

/** The first column that most subjects have. */
function writePlot(
  { columns }: Question,
  load: string,
  about: string,
  rows: readonly Row[],
  plots: string,
): readonly string[] {
  const found = rows.filter((row) => row.load === load);
  const column = columns.find(({ figure }) => found.some(({ figures }) => figures[figure]));
  if (column === undefined) return [];
  const bars = found.flatMap(({ subject, figures }): readonly Bar[] => {
    const spread = figures[column.figure];
    return spread === undefined ? [] : [{ name: subject, spread, isOurs: OURS.includes(subject) }];
  });
  if (bars.length < 2) return [];
  const direction = column.figure.endsWith('per_second') ? 'more' : 'less';
  writeFileSync(
    join(plots, `${load}.svg`),
    plotBars(about, `${column.title} (${direction} is better)`, bars),
  );
  return [`![${column.title}: ${about}](plots/${load}.svg)`, ''];
}

function tailOf({ commands, effort }: Report): readonly string[] {
  const settings = `${effort.rounds} rounds of ${effort.durationMs} ms, warm-up ${effort.warmUpMs} ms`;
  return [
    '## Commands',
    '',
    `${settings}. [raw.json](raw.json) has every round, [latest.json](latest.json) the ratios.`,
    '',
    '```',
    ...Object.entries(commands).map(([name, command]) => `${name}: ${command}`),
    '```',
    '',
  ];
}

function markdownTable(rows: readonly (readonly string[])[]): readonly string[] {
  const [head = [], ...rest] = rows;
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(head),
    `|${head.map((_cell, i) => (isNumeric(rest, i) ? '--:' : '---')).join('|')}|`,
    ...rest.map(line),
  ];
}
