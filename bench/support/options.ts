// The options of the benchmark, from the command line. Everything that can be wrong is refused here, before anything starts.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { questionsOf } from '../cases/all-questions.ts';
import { peersOf } from '../peers/all-peers.ts';
import { DEFAULT_FOLDER } from './output-folder.ts';
import type { Effort, Level } from './question.ts';
import { UsageError } from './usage-error.ts';

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

const efforts: Readonly<Record<Level, Effort & { readonly seconds: number }>> = {
  // For the tests of the bench: everything runs, the figures mean nothing.
  tiny: { level: 'tiny', rounds: 1, durationMs: 30, settleMs: 5, warmUpMs: 20, seconds: Infinity },
  quick: { level: 'quick', rounds: 9, durationMs: 200, settleMs: 30, warmUpMs: 800, seconds: 46 },
  default: { level: 'default', rounds: 9, durationMs: 180, settleMs: 30, warmUpMs: 400, seconds: 70 },
  full: { level: 'full', rounds: 9, durationMs: 400, settleMs: 60, warmUpMs: 2000, seconds: Infinity },
};
const levels: readonly Level[] = ['quick', 'full', 'tiny'];

/** Options without a value, and what the value of each other option is. */
const flags: readonly string[] = ['json', 'report', ...levels];
const valued: Readonly<Record<string, string>> = {
  only: 'questions, with commas between them',
  peers: 'peers, with commas between them',
  seconds: 'a positive number',
  rounds: 'a whole number of at least 1',
  package: 'the folder of a built package',
  profile: 'a folder',
  output: 'a folder',
  target: 'an https URL',
  rules: 'a file with a proxy_config',
};

type Given = ReadonlyMap<string, string>;

export function parseOptions(args: readonly string[]): Options {
  const given = readGiven(args);
  checkCombinations(given);
  const level = levels.find((each) => given.has(each)) ?? 'default';
  const { seconds, ...effort } = efforts[level];
  const options: Options = {
    level,
    json: given.has('json'),
    only: given.get('only')?.split(','),
    peers: given.get('peers')?.split(','),
    seconds: numberIn(given, 'seconds', (value) => value > 0) ?? seconds,
    package: given.get('package'),
    profile: given.get('profile'),
    report: given.has('report') ? (given.get('output') ?? DEFAULT_FOLDER) : undefined,
    target: given.get('target'),
    rules: given.get('rules'),
    effort: {
      ...effort,
      rounds: numberIn(given, 'rounds', (value) => Number.isSafeInteger(value) && value > 0) ?? effort.rounds,
    },
  };
  questionsOf(level, options.only);
  peersOf(level, options.peers);
  if (options.package !== undefined) checkPackage(options.package);
  if (options.target !== undefined) checkTarget(options.target);
  if (options.rules !== undefined) checkRules(options.rules);
  return options;
}

/** Each option with its value; a flag has an empty one. The messages of parseArgs do not say what is expected. */
function readGiven(args: readonly string[]): Given {
  const types = [
    ...flags.map((name) => [name, { type: 'boolean' }] as const),
    ...Object.keys(valued).map((name) => [name, { type: 'string' }] as const),
  ];
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    strict: false,
    tokens: true,
  });
  const given = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === 'positional')
      throw new UsageError(`unexpected argument ${token.value}; every argument belongs to an option`);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const isFlag = flags.includes(name);
    if (!isFlag && !Object.hasOwn(valued, name)) {
      const names = [...flags, ...Object.keys(valued)].filter((each) => each !== 'tiny');
      throw new UsageError(
        `unknown option ${rawName}; the options are ${names.map((each) => `--${each}`).join(', ')}`,
      );
    }
    if (isFlag && value !== undefined) throw new UsageError(`--${name} has no value, not ${value}`);
    if (!isFlag && (value === undefined || value === '' || value.startsWith('--')))
      throw new UsageError(`--${name} needs a value: ${valued[name]}`);
    given.set(name, value ?? '');
  }
  return given;
}

/** What would be ignored is refused. */
function checkCombinations(given: Given): void {
  const [one, other] = levels.filter((level) => given.has(level));
  if (other !== undefined)
    throw new UsageError(`--${one} and --${other} exclude each other; use one of them`);
  if (given.has('output') && !given.has('report'))
    throw new UsageError('--output needs --report, which writes the files');
  if (!given.has('target')) {
    if (given.has('rules')) throw new UsageError('--rules needs --target URL, the host to measure');
    return;
  }
  if (!given.has('rules'))
    throw new UsageError('--target needs --rules FILE, a proxy_config with a rule or callback for the host');
  for (const name of ['json', 'report', 'only', 'peers', 'seconds', 'profile'])
    if (given.has(name)) throw new UsageError(`--${name} has no effect with --target; use one of them`);
}

function numberIn(given: Given, name: string, isValid: (value: number) => boolean): number | undefined {
  const text = given.get(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!isValid(value)) throw new UsageError(`--${name} must be ${valued[name]}, not ${text}`);
  return value;
}

function checkPackage(folder: string): void {
  const missing = ['bin/sallyport.js', 'dist/sallyport.js'].find((file) => !existsSync(join(folder, file)));
  if (missing !== undefined)
    throw new UsageError(`--package must be ${valued['package']}, but ${folder} has no ${missing}`);
}

function checkTarget(text: string): void {
  if (!URL.canParse(text) || new URL(text).protocol !== 'https:')
    throw new UsageError(`--target must be ${valued['target']}, not ${text}`);
}

function checkRules(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
    throw new UsageError(`--rules must be ${valued['rules']}, but ${file} is not a file`);
}
