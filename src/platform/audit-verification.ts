// Verification of a whole installation's audit log, beside a platform that runs or without one: the database as it
// stands, the checkpoints, and the public keys of those who may have signed them.
import type { KeyObject } from 'node:crypto';
import { InputError } from '../base/input-error.ts';
import { openCheckpointSink } from './audit/checkpoint-sink.ts';
import { formatFinding } from './audit/finding.ts';
import { publicKeyFile, readVerificationKey } from './audit/signing-key.ts';
import { type VerificationCounts, verifyLog } from './audit/verify.ts';
import type { PlatformConfig } from './config.ts';
import { openDatabasePlace } from './operator-database.ts';
import { openDatabase } from './store/database.ts';

export type InstallationVerification = {
  readonly config: Pick<PlatformConfig, 'audit' | 'database' | 'dataDirectory'>;
  readonly organizationId: string | undefined;
  /** Files of public keys; where there are none, the one that lies beside the signing key. */
  readonly publicKeyFiles: readonly string[];
  /** Takes a line for each finding, without its end. */
  report(line: string): void;
};

/** Rejects when it cannot be told whether the log is intact. */
export async function verifyInstallation(
  verification: InstallationVerification,
): Promise<VerificationCounts> {
  const { config, organizationId, publicKeyFiles, report } = verification;
  const keys = await readKeys(publicKeyFiles, config.audit.keyFile);
  await using place = await openDatabasePlace(config);
  const store = openDatabase({ connection: place.connection, maxConnections: 2, onError: () => undefined });
  try {
    return await verifyLog({
      store,
      checkpoints: openCheckpointSink(config.audit.checkpoints).read(),
      keys,
      nowMs: Date.now(),
      organizationId,
      report: (finding) => report(formatFinding(finding)),
    });
  } finally {
    await store.close();
  }
}

/** None at all where no platform has run here: checkpoints, if there are any, then vouch for nothing. */
async function readKeys(files: readonly string[], keyFile: string): Promise<readonly KeyObject[]> {
  if (files.length > 0)
    return Promise.all(files.map((file) => readVerificationKey(file).catch(asInputError(file))));
  for (const file of [publicKeyFile(keyFile), keyFile]) {
    const key = await readVerificationKey(file).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (key !== undefined) return [key];
  }
  return [];
}

function asInputError(file: string): (error: unknown) => never {
  return (cause) => {
    if (!(cause instanceof Error) || !('code' in cause)) throw cause;
    throw new InputError(`${file} cannot be read: ${cause.code}`, { cause });
  };
}
