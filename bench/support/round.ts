// What is measured: figures of one subject in one round, and the rounds of all subjects in turns. A figure is named with its
// unit. Each round measures every run once, every other round in reverse order, so that a change over time affects all.
import { setTimeout as delay } from 'node:timers/promises';
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
  /** Whether the others go on without this run; otherwise the measurement fails. */
  isOptional?(run: Run, error: Error): boolean;
};

const FEWEST_ROUNDS = 3;
const SETTLE_MS = 200;

export async function measureInTurns(runs: readonly Run[], turns: Turns): Promise<readonly Series[]> {
  let order = runs.map((run) => ({ run, rounds: [] as Round[] }));
  for (let round = 0; round < turns.rounds; round += 1) {
    if (round >= FEWEST_ROUNDS && performance.now() > turns.untilMs) break;
    for (const each of round % 2 === 0 ? order : order.toReversed()) {
      try {
        each.rounds.push(await each.run.measure());
      } catch (error) {
        const { load, subject } = each.run;
        const failure = new Error(`${subject}, load ${load}: ${(error as Error).message}`, { cause: error });
        if (turns.isOptional?.(each.run, failure) !== true) throw failure;
        order = order.filter((other) => other !== each);
        // What it still had in progress must not be counted as a request of the next run.
        await delay(SETTLE_MS);
      }
    }
    turns.onRound?.(round + 1);
  }
  return order.map(({ run: { load, subject }, rounds }) => ({ load, subject, rounds }));
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
