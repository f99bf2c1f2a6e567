// `sallyport audit verify`: every fault of the audit log on a line of its own, then what was read.
import { parseArgs } from 'node:util';
import { InputError } from '../base/input-error.ts';
import type { PlatformConfig } from '../platform/config.ts';
import { readPlatformConfig } from './platform.ts';
import { refuseRuntimeSwitches } from './process/runtime-switches.ts';

const USAGE =
  'usage: sallyport audit verify [--organization ID] [--config FILE] [--data-dir DIR] [--checkpoints PLACE] [--public-key FILE]...\n';

const flags = {
  organization: { type: 'string' },
  config: { type: 'string' },
  'data-dir': { type: 'string' },
  checkpoints: { type: 'string' },
  'public-key': { type: 'string', multiple: true },
} as const;

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Exit code 0 for an intact log, 1 for one that was tampered with, 2 for arguments, 3 where it cannot be told. */
export async function run(args: string[]): Promise<number> {
  refuseRuntimeSwitches(process.env);
  const { values, positionals } = parseArgs({ args, options: flags, allowPositionals: true });
  if (positionals.length !== 1 || positionals[0] !== 'verify') {
    process.stderr.write(USAGE);
    return 2;
  }
  const { organization, checkpoints, 'public-key': publicKeyFiles = [], ...given } = values;
  if (organization !== undefined && !UUID.test(organization))
    throw new InputError('--organization: not an id');
  const config = await readPlatformConfig(given, {
    ...process.env,
    ...(checkpoints === undefined ? {} : { SALLYPORT_PLATFORM_AUDIT_CHECKPOINTS: checkpoints }),
  });
  if (config === undefined) return 2;
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
    const { events, organizations, checkpoints, unreadable, unknownKeys, findings } = counts;
    if (unreadable > 0)
      process.stderr.write(
        `${count(unreadable, 'line')} among the checkpoints cannot be read: cut off by a crash, or destroyed\n`,
      );
    if (unknownKeys > 0)
      process.stderr.write(
        `${count(unknownKeys, 'other key')} signed checkpoints that were not looked at: verify again with its --public-key and their --checkpoints\n`,
      );
    const verdict = findings === 0 ? 'intact' : `tampered with, ${count(findings, 'error')}`;
    process.stdout.write(
      `${count(events, 'event')} of ${count(organizations, 'organization')}, ${count(checkpoints, 'checkpoint')}: ${verdict}\n`,
    );
    return findings === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof Error) || error.name === 'InputError') throw error;
    process.stderr.write(`sallyport: the audit log cannot be verified: ${error.message}\n`);
    return 3;
  }
}

function count(number: number, one: string): string {
  return `${number} ${one}${number === 1 ? '' : 's'}`;
}
