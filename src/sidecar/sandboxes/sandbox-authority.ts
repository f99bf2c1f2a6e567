// The CA that a document wants for a sandbox, in place of that of the process: generated here, or handed over by the parent
// process that keeps it.
import { type Parsed, z } from '../../base/schema.ts';
import { Secret } from '../../base/secret.ts';
import { createCertificateAuthority } from '../../tls/certificate-authority.ts';
import { type SandboxAuthority, loadAuthority } from '../state/sandbox-state.ts';

const OWN = 'own';
/** `own`: generate one. */
export type WantedAuthority = SandboxAuthority | typeof OWN | undefined;

// Of RSA with 4096 bits, less than 4 KiB each.
const pem = z.string().max(16_384);

export const wantedAuthority = z.union(
  [
    z.literal(OWN),
    z
      .strictObject({ certificate_pem: pem, private_key_pem: pem.transform((text) => new Secret(text)) })
      .transform(
        (given): SandboxAuthority => ({ certificatePem: given.certificate_pem, key: given.private_key_pem }),
      ),
  ],
  `must be "${OWN}", or an object of certificate_pem and private_key_pem`,
);

/** What a sandbox is to be created with; undefined: the CA of the process. */
export function chooseAuthority(wanted: WantedAuthority): Parsed<SandboxAuthority | undefined> {
  if (wanted === OWN) {
    const { certificatePem, privateKeyPem } = createCertificateAuthority();
    return { ok: true, value: { certificatePem, key: new Secret(privateKeyPem) } };
  }
  const loaded = wanted && loadAuthority(wanted);
  const isUsable = loaded === undefined || 'spkiSha256' in loaded;
  return isUsable ? { ok: true, value: wanted } : { ok: false, issues: [...loaded] };
}
