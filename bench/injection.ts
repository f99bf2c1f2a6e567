// The cost of an injected header, compared with a direct connection, a bare relay and other proxies. `npm run bench` prints a
// table; bench/README.md lists the options. Progress goes to standard error.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseOptions } from './support/options.ts';
import { createChildren } from './support/children.ts';
import { layOutPackage } from './support/package.ts';
import { measureTarget } from './support/own-target.ts';
import { publish } from './support/publication.ts';
import type { Report } from './support/report.ts';
import { runQuestions } from './support/session.ts';
import { formatReport, loadTables, formatTable } from './support/table.ts';
import { questions } from './cases/all-questions.ts';

const options = parseOptions(process.argv.slice(2));
const directory: string = mkdtempSync(join(tmpdir(), 'sallyport-bench-'));
// The peers run as the user nobody and have folders in it.
chmodSync(directory, 0o711);
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
await using children = createChildren();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => {
    const exit = (): void => process.exit(1);
    children[Symbol.asyncDispose]().then(exit, exit);
  });

const packageDirectory: string =
  options.package === undefined ? layOutPackage(directory) : resolve(options.package);
const session = { directory, packageDirectory, options };
if (options.target === undefined) await compare();
else console.log(await measureTarget(children, session));

async function compare(): Promise<void> {
  const report = await runQuestions(children, session);
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  if (options.report !== undefined) publish(options.report, report, questions, command);
  if (options.json) return console.log(JSON.stringify(report));
  if (options.level === 'full') printQuestions(report);
  console.log(formatReport(report));
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
