// The CA certificate of the proxy as its file has it, for the commands that show or use it.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { InputError } from '../../base/input-error.ts';
import { rotationFiles } from '../../tls/authority-rotation.ts';
import { certificateBlocks } from '../../tls/pem.ts';
import { codeOf } from '../../tls/pem-files.ts';

export type ReadAuthority = { readonly pem: string; readonly certificate: X509Certificate };

/** The first certificate of `file`; throws an InputError that says what to do. */
export async function readAuthority(file: string): Promise<ReadAuthority> {
  const hint = 'start `sallyport proxy` first, or set its --state-dir';
  const [pem] = certificateBlocks(await readCaFile(file, hint));
  if (pem === undefined) throw new InputError(`${file} contains no PEM certificate`);
  try {
    return { pem: `${pem.trim()}\n`, certificate: new X509Certificate(pem) };
  } catch (cause) {
    throw new InputError(`${file} contains no valid certificate`, { cause });
  }
}

/** The text of the CA certificate; throws an InputError with `hint`. */
export async function readCaFile(file: string, hint: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new InputError(`the CA certificate ${file} cannot be read (${codeOf(cause)}): ${hint}`, { cause });
  }
}

/** The certificate of the CA that follows that of `file`, as text; empty if none does. */
export async function readNextCertificate(file: string): Promise<string> {
  try {
    return await readFile(rotationFiles({ certificateFile: file, keyFile: '' }).certificateFile, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return '';
    throw error;
  }
}

/** What is public about the certificate. */
export function aboutCertificate(file: string, { certificate }: ReadAuthority) {
  const { subject, fingerprint256, validFrom, validTo } = certificate;
  return { file, subject, fingerprint: fingerprint256, valid_from: validFrom, valid_to: validTo };
}
