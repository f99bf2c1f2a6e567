// The options of the agent benchmark, from the command line; wrong ones end it before anything starts.
import { parseArgs } from 'node:util';
import { UsageError } from '../support/usage-error.ts';
import type { Effort } from './rounds.ts';

export type Question = (typeof questions)[number];
const questions = ['idle', 'loads', 'history', 'hostile'] as const;

export type Options = Effort & {
  readonly json: boolean;
  readonly only: readonly Question[];
  readonly hostileSeconds: number;
  readonly threads: number;
  readonly package: string | undefined;
  readonly profile: string | undefined;
};

export function readOptions(): Options {
  try {
    const { values } = parseArgs({
      options: {
        json: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        full: { type: 'boolean', default: false },
        only: { type: 'string' },
        rounds: { type: 'string' },
        threads: { type: 'string', default: '100000' },
        package: { type: 'string' },
        profile: { type: 'string' },
      },
    });
    const { quick, full, json, package: folder, profile } = values;
    if (quick && full) throw new Error('--quick and --full exclude each other; use one of them');
    const count = (name: 'rounds' | 'threads', text: string): number => {
      const number = Number(text);
      if (Number.isSafeInteger(number) && number >= 1) return number;
      throw new Error(`--${name} must be a whole number of at least 1, not ${text}`);
    };
    return {
      ...{ json, package: folder, profile },
      only: readQuestions(values.only, full),
      threads: count('threads', values.threads),
      rounds: count('rounds', values.rounds ?? (quick ? '1' : '5')),
      ...(quick
        ? { warmUpSeconds: 1, seconds: 1.5, hostileSeconds: 2 }
        : { warmUpSeconds: 4, seconds: 4, hostileSeconds: 10 }),
    };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** By default all but the history, which fills a database for minutes. */
function readQuestions(given: string | undefined, isFull: boolean): readonly Question[] {
  const all = questions.filter((name) => isFull || name !== 'history');
  if (given === undefined) return all;
  return given.split(',').map((name) => {
    const found = questions.find((one) => one === name);
    if (found === undefined)
      throw new Error(`--only has no question ${name}; the questions are ${questions.join(', ')}`);
    return found;
  });
}
