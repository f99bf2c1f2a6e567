// `sallyport audit verify`: prints one line for each finding in the audit log, then a summary.
import { InputError } from '../base/input-error.ts';
import { z } from '../base/schema.ts';
import type { InstallationResult } from '../platform/audit-verification.ts';
import type { PlatformConfig } from '../platform/config.ts';
import { missing, parseCommandLine, unexpected } from './command/declaration.ts';
import { auditCommand } from './command/platform-commands.ts';
import { misspeltVariables } from './platform/misspelt-variables.ts';
import { readPlatformConfig } from './platform.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';

/** Exit code 0: intact; 1: tampered with; 2: usage error; 3: it could not be determined. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  const { values, operands } = parseCommandLine(auditCommand, args);
  const [action, ...more] = operands;
  if (action === undefined) throw missing(auditCommand, 'command: audit verify');
  if (action !== 'verify' || more.length > 0) throw unexpected(auditCommand, more[0] ?? action);
  const { organization, checkpoints, 'public-key': publicKeyFiles = [], ...given } = values;
  if (organization !== undefined && !z.guid().safeParse(organization).success)
    throw new InputError('--organization must be the id of an organization');
  const config = await readPlatformConfig(given, {
    ...process.env,
    ...(checkpoints === undefined ? {} : { SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS: checkpoints }),
  });
  if (config === undefined) return 2;
  for (const warning of misspeltVariables()) process.stderr.write(`sallyport: ${warning}\n`);
  return verify(config, organization?.toLowerCase(), publicKeyFiles);
}

async function verify(
  config: PlatformConfig,
  organizationId: string | undefined,
  publicKeyFiles: readonly string[],
): Promise<number> {
  const { verifyInstallation } = await import('../platform/audit-verification.ts');
  try {
    const counts = await verifyInstallation({
      config,
      organizationId,
      publicKeyFiles,
      report: (line) => process.stdout.write(`${line}\n`),
    });
    printSummary(counts);
    if (counts.findings > 0) return 1;
    return counts.uncompared.length > 0 ? 3 : 0;
  } catch (error) {
    if (!(error instanceof Error) || error.name === 'InputError') throw error;
    process.stderr.write(`sallyport: the audit log cannot be verified: ${error.message}\n`);
    return 3;
  }
}

function printSummary(counts: InstallationResult): void {
  const { events, organizations, checkpoints, unreadable, uncompared, findings } = counts;
  if (unreadable > 0)
    process.stderr.write(
      `${count(unreadable, 'line')} among the checkpoints cannot be read: cut off by a crash, or damaged\n`,
    );
  for (const reason of uncompared)
    process.stderr.write(`sallyport: the audit log cannot be verified: ${reason}\n`);
  const unchanged = uncompared.length === 0 ? 'intact' : 'not verified';
  const verdict = findings === 0 ? unchanged : `tampered with, ${count(findings, 'finding')}`;
  process.stdout.write(
    `${count(events, 'event')} of ${count(organizations, 'organization')}, ${count(checkpoints, 'checkpoint')}: ${verdict}\n`,
  );
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
