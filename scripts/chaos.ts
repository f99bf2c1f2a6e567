// `npm run chaos [-- NAME]`: puts real processes of the proxy through every fault of the list, or those whose names have
// NAME in them. Prints what was seen; exits with 1 if a promise was broken.
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { ChaosRow, Need } from '../test/chaos/fault.ts';
import { type ChaosResult, MAX_RECOVERY_MS, runRow } from '../test/chaos/fault-run.ts';
import { chaosRows } from '../test/chaos/faults.ts';
import { faketimeLibrary } from '../test/chaos/local-faults.ts';
import { furnishNamespace, isInNamespace, runInNamespace } from './chaos-namespace.ts';

const NAME_WIDTH = 44;
const CODE_WIDTH = 58;
/** The slowest take some seconds, and three times that on a busy machine. */
const MAX_ROW_MS = 120_000;

const { positionals } = parseArgs({ allowPositionals: true });
if (isInNamespace()) furnishNamespace();
const code = isInNamespace() ? undefined : runInNamespace();
// What is left behind by a row that failed must not keep the figures waiting.
process.exit(code ?? (await runAll(positionals.join(' '))));

async function runAll(wanted: string): Promise<number> {
  const rows = chaosRows.filter(({ name }) => name.includes(wanted));
  if (rows.length === 0) throw new Error(`no fault has "${wanted}" in its name`);
  print('error', 'seen', 'recovery', 'ok');
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
  const violated = results.filter(({ faults }) => faults.length > 0);
  const slowest = Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs));
  console.log(
    `${results.length} faults, ${results.length - violated.length} held, ${skipped} skipped; ` +
      `the slowest recovery took ${slowest.toFixed(0)} of ${MAX_RECOVERY_MS} ms`,
  );
  console.log(`bystanders saw ${bystanderSummary(results)}`);
  for (const { name, faults } of violated)
    for (const fault of faults) console.log(`BROKEN: ${name}: ${fault}`);
  return violated.length === 0 ? 0 : 1;
}

async function runPrinted(row: ChaosRow): Promise<ChaosResult> {
  const result = await Promise.race([runRow(row), tooLong(row)]).catch((error: unknown) =>
    broken(row, error),
  );
  const { name, seen, recoveryMs, faults } = result;
  print(name, seen, `${recoveryMs.toFixed(0)} ms`, faults.length === 0 ? 'yes' : 'NO');
  return result;
}

async function tooLong({ name }: ChaosRow): Promise<never> {
  await delay(MAX_ROW_MS, undefined, { ref: false });
  throw new Error(`${name} did not end in ${MAX_ROW_MS} ms`);
}

function broken({ name }: ChaosRow, error: unknown): ChaosResult {
  const seen = error instanceof Error ? error.message : String(error);
  return { name, seen: 'it did not run to its end', recoveryMs: 0, bystanders: new Map(), faults: [seen] };
}

/** Every code that bystanders saw, over all rows. */
function bystanderSummary(results: readonly ChaosResult[]): string {
  const all = new Map<string, number>();
  for (const { bystanders } of results)
    for (const [code, count] of bystanders) all.set(code, (all.get(code) ?? 0) + count);
  return [...all].map(([code, count]) => `${count} x ${code}`).join(', ');
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
