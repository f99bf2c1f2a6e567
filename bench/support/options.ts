// The options of the benchmark, from the command line.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Effort, Level } from './question.ts';

export type Options = {
  readonly level: Level;
  readonly json: boolean;
  /** Only these questions. */
  readonly only: readonly string[] | undefined;
  /** Only these peers. */
  readonly peers: readonly string[] | undefined;
  /** The time for all questions together; Infinity: every round of every question. */
  readonly seconds: number;
  readonly package: string | undefined;
  readonly profile: string | undefined;
  /** The folder for the report. */
  readonly report: string | undefined;
  /** The user's own host. */
  readonly target: string | undefined;
  /** The user's own rules. */
  readonly rules: string | undefined;
  readonly effort: Effort;
};

const DEFAULT_FOLDER: string = join(import.meta.dirname, '..', '..', 'docs', 'benchmark');

const efforts: Readonly<Record<Level, Effort & { readonly seconds: number }>> = {
  // For the tests of the bench: everything runs, the figures mean nothing.
  tiny: { level: 'tiny', rounds: 1, durationMs: 30, settleMs: 5, warmUpMs: 20, seconds: Infinity },
  quick: { level: 'quick', rounds: 9, durationMs: 200, settleMs: 30, warmUpMs: 400, seconds: 46 },
  default: { level: 'default', rounds: 9, durationMs: 180, settleMs: 30, warmUpMs: 400, seconds: 70 },
  full: { level: 'full', rounds: 11, durationMs: 1500, settleMs: 100, warmUpMs: 3000, seconds: Infinity },
};

export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      tiny: { type: 'boolean', default: false },
      only: { type: 'string' },
      peers: { type: 'string' },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      package: { type: 'string' },
      profile: { type: 'string' },
      report: { type: 'boolean', default: false },
      output: { type: 'string', default: DEFAULT_FOLDER },
      target: { type: 'string' },
      rules: { type: 'string' },
    },
  });
  const level = values.full ? 'full' : values.quick ? 'quick' : values.tiny ? 'tiny' : 'default';
  const { seconds, ...effort } = efforts[level];
  return {
    level,
    json: values.json,
    only: values.only?.split(','),
    peers: values.peers?.split(','),
    seconds: values.seconds === undefined ? seconds : positive('seconds', values.seconds),
    package: values.package,
    profile: values.profile,
    report: values.report ? values.output : undefined,
    target: values.target,
    rules: values.rules,
    effort: values.rounds === undefined ? effort : { ...effort, rounds: positive('rounds', values.rounds) },
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name} must be a positive number, not ${text}`);
  return value;
}
