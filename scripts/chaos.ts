// `npm run chaos [-- NAME]`: puts real processes of the proxy through every fault of the list, or those whose names have
// NAME in them. Prints what was seen; exits with 1 if a promise was broken.
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { ChaosRow, Need } from '../test/chaos/fault.ts';
import { type ChaosResult, MAX_RECOVERY_MS, runRow } from '../test/chaos/fault-run.ts';
import { chaosRows } from '../test/chaos/faults.ts';
import { faketimeLibrary } from '../test/chaos/local-faults.ts';
import { furnishNamespace, isInNamespace, runInNamespace } from './chaos-namespace.ts';

const NAME_WIDTH = 44;
const CODE_WIDTH = 58;

const { positionals } = parseArgs({ allowPositionals: true });
if (isInNamespace()) furnishNamespace();
const code = isInNamespace() ? undefined : runInNamespace();
// What is left behind by a row that failed must not keep the figures waiting.
process.exit(code ?? (await runAll(positionals.join(' '))));

async function runAll(wanted: string): Promise<number> {
  const rows = chaosRows.filter(({ name }) => name.includes(wanted));
  if (rows.length === 0) throw new Error(`no fault has "${wanted}" in its name`);
  print('fault', 'seen', 'recovery', 'ok');
  const results: ChaosResult[] = [];
  let skipped = 0;
  for (const row of rows) {
    const reason = whyNot(row);
    if (reason === undefined) results.push(await runPrinted(row));
    else {
      skipped += 1;
      print(row.name, reason, '', 'skipped');
    }
  }
  const broken = results.filter(({ faults }) => faults.length > 0);
  const slowest = Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs));
  console.log(
    `${results.length} faults, ${results.length - broken.length} held, ${skipped} skipped; ` +
      `the slowest recovery took ${slowest.toFixed(0)} of ${MAX_RECOVERY_MS} ms`,
  );
  for (const { name, faults } of broken) for (const fault of faults) console.log(`BROKEN: ${name}: ${fault}`);
  return broken.length === 0 ? 0 : 1;
}

async function runPrinted(row: ChaosRow): Promise<ChaosResult> {
  const result = await runRow(row);
  const { name, seen, recoveryMs, faults } = result;
  print(name, seen, `${recoveryMs.toFixed(0)} ms`, faults.length === 0 ? 'yes' : 'NO');
  return result;
}

function whyNot({ needs = [] }: ChaosRow): string | undefined {
  const missing: Readonly<Record<Need, string | undefined>> = {
    namespaces: isInNamespace() ? undefined : 'this system gives no mount and network namespace',
    faketime: existsSync(faketimeLibrary) ? undefined : 'libfaketime is missing: apt-get install -y faketime',
  };
  return needs.map((need) => missing[need]).find((reason) => reason !== undefined);
}

function print(name: string, seen: string, recovery: string, verdict: string): void {
  console.log(`${name.padEnd(NAME_WIDTH)} ${seen.padEnd(CODE_WIDTH)} ${recovery.padStart(9)}  ${verdict}`);
}
