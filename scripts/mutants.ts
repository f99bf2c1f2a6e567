// `npm run mutants [-- I2 h2 gateway …]`: applies every listed mutation, one at a time and in private copies of the tree, and
// expects the tests of its invariant to fail, for each version of HTTP that the mutation names, or those of the gateway or of services of boxes. Exits with 1 if a mutation survives,
// does not run, or no longer matches its file.
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Invariant, type Mutation, type Version, allVersions } from './mutations/mutation.ts';
import { invariantTests, mutations } from './mutations.ts';

const AT_ONCE = 2;
const TEST_TIMEOUT_MS = 5_000;
const RUN_TIMEOUT_MS = 120_000;
const COPIED = [
  'src',
  'test',
  'scripts',
  'bench',
  'bin',
  'config',
  'certs',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'vitest.config.ts',
];

type Verdict = {
  readonly outcome: 'killed' | 'SURVIVED' | 'DID NOT RUN' | 'NOT FOUND';
  /** The first test that failed, or why none did. */
  readonly by: string;
};
/** The failed test, and whether its time limit expired: then no expectation has noticed the mutation. */
type TestRun = {
  readonly passed: number;
  readonly failed: readonly { readonly title: string; readonly isTimeout: boolean }[];
};
/** The tests of one invariant over one version. */
type Suite = { readonly invariant: Invariant; readonly version: Version };
type Trial = { readonly mutation: Mutation; readonly suite: Suite };

const root = join(import.meta.dirname, '..');

process.exitCode = await main(process.argv.slice(2));

async function main(wanted: readonly string[]): Promise<number> {
  const suites = suitesOf(wanted);
  const chosen = mutations.flatMap((mutation) =>
    suites.filter((suite) => isSeenBy(mutation, suite)).map((suite): Trial => ({ mutation, suite })),
  );
  const copies = await Promise.all(Array.from({ length: AT_ONCE }, () => createCopy()));
  try {
    const needed = suites.filter((suite) => chosen.some((trial) => trial.suite === suite));
    // The invariants of the gateway have the same tests.
    const used = [...new Map(needed.map((suite) => [testsOf(suite).join(), suite])).values()];
    const unmutated = await inTurns(copies, used, (copy, suite) => runTests(copy, suite));
    const red = used.filter((_, i) => !isGreen(unmutated[i])).map(nameOf);
    if (red.length > 0) {
      console.log(`failing without any mutation, so a failure would prove nothing: ${red.join(', ')}`);
      return 1;
    }
    const verdicts = await inTurns(copies, chosen, tryMutation);
    console.log(tableOf(chosen, verdicts));
    const bad = verdicts.filter(({ outcome }) => outcome !== 'killed').length;
    console.log(`${verdicts.length} mutations, ${verdicts.length - bad} killed, ${bad} not`);
    return bad === 0 ? 0 : 1;
  } finally {
    await Promise.all(copies.map((copy) => rm(copy, { recursive: true, force: true })));
  }
}

/** The requested invariants and versions; without a request, all. */
function suitesOf(wanted: readonly string[]): readonly Suite[] {
  const invariants = Object.keys(invariantTests) as Invariant[];
  const among = <T extends string>(all: readonly T[]): readonly T[] => {
    const named = all.filter((one) => wanted.includes(one));
    return named.length === 0 ? all : named;
  };
  return among(invariants).flatMap((invariant) =>
    among(allVersions).map((version): Suite => ({ invariant, version })),
  );
}

function isSeenBy({ invariant, versions = ['h1'] }: Mutation, suite: Suite): boolean {
  return invariant === suite.invariant && versions.includes(suite.version);
}

function testsOf({ invariant, version }: Suite): readonly string[] {
  return invariantTests[invariant][version];
}

function nameOf({ invariant, version }: Suite): string {
  return `${invariant} ${version}`;
}

async function createCopy(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'sallyport-mutant-'));
  for (const name of COPIED) await cp(join(root, name), join(copy, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Processes the items in order, each in the next free copy. */
async function inTurns<Item, Result>(
  copies: readonly string[],
  items: readonly Item[],
  work: (copy: string, item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  await Promise.all(
    copies.map(async (copy) => {
      for (const [i, item] of queue) results[i] = await work(copy, item);
    }),
  );
  return results;
}

async function tryMutation(copy: string, { mutation, suite }: Trial): Promise<Verdict> {
  const file = join(copy, mutation.file);
  const source = await readFile(file, 'utf8');
  const [before, after, ...more] = source.split(mutation.text);
  if (before === undefined || after === undefined || more.length > 0)
    return { outcome: 'NOT FOUND', by: `the text is not in ${mutation.file} exactly once` };
  await writeFile(file, `${before}${mutation.replacement}${after}`);
  try {
    return verdictOn(await runTests(copy, suite), suite);
  } finally {
    await writeFile(file, source);
  }
}

// A mutation that does not parse, or a run that crashes, fails too, but shows nothing: only a failed test counts.
function verdictOn(run: TestRun | undefined, { invariant, version }: Suite): Verdict {
  if (run === undefined) return { outcome: 'DID NOT RUN', by: 'the tests did not finish' };
  const hasInvariants = version === 'h1' || version === 'h2';
  const isOfSuite = (title: string): boolean => !hasInvariants || title.startsWith(`${invariant} `);
  const killer = run.failed.find(({ title }) => isOfSuite(title));
  if (killer !== undefined)
    return { outcome: 'killed', by: killer.isTimeout ? `its time limit: ${killer.title}` : killer.title };
  return run.passed > 0
    ? { outcome: 'SURVIVED', by: 'every test passed' }
    : { outcome: 'DID NOT RUN', by: 'no test ran' };
}

function isGreen(run: TestRun | undefined): boolean {
  return run !== undefined && run.failed.length === 0 && run.passed > 0;
}

/** Undefined if there is no report: the run ended before the tests did. */
async function runTests(copy: string, suite: Suite): Promise<TestRun | undefined> {
  const report = join(copy, 'report.json');
  await rm(report, { force: true });
  await runVitest(copy, [
    'run',
    ...testsOf(suite),
    '--bail=1',
    '--reporter=json',
    `--outputFile=${report}`,
    `--testTimeout=${TEST_TIMEOUT_MS}`,
  ]);
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  // The format of the report of vitest.
  const { testResults } = JSON.parse(text) as {
    testResults: readonly { assertionResults: readonly TestResult[] }[];
  };
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return {
    passed: tests.filter(({ status }) => status === 'passed').length,
    failed: tests
      .filter(({ status }) => status === 'failed')
      .map(({ title, failureMessages }) => ({
        title,
        isTimeout: failureMessages.some((message) => message.includes('Test timed out in')),
      })),
  };
}

type TestResult = {
  readonly status: string;
  readonly title: string;
  readonly failureMessages: readonly string[];
};

async function runVitest(copy: string, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [join('node_modules', 'vitest', 'vitest.mjs'), ...args], {
    cwd: copy,
    env: { ...process.env, SALLYPORT_TEST: 'all' },
    stdio: 'ignore',
    timeout: RUN_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  await new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve());
  });
}

function tableOf(chosen: readonly Trial[], verdicts: readonly Verdict[]): string {
  const rows = chosen.map(({ mutation, suite }, i) => {
    const { outcome, by } = verdicts[i] ?? { outcome: 'DID NOT RUN', by: '' };
    return [nameOf(suite), mutation.name, outcome, by];
  });
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
