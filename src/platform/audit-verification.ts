// Verifies the audit log of an installation, whether a platform runs on it or not: reads the database as it is, the
// checkpoints, and the public keys that may have signed them.
import type { KeyObject } from 'node:crypto';
import { InputError } from '../base/input-error.ts';
import { openCheckpointSink } from './audit/checkpoint-sink.ts';

import { formatFinding } from './audit/finding.ts';
import { publicKeyFile, readVerificationKey } from './audit/signing-key.ts';
import { type VerificationCounts, verifyLog } from './audit/verify.ts';
import { findUncompared } from './audit-coverage.ts';
import { findChangedDefinitions } from './audit-definitions.ts';
import type { PlatformConfig } from './config.ts';
import { openOperatorStore } from './operator-database.ts';
import { codeOf } from './store/database-error.ts';

/** `uncompared`: why the log cannot be called intact, although no finding says that it is not. */
export type InstallationResult = VerificationCounts & { readonly uncompared: readonly string[] };

export type InstallationVerification = {
  readonly config: Pick<PlatformConfig, 'audit' | 'database' | 'dataDirectory'>;
  readonly organizationId: string | undefined;
  /** Without any, the public key that is stored next to the signing key is used. */
  readonly publicKeyFiles: readonly string[];
  /** Takes one line for each finding, without its line break. */
  report(line: string): void;
};

/** Rejects when it cannot be determined whether the log is intact. */
export async function verifyInstallation({
  config,
  organizationId,
  publicKeyFiles,
  report,
}: InstallationVerification): Promise<InstallationResult> {
  const keys = await readKeys(publicKeyFiles, config.audit.keyFile);
  await using database = await openOperatorStore(config, 2);
  const location = config.audit.checkpoints;
  const nowMs = Date.now();
  const counts = await verifyLog({
    store: database.store,
    checkpoints: openCheckpointSink(location).read(),
    keys,
    nowMs,
    organizationId,
    report: (finding) => report(formatFinding(finding)),
  });
  const changed = await findChangedDefinitions(database.store.db);
  for (const sentence of changed) report(`definition_changed: ${sentence}`);
  const coverage = { ...counts, keys: keys.length, location, organizationId, nowMs };
  return { ...counts, findings: counts.findings + changed.length, uncompared: findUncompared(coverage) };
}

/** Empty when no platform has run here: checkpoints, if there are any, then prove nothing. */
async function readKeys(files: readonly string[], keyFile: string): Promise<readonly KeyObject[]> {
  if (files.length > 0)
    return Promise.all(
      files.map((file) =>
        readVerificationKey(file).catch((cause: unknown) => {
          const code = codeOf(cause);
          throw code === undefined ? cause : new InputError(`${file} cannot be read: ${code}`, { cause });
        }),
      ),
    );
  for (const file of [publicKeyFile(keyFile), keyFile]) {
    const key = await readVerificationKey(file).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
    });
    if (key) return [key];
  }
  return [];
}
