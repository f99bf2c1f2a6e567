// The results of a run as one JSON object: ratios at its root, the rounds of each, both of their sides, and every figure.
// Measures nothing and prints nothing.
import type { Machine } from './machine.ts';
import type { Spread } from './percentiles.ts';
import type { OtherLoad } from './other-load.ts';
import type { Product } from './product.ts';
import type { Effort, Findings, Question } from './question.ts';
import { type Ratio, ratiosOf } from './ratios.ts';
import { type Round, type Series, figureOf } from './round.ts';
import type { Subject } from './subject.ts';
import type { SubjectSuites } from './tls-suites.ts';

export type Asked = { readonly question: Question; readonly findings: Findings };

export type Row = {
  readonly load: string;
  readonly subject: string;
  readonly figures: Readonly<Record<string, Spread>>;
  readonly rounds: readonly Round[];
};

export type Report = {
  /** Comparable between runs; one that was not measured is absent. */
  readonly ratios: Readonly<Record<string, number>>;
  readonly rounds: Readonly<Record<string, readonly number[]>>;
  readonly sides: Readonly<Record<string, Omit<Ratio, 'rounds'>>>;
  readonly further_ratios: Readonly<Record<string, Ratio>>;
  readonly machine: Machine;
  readonly warnings: readonly string[];
  readonly skipped: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
  readonly commands: Readonly<Record<string, string>>;
  /** The TLS version and cipher suite of most connections; `none` if none was measured. */
  readonly suite: string;
  readonly tls: SubjectSuites;
  readonly sallyport: Product;
  readonly other_load: OtherLoad;
  readonly effort: Effort;
  readonly callback_calls: number;
  readonly started: string;
  readonly seconds: number;
  readonly subjects: Readonly<Record<string, string>>;
  readonly questions: readonly {
    readonly name: string;
    readonly title: string;
    readonly notes: readonly string[];
    readonly rows: readonly Row[];
  }[];
};

export type Run = Omit<
  Report,
  'ratios' | 'rounds' | 'sides' | 'further_ratios' | 'questions' | 'subjects'
> & {
  readonly asked: readonly Asked[];
  readonly subjects: readonly Subject[];
};

export function createReport({ asked, subjects, ...run }: Run): Report {
  const { named, further } = ratiosOf(asked.flatMap(({ findings }) => findings.series));
  const each = <T>(pick: (ratio: Ratio) => T): Record<string, T> =>
    Object.fromEntries(Object.entries(named).map(([key, ratio]) => [key, pick(ratio)]));
  return {
    ratios: each(({ value }) => value),
    rounds: each(({ rounds }) => rounds),
    sides: each(({ value, spread, ours, theirs }) => ({ value, spread, ours, ...(theirs && { theirs }) })),
    further_ratios: further,
    ...run,
    subjects: Object.fromEntries(subjects.map(({ name, about }) => [name, about])),
    questions: asked.map(({ question: { name, title }, findings: { series, notes = [] } }) => ({
      name,
      title,
      notes,
      rows: series.map(rowOf),
    })),
  };
}

function rowOf(series: Series): Row {
  const names = new Set(series.rounds.flatMap((round) => Object.keys(round)));
  const figures = [...names].flatMap((name) => {
    const figure = figureOf(series, name);
    return figure === undefined ? [] : [[name, figure] as const];
  });
  return { ...series, figures: Object.fromEntries(figures) };
}
