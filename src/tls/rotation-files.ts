// The files of the CA that follows: beside those of the current one, with the date from which it signs. Once nothing of the current
// one is valid any more, they take its place.
import { readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type NextAuthority, rotationFiles, TAIL_MS } from './authority-rotation.ts';
import {
  type CertificateAuthorityFiles,
  createCertificateAuthority,
  loadCertificateAuthority,
} from './certificate-authority.ts';
import {
  codeOf,
  createFiles,
  type FileOwner,
  fileError,
  isPresent,
  readCertificateFile,
  readKeyFile,
  syncDirectory,
} from './pem-files.ts';

/** The CA that follows, or undefined if there is none. Throws an Error that names the file and what to do. */
export async function readNextAuthority(
  files: CertificateAuthorityFiles,
): Promise<NextAuthority | undefined> {
  const next = rotationFiles(files);
  if (!(await isPresent(next.scheduleFile))) return undefined;
  return { ca: await loadCertificateAuthority(next), signsFrom: await readSchedule(next.scheduleFile) };
}

/** Whether the files of the current CA hold `next` now: another process has completed the rotation. */
export async function hasSucceeded(
  files: CertificateAuthorityFiles,
  { ca }: NextAuthority,
): Promise<boolean> {
  const certificate = new X509Certificate(await readCertificateFile(files.certificateFile));
  return certificate.fingerprint256 === ca.fingerprintSha256;
}

async function readSchedule(file: string): Promise<Date> {
  const date = new Date((await readFile(file, 'utf8')).trim());
  if (!Number.isNaN(date.getTime())) return date;
  throw fileError(file, 'no date in the form of ISO 8601', 'Remove it to end the rotation');
}

/** Creates a CA of the same kind of key; its files belong to `owner`. False if one follows already. */
export async function createNextAuthority(
  files: CertificateAuthorityFiles,
  signsFrom: Date,
  owner?: FileOwner,
): Promise<boolean> {
  const next = rotationFiles(files);
  const current = new X509Certificate(await readCertificateFile(files.certificateFile));
  const keyType = current.publicKey.asymmetricKeyType === 'rsa' ? 'rsa' : 'p256';
  const { certificatePem, privateKeyPem } = createCertificateAuthority({ keyType });
  // The date makes it a rotation: with the other two alone, nothing has begun.
  return createFiles([
    { file: next.keyFile, text: privateKeyPem, mode: 0o600, owner },
    { file: next.certificateFile, text: certificatePem, mode: 0o644, owner },
    { file: next.scheduleFile, text: `${signsFrom.toISOString()}\n`, mode: 0o600, owner },
  ]);
}

/**
 * Puts the next CA in the place of the current one if no leaf of that is valid any more. A call that was killed is completed by the
 * next one: the key goes first. Several processes may call it at once; once it resolves, the files are those of one CA. Returns
 * whether it did.
 */
export async function completeRotation(files: CertificateAuthorityFiles, nowMs: number): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await takePlace(files, nowMs);
    } catch (error) {
      // Another process was faster: it may be at any step, so that all of them are looked at again.
      if (!isAboutMissing(error) || tries === MAX_TRIES) throw error;
    }
  }
}

/** Each failure is a step that another process has taken, and there are three. */
const MAX_TRIES = 5;

function isAboutMissing(error: unknown): boolean {
  return [error, error instanceof Error && error.cause].some((one) => codeOf(one) === 'ENOENT');
}

async function takePlace(files: CertificateAuthorityFiles, nowMs: number): Promise<boolean> {
  const next = rotationFiles(files);
  if (!(await isPresent(next.scheduleFile))) return false;
  const isBegun = !(await isPresent(next.keyFile));
  if (!isBegun && nowMs < (await endOfCurrent(files, next.scheduleFile))) return false;
  if (!isBegun) await rename(next.keyFile, files.keyFile);
  await syncDirectory(dirname(files.keyFile));
  if (await isOf(next.certificateFile, files.keyFile))
    await rename(next.certificateFile, files.certificateFile);
  await syncDirectory(dirname(files.certificateFile));
  await rm(next.scheduleFile, { force: true });
  return true;
}

/** Whether the certificate is there, and is one of the key: a key that somebody removed must not cost the current certificate. */
async function isOf(certificateFile: string, keyFile: string): Promise<boolean> {
  if (!(await isPresent(certificateFile))) return false;
  const certificate = new X509Certificate(await readCertificateFile(certificateFile));
  return certificate.checkPrivateKey(createPrivateKey(await readKeyFile(keyFile)));
}

/** A CA that has ended signs nothing more, and could not be loaded. */
async function endOfCurrent(files: CertificateAuthorityFiles, scheduleFile: string): Promise<number> {
  const tailEnd = (await readSchedule(scheduleFile)).getTime() + TAIL_MS;
  const current = new X509Certificate(await readCertificateFile(files.certificateFile));
  return Math.min(tailEnd, current.validToDate.getTime());
}
