// The CA of `sallyport proxy`: the current one and the one that follows it, from their files, and the warning before it ends.
import { dirname } from 'node:path';
import { readInput } from '../../base/input-error.ts';
import type { Sidecar } from '../../sidecar/sidecar.ts';
import {
  createRotatingAuthority,
  expiryWarning,
  type NextAuthority,
  type RotatingAuthority,
  rotationFiles,
} from '../../tls/authority-rotation.ts';
import {
  type CertificateAuthorityFiles,
  loadOrCreateCertificateAuthority,
} from '../../tls/certificate-authority.ts';
import { codeOf, isPresent } from '../../tls/pem-files.ts';
import { writingTo } from '../settings.ts';

/** Creates the CA if there is none, and ends a rotation that is over. Throws an Error that names the file and what to do. */
export async function openAuthority(files: CertificateAuthorityFiles): Promise<RotatingAuthority> {
  const rotation = await loadRotation(files);
  await readInput(() => rotation?.completeRotation(files, Date.now()).catch(ignoreReadOnly));
  const { ca } = await writingTo(dirname(files.keyFile), () => loadOrCreateCertificateAuthority(files));
  const rotating = createRotatingAuthority(ca);
  rotating.follow(await readInput(() => readNext(files)));
  return rotating;
}

/** Loaded where there is a rotation: few starts have one. */
async function loadRotation(files: CertificateAuthorityFiles) {
  const isBegun = await isPresent(rotationFiles(files).scheduleFile);
  return isBegun ? import('../../tls/rotation-files.ts') : undefined;
}

async function readNext(files: CertificateAuthorityFiles): Promise<NextAuthority | undefined> {
  return (await loadRotation(files))?.readNextAuthority(files);
}

/** Files of a mounted secret are replaced by whoever mounts them; until then the dates decide as before. */
function ignoreReadOnly(error: unknown): void {
  if (!['EROFS', 'EACCES', 'EPERM', 'EBUSY'].includes(String(codeOf(error)))) throw error;
}

/** Reads again which CA follows. `publish` is called, and awaited, if that has changed. */
export async function refreshAuthority(
  sidecar: Sidecar,
  ca: RotatingAuthority,
  { files, publish }: { readonly files: CertificateAuthorityFiles; publish(): Promise<void> },
): Promise<void> {
  const before = ca.trustedPem;
  const next = await readNext(files);
  const known = ca.next;
  if (known !== undefined && known.ca.fingerprintSha256 !== next?.ca.fingerprintSha256) {
    const { hasSucceeded } = await import('../../tls/rotation-files.ts');
    if (await hasSucceeded(files, known)) ca.succeed();
  }
  ca.follow(next);
  sidecar.refuseUpstreamsOf(next?.ca);
  if (ca.trustedPem === before) return;
  await publish();
  const about = next && { fingerprint: next.ca.fingerprintSha256, signs_from: next.signsFrom.toISOString() };
  sidecar.log.info({ next: about }, next ? 'the next CA is published' : 'no CA follows any more');
}

const DAY_MS = 24 * 3_600_000;

/** Now and once a day, in the last 30 days of the CA that signs. */
export function warnOfExpiry(sidecar: Sidecar, ca: RotatingAuthority): Disposable {
  const look = (): void => {
    const warning = ca.next === undefined ? expiryWarning(ca.notAfter, Date.now()) : undefined;
    if (warning !== undefined) sidecar.log.warn(warning);
  };
  look();
  const timer = setInterval(look, DAY_MS);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
