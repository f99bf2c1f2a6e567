// `sallyport ca show|bundle|fingerprint`: the CA certificate of the proxy, for a client that must trust it. Reads no key.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { InputError } from '../base/input-error.ts';
import { certificateBlocks } from '../tls/pem.ts';
import { codeOf } from '../tls/pem-files.ts';
import { joinCertificates } from '../tls/public-certificates.ts';
import { systemRoots } from '../tls/system-roots.ts';
import { parseCommandLine, unexpected } from './command/declaration.ts';
import { caCommand } from './command/inspection-commands.ts';
import { caFiles, readConfig } from './settings.ts';

/** Exit code 0, or 2 for a CA that cannot be read. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, operands } = parseCommandLine(caCommand, args);
  const [what = 'show', ...more] = operands;
  const print = Object.hasOwn(PRINTERS, what) ? PRINTERS[what] : undefined;
  if (print === undefined || more.length > 0)
    throw unexpected(caCommand, print === undefined ? what : (more[0] ?? ''));
  const { json, ...flags } = values;
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const file = caFiles(config).certificateFile;
  const authority = await readAuthority(file);
  const shown = print(authority);
  process.stdout.write(
    json
      ? `${JSON.stringify({ ...aboutCertificate(file, authority), ...shown.json }, null, 2)}\n`
      : shown.text,
  );
  return 0;
}

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

type Shown = { readonly text: string; readonly json: Readonly<Record<string, unknown>> };

const PRINTERS: Readonly<Record<string, (authority: ReadAuthority) => Shown>> = {
  show: ({ pem }) => ({ text: pem, json: { pem } }),
  bundle: ({ pem }) => {
    const bundle = joinCertificates([pem, ...systemRoots()]);
    return { text: bundle, json: { bundle } };
  },
  fingerprint: ({ certificate }) => ({ text: `${certificate.fingerprint256}\n`, json: {} }),
};

/** What is public about the certificate. */
export function aboutCertificate(file: string, { certificate }: ReadAuthority) {
  const { subject, fingerprint256, validFrom, validTo } = certificate;
  return { file, subject, fingerprint: fingerprint256, valid_from: validFrom, valid_to: validTo };
}
