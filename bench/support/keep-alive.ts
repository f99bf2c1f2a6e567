// What the questions about kept-alive connections have in common, whatever the version of HTTP: one run, and the runs at a
// constant rate after those in which each response is followed by the next request.
import type { KeepAliveLoad } from './measure.ts';
import type { Findings, Stage } from './question.ts';
import { type Run, type Series, figureOf } from './round.ts';
import type { Subject } from './subject.ts';

/** `more` are the clients of the load, and what else is special about the run. */
export function keepAliveRun(
  { client, effort: { durationMs, settleMs } }: Stage,
  subject: Subject,
  load: string,
  more: Pick<KeepAliveLoad, 'clients'> & Partial<KeepAliveLoad>,
): Run {
  return {
    load,
    subject: subject.name,
    measure: () => client.keepAlive(subject, { durationMs, settleMs, ...more }),
  };
}

export type Pace = {
  readonly subjects: readonly Subject[];
  /** What was measured without a rate. */
  readonly closed: readonly Series[];
  /** The load in `closed` that shows how many requests a second a subject can serve. */
  readonly load: string;
  /** The rate is half of what the slowest of these reached. */
  readonly reference: readonly string[];
  runOf(subject: Subject, ratePerSecond: number): Run;
};

/** Runs at a constant rate, without the subjects that cannot reach it, and all that was measured before. */
export async function measureRate(stage: Stage, pace: Pace): Promise<Findings> {
  const { subjects, closed, load, reference, runOf } = pace;
  const capacity = (name: string): number | undefined =>
    figureOf(
      closed.find((each) => each.load === load && each.subject === name),
      'per_second',
    )?.median;
  const ratePerSecond = Math.floor(Math.min(...reference.flatMap((name) => capacity(name) ?? [])) / 2);
  const able = subjects.filter(({ name }) => (capacity(name) ?? 0) >= ratePerSecond * 1.5);
  const paced = await stage.measure(able.map((subject) => runOf(subject, ratePerSecond)));
  const left = subjects.filter((subject) => !able.includes(subject)).map(({ name }) => name);
  const notes = [
    `the constant rate is ${ratePerSecond}/s`,
    ...(left.length === 0 ? [] : [`too slow for this rate: ${left.join(', ')}`]),
  ];
  return { series: [...closed, ...paced], notes };
}
