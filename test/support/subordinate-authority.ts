// A proxy CA that is signed by a company root, which clients trust.
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CertificateAuthority, loadCertificateAuthority } from '../../src/tls/certificate-authority.ts';
import { runProgram } from '../tls/external-program.ts';
import { createScratch } from './scratch.ts';

/** A CA signed by a root, with the certificate of that root. */
export async function createSubordinate(): Promise<{
  readonly ca: CertificateAuthority;
  readonly rootPem: string;
}> {
  await using scratch = await createScratch();
  const at = (name: string): string => join(scratch.path, name);
  const curve = ['-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const asCa = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'];
  const issuers = { root: [], ca: ['-CA', at('root.pem'), '-CAkey', at('root.key')] };
  for (const [name, issuer] of Object.entries(issuers)) {
    const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.pem`)];
    await runProgram('openssl', [
      'req',
      '-x509',
      '-subj',
      `/CN=${name}`,
      ...curve,
      ...asCa,
      ...issuer,
      ...files,
    ]);
  }
  await chmod(at('ca.key'), 0o600);
  const ca = await loadCertificateAuthority({ certificateFile: at('ca.pem'), keyFile: at('ca.key') });
  return { ca, rootPem: await readFile(at('root.pem'), 'utf8') };
}
