// What is measured: figures of one subject in one round, and the rounds of all subjects in turns. A figure is named with its
// unit. Each round measures every run once, every other round in reverse order, so that a change over time affects all.
import { type Spread, spreadOf } from './percentiles.ts';

/** Figures by name: `cpu_us` is CPU of the processes in between per request, `p50_ms` a latency, and so on. */
export type Round = Readonly<Record<string, number>>;

/** One subject under one load. */
export type Run = {
  readonly load: string;
  readonly subject: string;
  measure(): Promise<Round>;
};

export type Series = {
  readonly load: string;
  readonly subject: string;
  readonly rounds: readonly Round[];
};

export type Turns = {
  readonly rounds: number;
  /** After this time no round starts, but three are always measured. */
  readonly untilMs: number;
  onRound?(round: number): void;
};

const FEWEST_ROUNDS = 3;

export async function measureInTurns(runs: readonly Run[], turns: Turns): Promise<readonly Series[]> {
  const series = runs.map(({ load, subject }) => ({ load, subject, rounds: [] as Round[] }));
  const order = runs.map((run, i) => ({ run, rounds: series[i]?.rounds }));
  for (let round = 0; round < turns.rounds; round += 1) {
    if (round >= FEWEST_ROUNDS && performance.now() > turns.untilMs) break;
    for (const { run, rounds } of round % 2 === 0 ? order : order.toReversed()) {
      try {
        rounds?.push(await run.measure());
      } catch (error) {
        throw new Error(`${run.subject}, load ${run.load}: ${(error as Error).message}`, { cause: error });
      }
    }
    turns.onRound?.(round + 1);
  }
  return series;
}

export function seriesOf(all: readonly Series[], load: string, subject: string): Series | undefined {
  return all.find((each) => each.load === load && each.subject === subject);
}

/** A figure over the rounds; undefined when it was not measured. */
export function figureOf(series: Series | undefined, name: string): Spread | undefined {
  const values = valuesOf(series, name);
  return values.length === 0 ? undefined : spreadOf(values);
}

export function valuesOf(series: Series | undefined, name: string): readonly number[] {
  return series?.rounds.flatMap((round) => round[name] ?? []) ?? [];
}
