// `npm run chaos [-- NAME]`: runs real processes of the proxy through every fault of the list, or through those whose names
// contain NAME. Prints what was observed; exits with 1 if an expectation failed.
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
// Exits explicitly: resources that a failed row left open must not delay the end.
process.exit(code ?? (await runAll(positionals.join(' '))));

async function runAll(wanted: string): Promise<number> {
  const rows = chaosRows.filter(({ name }) => name.includes(wanted));
  if (rows.length === 0) throw new Error(`no fault name contains "${wanted}"`);
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
  const violated = results.filter(({ problems }) => problems.length > 0);
  const slowest = Math.max(0, ...results.map(({ recoveryMs }) => recoveryMs));
  console.log(
    `${results.length} faults, ${results.length - violated.length} passed, ${skipped} skipped; ` +
      `the slowest recovery took ${slowest.toFixed(0)} of ${MAX_RECOVERY_MS} ms`,
  );
  console.log(`bystanders saw ${bystanderSummary(results)}`);
  for (const { name, problems } of violated)
    for (const problem of problems) console.log(`BROKEN: ${name}: ${problem}`);
  return violated.length === 0 ? 0 : 1;
}

async function runPrinted(row: ChaosRow): Promise<ChaosResult> {
  const result = await Promise.race([runRow(row), tooLong(row)]).catch((error: unknown) =>
    broken(row, error),
  );
  const { name, seen, recoveryMs, problems } = result;
  print(name, seen, `${recoveryMs.toFixed(0)} ms`, problems.length === 0 ? 'yes' : 'NO');
  return result;
}

async function tooLong({ name }: ChaosRow): Promise<never> {
  await delay(MAX_ROW_MS, undefined, { ref: false });
  throw new Error(`${name} did not end within ${MAX_ROW_MS} ms`);
}

function broken({ name }: ChaosRow, error: unknown): ChaosResult {
  const seen = error instanceof Error ? error.message : String(error);
  return { name, seen: 'the row did not finish', recoveryMs: 0, bystanders: new Map(), problems: [seen] };
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
    namespaces: isInNamespace() ? undefined : 'this system does not provide mount and network namespaces',
    faketime: existsSync(faketimeLibrary) ? undefined : 'libfaketime is missing: apt-get install -y faketime',
  };
  return needs.map((need) => missing[need]).find((reason) => reason !== undefined);
}

function print(name: string, seen: string, recovery: string, verdict: string): void {
  console.log(`${name.padEnd(NAME_WIDTH)} ${seen.padEnd(CODE_WIDTH)} ${recovery.padStart(9)}  ${verdict}`);
}
