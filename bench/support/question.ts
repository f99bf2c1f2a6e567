// A question of the benchmark: what is measured, under which loads, and how its figures are shown. One file of bench/cases
// each. A run asks them one after the other.
import type { Children } from './children.ts';
import type { LoadClient } from './measure.ts';
import { type Round, type Run, type Series, type Turns, measureInTurns } from './round.ts';
import type { Sallyport } from './sallyport.ts';
import type { Scene } from './scene.ts';
import type { Subject } from './subject.ts';

/** `quick` is what a machine compares, `default` what a person reads, `full` the whole field, `tiny` a test of the bench. */
export type Level = 'tiny' | 'quick' | 'default' | 'full';

export type Effort = {
  readonly level: Level;
  readonly rounds: number;
  /** The measured time of one subject in one round; a question may take a multiple of it. */
  readonly durationMs: number;
  /** The same load on new connections before it, not measured. */
  readonly settleMs: number;
  /** The time of each subject before the first round, for compilers and caches. */
  readonly warmUpMs: number;
};

export type Stage = {
  readonly children: Children;
  readonly scene: Scene;
  readonly client: LoadClient;
  readonly sallyport: Sallyport;
  readonly packageDirectory: string;
  readonly subjects: readonly Subject[];
  readonly effort: Effort;
  say(line: string): void;
  /** Measures the runs in turns, within the time of the question. */
  measure(runs: readonly Run[], options?: { readonly rounds?: number }): Promise<readonly Series[]>;
};

export type Column = { readonly figure: string; readonly title: string; readonly digits: number };

export type Findings = {
  readonly series: readonly Series[];
  /** What a reader must know to read the figures. */
  readonly notes?: readonly string[];
};

export type Question = {
  readonly name: string;
  readonly title: string;
  /** What each load is. */
  readonly loads: Readonly<Record<string, string>>;
  readonly columns: readonly Column[];
  measure(stage: Stage): Promise<Findings>;
};

export const cpuColumn: Column = { figure: 'cpu_us', title: 'CPU us/request', digits: 1 };
export const latencyColumns: readonly Column[] = [
  { figure: 'per_second', title: 'per second', digits: 0 },
  { figure: 'p50_ms', title: 'p50 ms', digits: 3 },
  { figure: 'p99_ms', title: 'p99 ms', digits: 3 },
];

export function createTurns(effort: Effort, turns: Omit<Turns, 'rounds'>): Stage['measure'] {
  return (runs, { rounds = effort.rounds } = {}) => measureInTurns(runs, { ...turns, rounds });
}

/** Runs each once without counting it. One that fails will fail again where failures are handled. */
export async function warmUp(runs: readonly { measure(): Promise<Round> }[]): Promise<void> {
  for (const { measure } of runs) await measure().catch(() => undefined);
}
