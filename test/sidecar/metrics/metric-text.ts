// Reads the text format of Prometheus, and checks the rules that `promtool check metrics` checks.

export type Series = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};
export type ReadMetrics = {
  readonly types: ReadonlyMap<string, string>;
  readonly helps: ReadonlyMap<string, string>;
  readonly series: readonly Series[];
  /** The sum of all series of this name with these labels; 0 for none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
};

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/gy;

export function readMetrics(text: string): ReadMetrics {
  const types = new Map<string, string>();
  const helps = new Map<string, string>();
  const series: Series[] = [];
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, kind, about = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === 'HELP') helps.set(about, rest);
    else if (kind === 'TYPE') types.set(about, rest);
    else series.push(readSeries(line));
  }
  const isLike = (one: Series, labels: Readonly<Record<string, string>>): boolean =>
    Object.entries(labels).every(([name, value]) => one.labels[name] === value);
  return {
    ...{ types, helps, series },
    sum: (name, labels = {}) =>
      series
        .filter((one) => one.name === name && isLike(one, labels))
        .reduce((sum, { value }) => sum + value, 0),
  };
}

function readSeries(line: string): Series {
  const [, name = '', text = '', value = ''] = LINE.exec(line) ?? [];
  if (name === '') throw new Error(`no line of the format: ${line}`);
  const found = [...text.matchAll(LABEL)];
  if (found.map(([whole]) => whole).join('') !== text) throw new Error(`labels are malformed: ${line}`);
  return {
    name,
    labels: Object.fromEntries(found.map(([, label, one]) => [label, one])),
    value: Number(value),
  };
}

/** What is wrong with the names, the units and the types. */
export function lintMetrics({ types, helps, series }: ReadMetrics): readonly string[] {
  const found: string[] = [];
  for (const [name, type] of types) {
    if (!helps.get(name)) found.push(`${name}: no help`);
    if (/[A-Z]|:/.test(name)) found.push(`${name}: a name of a metric is snake case`);
    if ((type === 'counter') !== name.endsWith('_total'))
      found.push(`${name}: counters, and no other, end in _total`);
    if (/_(count|sum|bucket|info_total|gauge|counter|histogram)$/.test(name))
      found.push(`${name}: the suffix of another type`);
    if (/_(milliseconds|ms|minutes|hours|kilobytes|kb|mb|percent|microseconds)(_|$)/.test(name))
      found.push(`${name}: base units are seconds and bytes`);
  }
  const seen = new Set<string>();
  for (const { name, labels, value } of series) {
    const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '');
    if (!types.has(family)) found.push(`${name}: no type`);
    const id = `${name} ${JSON.stringify(labels)}`;
    if (seen.has(id)) found.push(`${id}: twice`);
    seen.add(id);
    if (Number.isNaN(value)) found.push(`${id}: no number`);
  }
  return found;
}
