// Reads the JSON reports of vitest for .ci/run: which files to run again, and the counts.
//   node .ci/results.mjs fuller FIRST          files that `npm test` has not run in full
//   node .ci/results.mjs failed REPORT…        files with a failure
//   node .ci/results.mjs counts REPORT… [-- REPEATED]   passed, failed, skipped, unstable
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [command, ...args] = process.argv.slice(2);
const separator = args.indexOf('--');
const reports = separator < 0 ? args : args.slice(0, separator);
const [repeated] = separator < 0 ? [] : args.slice(separator + 1);

const filesOf = (report) => JSON.parse(readFileSync(report, 'utf8')).testResults;

/** Those with tests that were left out, and those whose counts are larger in a full run. */
function fuller() {
  return filesOf(reports[0]).flatMap(({ name, assertionResults }) => {
    const isPartial = assertionResults.some(({ status }) => status !== 'passed' && status !== 'failed');
    const isSized = /run-size|fast-check|property-seed/.test(readFileSync(name, 'utf8'));
    return isPartial || isSized || assertionResults.length === 0 ? [relative('.', name)] : [];
  });
}

/** A file that does not load has no failed test. */
function failed() {
  const files = reports.flatMap((report) => filesOf(report)).filter(({ status }) => status === 'failed');
  return [...new Set(files.map(({ name }) => relative('.', name)))];
}

/** The status of each test: a test that ran twice counts once, and as failed if it failed once. */
function statuses(files) {
  const rank = { failed: 2, passed: 1 };
  const tests = new Map();
  for (const { name, assertionResults } of files)
    for (const [at, { fullName, status }] of assertionResults.entries()) {
      const id = JSON.stringify([relative('.', name), fullName, at]);
      if ((rank[status] ?? 0) >= (rank[tests.get(id)] ?? 0)) tests.set(id, status);
    }
  return tests;
}

/** A test that fails beside others and passes alone is unstable: it is named, and counts as passed. */
function counts() {
  const tests = statuses(reports.flatMap((report) => filesOf(report)));
  const alone = repeated === undefined ? new Map() : statuses(filesOf(repeated));
  const unstable = [...tests].filter(([id, status]) => status === 'failed' && alone.get(id) === 'passed');
  for (const [id] of unstable) {
    const [file, name] = JSON.parse(id);
    process.stderr.write(`unstable, failed once and passed when repeated alone: ${file} > ${name}\n`);
    tests.set(id, 'passed');
  }
  const all = [...tests.values()];
  const count = (status) => all.filter((one) => one === status).length;
  return [count('passed'), count('failed'), all.length - count('passed') - count('failed'), unstable.length];
}

const lines = { counts: () => [counts().join(' ')], failed, fuller }[command]();
process.stdout.write(lines.map((line) => `${line}\n`).join(''));
