// `sallyport ca show|bundle|fingerprint|rotate`: the CA certificate of the proxy, for a client that must trust it. Only rotate reads a key.
import { InputError } from '../base/input-error.ts';
import { joinCertificates } from '../tls/public-certificates.ts';
import { systemRoots } from '../tls/system-roots.ts';
import {
  aboutCertificate,
  type ReadAuthority,
  readAuthority,
  readNextCertificate,
} from './ca/certificate-file.ts';
import { parseCommandLine, unexpected } from './command/declaration.ts';
import { caCommand } from './command/inspection-commands.ts';
import { caFiles, readConfig } from './settings.ts';

/** Exit code 0, or 2 for a CA that cannot be read. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, operands } = parseCommandLine(caCommand, args);
  const [what = 'show', ...more] = operands;
  if (what === 'rotate' && more.length === 0) return rotate(values);
  if (values.overlap !== undefined) throw new InputError('--overlap needs rotate: sallyport ca rotate');
  const print = Object.hasOwn(PRINTERS, what) ? PRINTERS[what] : undefined;
  if (print === undefined || more.length > 0)
    throw unexpected(caCommand, print === undefined ? what : (more[0] ?? ''));
  const { json, overlap: _, ...flags } = values;
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const file = caFiles(config).certificateFile;
  const authority = await readAuthority(file);
  const shown = print(authority, await readNextCertificate(file));
  process.stdout.write(
    json
      ? `${JSON.stringify({ ...aboutCertificate(file, authority), ...shown.json }, null, 2)}\n`
      : shown.text,
  );
  return 0;
}

type CaFlags = Parameters<typeof readConfig>[0] & { readonly overlap?: string; readonly json?: boolean };

async function rotate({ json, overlap, ...flags }: CaFlags): Promise<number> {
  const config = await readConfig(flags, process.env);
  if (!config) return 2;
  const { rotateAuthority } = await import('./ca/rotate.ts');
  const { file, fingerprint, signsFrom } = await rotateAuthority(config, overlap);
  const signs_from = signsFrom.toISOString();
  process.stdout.write(
    json
      ? `${JSON.stringify({ file, fingerprint, signs_from }, null, 2)}\n`
      : `The next CA is ${fingerprint} (${file}). It signs from ${signs_from} on.
Until then each client must load the bundle again, which has both certificates: by \`sallyport env\`, /env or /ca-bundle.pem.
`,
  );
  return 0;
}

type Shown = { readonly text: string; readonly json: Readonly<Record<string, unknown>> };

const PRINTERS: Readonly<Record<string, (authority: ReadAuthority, nextPem: string) => Shown>> = {
  show: ({ pem }) => ({ text: pem, json: { pem } }),
  bundle: ({ pem }, nextPem) => {
    const bundle = joinCertificates([pem, nextPem, ...systemRoots()]);
    return { text: bundle, json: { bundle } };
  },
  fingerprint: ({ certificate }) => ({ text: `${certificate.fingerprint256}\n`, json: {} }),
};
