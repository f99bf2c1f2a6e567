// The cost of an injected header, compared with a direct connection, a bare relay and other proxies. `npm run bench` prints a
// table; bench/README.md lists the options. Progress goes to standard error.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Options, parseOptions } from './support/options.ts';
import { type Children, createChildren } from './support/children.ts';
import { prepareFolder, prepareReportFolder } from './support/output-folder.ts';
import { layOutPackage } from './support/package.ts';
import { measureTarget } from './support/own-target.ts';
import { publish } from './support/publication.ts';
import type { Report } from './support/report.ts';
import { type Session, runQuestions } from './support/session.ts';
import { formatReport, loadTables, formatTable } from './support/table.ts';
import { UsageError, describeError } from './support/usage-error.ts';
import { questions } from './cases/all-questions.ts';

let isInterrupted = false;

try {
  await run();
} catch (error) {
  // Ctrl-C also ends the build that was waited for: the signal is handled first.
  await nextTurn();
  if (!isInterrupted) {
    console.error(describeError(error));
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

async function run(): Promise<void> {
  const options = parseOptions(process.argv.slice(2));
  prepareFolders(options);
  const directory: string = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
  // The peers run as the user nobody and have folders in it.
  chmodSync(directory, 0o711);
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  await using children = createChildren();
  endOnSignals(children);
  const packageDirectory: string =
    options.package === undefined ? layOutPackage(directory) : resolve(options.package);
  const session = { directory, packageDirectory, options };
  if (options.target === undefined) await compare(children, session);
  else console.log(await measureTarget(children, session));
}

function prepareFolders({ report, profile }: Options): void {
  if (report !== undefined) prepareReportFolder(report);
  if (profile !== undefined) prepareFolder('--profile', profile);
}

function endOnSignals(children: Children): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      isInterrupted = true;
      console.error(`bench: interrupted by ${signal}`);
      const exit = (): void => process.exit(128 + constants.signals[signal]);
      children[Symbol.asyncDispose]().then(exit, exit);
    });
}

async function compare(children: Children, session: Session): Promise<void> {
  const { options } = session;
  const report = await runQuestions(children, session);
  // Printed before files are written: a full disk must not lose the figures.
  if (options.json) console.log(JSON.stringify(report));
  else {
    if (options.level === 'full') printQuestions(report);
    console.log(formatReport(report));
  }
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  if (options.report !== undefined) publish(options.report, report, questions, command);
}

/** A table for each load. */
function printQuestions(report: Report): void {
  for (const { name, title, rows, notes } of report.questions) {
    const question = questions.find((each) => each.name === name);
    console.log(`${title}\n${notes.map((note) => `  ${note}\n`).join('')}`);
    for (const { about, table } of question === undefined ? [] : loadTables(question, rows))
      console.log([about, ...formatTable(table), ''].join('\n'));
  }
}
