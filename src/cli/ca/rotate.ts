// `sallyport ca rotate`: creates the CA that follows. The running proxy publishes it at once and signs with it after the overlap.
import { chown, stat } from 'node:fs/promises';
import { InputError, readInput } from '../../base/input-error.ts';
import type { Config } from '../../sidecar/config.ts';
import type { CertificateAuthorityFiles } from '../../tls/certificate-authority.ts';
import { rotationFiles } from '../../tls/authority-rotation.ts';
import { completeRotation, createNextAuthority, readNextAuthority } from '../../tls/rotation-files.ts';
import { type ReadAuthority, readAuthority } from './certificate-file.ts';
import { caFiles } from '../settings.ts';

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
  const current = await readAuthority(files.certificateFile);
  await readInput(() => completeRotation(files, Date.now()));
  const signsFrom = new Date(Date.now() + days * DAY_MS);
  requireValidUntil(signsFrom, current);
  if (!(await createNextAuthority(files, signsFrom))) throw await pending(files);
  await giveToOwner(files);
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
async function giveToOwner(files: CertificateAuthorityFiles): Promise<void> {
  const { uid, gid } = await stat(files.keyFile);
  if (process.getuid?.() !== 0 || uid === 0) return;
  for (const file of Object.values(rotationFiles(files))) await chown(file, uid, gid);
}
