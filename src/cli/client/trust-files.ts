// Writes the files of CA certificates for clients: the proxy's CA, the system's, and those that the caller's variables
// already name. client-environment.ts sets the variables that point to these files.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, createFiles, readCertificateFile } from '../../tls/pem-files.ts';
import { certificateBlocks } from '../../tls/pem.ts';
import { systemRoots } from '../../tls/system-roots.ts';
import { bundleVariables, extraVariable } from '../../tls/trust-variables.ts';

/**
 * Writes both files into `directory`, which is created with mode 0700 if needed. Their names are derived from their
 * content, so a file never changes under a running client. Throws if a file of that name has other content.
 */
export async function writeTrustFiles(
  directory: string,
  { caPem, caller }: { readonly caPem: string; readonly caller: NodeJS.ProcessEnv },
) {
  const warnings: string[] = [];
  const bundles = await readCallers(bundleVariables, caller, warnings);
  const extra = await readCallers([extraVariable], caller, warnings);
  return {
    /** Replaces a client's roots. */
    bundleFile: await writeBlocks(directory, 'ca-bundle', [caPem, ...systemRoots(), ...bundles]),
    /** Adds to a client's roots. */
    extraFile: await writeBlocks(directory, 'ca-extra', [caPem, ...extra]),
    warnings,
  };
}

async function readCallers(names: readonly string[], caller: NodeJS.ProcessEnv, warnings: string[]) {
  const texts: string[] = [];
  const namedBy = new Map<string, string>();
  for (const name of names) {
    const file = caller[name];
    if (file !== undefined && file !== '' && !namedBy.has(file)) namedBy.set(file, name);
  }
  for (const [file, name] of namedBy) {
    try {
      texts.push(await readFile(file, 'utf8'));
    } catch (error) {
      warnings.push(`${name}: ${file} cannot be read (${codeOf(error)}), so its certificates are left out`);
    }
  }
  return texts;
}

async function writeBlocks(directory: string, name: string, texts: readonly string[]): Promise<string> {
  const text = joinCertificates(texts);
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const file = join(directory, `${name}-${digest}.pem`);
  const isMade = await createFiles([{ file, text, mode: 0o644 }]);
  if (!isMade && (await readCertificateFile(file)) !== text)
    throw new Error(`${file} has other content than Sallyport wrote: remove it`);
  return file;
}

/** Each certificate once. Only certificates: a caller's file may hold a private key beside them. */
function joinCertificates(texts: readonly string[]): string {
  const blocks = texts.flatMap(certificateBlocks);
  return [...new Set(blocks.map((block) => `${block.replaceAll('\r', '')}\n`))].join('');
}
