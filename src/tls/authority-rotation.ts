// One CA that follows another. In the overlap clients get both certificates and the current CA signs, because clients that loaded
// the certificate before know it alone. Then the next one signs, and both are handed out until the last leaf of the first has ended.
import type { CertificateAuthority, CertificateAuthorityFiles } from './certificate-authority.ts';

export type NextAuthority = { readonly ca: CertificateAuthority; readonly signsFrom: Date };

export type RotatingAuthority = CertificateAuthority & {
  /** Publishes the next CA, which signs from its date on. Replaces one that was to follow; undefined: none follows. */
  follow(next: NextAuthority | undefined): void;
  /** The next CA has taken the place of the current one for good: another may follow it. */
  succeed(): void;
  readonly next: NextAuthority | undefined;
};

/** What was signed last before the date is current until then: the life of a leaf, from its backdated beginning. */
export const TAIL_MS: number = 72 * 3_600_000;
/** From then on a warning asks for a rotation. */
export const EXPIRY_WARNING_MS: number = 30 * 24 * 3_600_000;

export function createRotatingAuthority(
  first: CertificateAuthority,
  now: () => number = Date.now,
): RotatingAuthority {
  let current = first;
  let next: NextAuthority | undefined;
  const signing = (): CertificateAuthority =>
    next !== undefined && now() >= next.signsFrom.getTime() ? next.ca : current;
  const isCurrentTrusted = (): boolean => next === undefined || now() < next.signsFrom.getTime() + TAIL_MS;
  return {
    get certificatePem() {
      return signing().certificatePem;
    },
    get certificateDer() {
      return signing().certificateDer;
    },
    get fingerprintSha256() {
      return signing().fingerprintSha256;
    },
    get spkiSha256() {
      return signing().spkiSha256;
    },
    get notAfter() {
      return signing().notAfter;
    },
    get trustedPem() {
      const pem = isCurrentTrusted() ? current.certificatePem : '';
      return pem + (next?.ca.certificatePem ?? '');
    },
    get own() {
      return next === undefined ? [current] : [current, next.ca];
    },
    get next() {
      return next;
    },
    issueLeaf: (subject, at) => signing().issueLeaf(subject, at),
    follow(following) {
      next = following;
    },
    succeed() {
      current = next?.ca ?? current;
      next = undefined;
    },
  };
}

/** What the operator must do, or undefined if the CA is valid for long enough. */
export function expiryWarning(notAfter: Date, nowMs: number): string | undefined {
  const leftMs = notAfter.getTime() - nowMs;
  if (leftMs > EXPIRY_WARNING_MS) return undefined;
  const days = Math.max(0, Math.floor(leftMs / (24 * 3_600_000)));
  return `the CA certificate ends in ${days} days, on ${notAfter.toISOString()}: create the next one by \`sallyport ca rotate\`, or replace the files of your own`;
}

/** Beside those of the current CA: those of the next one, and the date from which it signs. */
export type RotationFiles = CertificateAuthorityFiles & { readonly scheduleFile: string };

export function rotationFiles({ certificateFile, keyFile }: CertificateAuthorityFiles): RotationFiles {
  return {
    certificateFile: `${certificateFile}.next`,
    keyFile: `${keyFile}.next`,
    scheduleFile: `${keyFile}.rotation`,
  };
}
