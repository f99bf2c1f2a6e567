// `sallyport ca rotate`: creates the CA that follows. The running proxy publishes it at once and signs with it after the overlap.
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { InputError, readInput } from '../../base/input-error.ts';
import type { Config } from '../../sidecar/config.ts';
import type { CertificateAuthorityFiles } from '../../tls/certificate-authority.ts';
import { rotationFiles } from '../../tls/authority-rotation.ts';
import { completeRotation, createNextAuthority, readNextAuthority } from '../../tls/rotation-files.ts';
import { type ReadAuthority, readAuthority } from './certificate-file.ts';
import type { FileOwner } from '../../tls/pem-files.ts';
import { caFiles, writingTo } from '../settings.ts';

const DAY_MS = 24 * 3_600_000;
const DEFAULT_DAYS = 7;
const MAX_DAYS = 365;

export type Rotation = {
  readonly file: string;
  readonly fingerprint: string;
  readonly signsFrom: Date;
};

/** Throws an InputError that says what to do; then nothing was created. */
export async function rotateAuthority(config: Config, overlap: string | undefined): Promise<Rotation> {
  const days = parseDays(overlap);
  const files = caFiles(config);
  await writingTo(dirname(files.keyFile), () => completeRotation(files, Date.now()));
  // The one that ends may be that of the rotation before.
  const current = await readAuthority(files.certificateFile);
  const signsFrom = new Date(Date.now() + days * DAY_MS);
  requireValidUntil(signsFrom, current);
  const owner = await ownerOf(files);
  const isCreated = await writingTo(dirname(files.keyFile), () =>
    createNextAuthority(files, signsFrom, owner),
  );
  if (!isCreated) throw await pending(files);
  const next = rotationFiles(files).certificateFile;
  const { certificate } = await readAuthority(next);
  return { file: next, fingerprint: certificate.fingerprint256, signsFrom };
}

function parseDays(text: string | undefined): number {
  const days = text === undefined ? DEFAULT_DAYS : Number(text);
  if (text?.trim() !== '' && Number.isInteger(days) && days >= 0 && days <= MAX_DAYS) return days;
  throw new InputError(`--overlap must be a number of days from 0 to ${MAX_DAYS}`);
}

function requireValidUntil(date: Date, { certificate }: ReadAuthority): void {
  if (date.getTime() < certificate.validToDate.getTime()) return;
  throw new InputError(
    `the CA certificate ends on ${certificate.validToDate.toISOString()}, before the overlap does: set a shorter --overlap`,
  );
}

async function pending(files: CertificateAuthorityFiles): Promise<InputError> {
  const next = await readInput(() => readNextAuthority(files));
  const { scheduleFile, keyFile, certificateFile } = rotationFiles(files);
  return next === undefined
    ? new InputError(`an earlier rotation was interrupted: remove ${keyFile} and ${certificateFile}`)
    : new InputError(
        `a rotation has begun: the next CA signs from ${next.signsFrom.toISOString()} on. To change that, write another date to ${scheduleFile}`,
      );
}

/** Root may rotate for the user of the proxy, who must be able to read the key. */
async function ownerOf({ keyFile }: CertificateAuthorityFiles): Promise<FileOwner | undefined> {
  const owner = await stat(keyFile);
  return process.getuid?.() === 0 && owner.uid !== 0 ? owner : undefined;
}
