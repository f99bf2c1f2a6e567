// The files of CA certificates for clients: written for one caller, with the certificates that the caller's variables
// already name, or those that the proxy published. client-environment.ts sets the variables that point to them.
import { readFile } from 'node:fs/promises';
import { InputError } from '../../base/input-error.ts';
import { readPublishedBundle } from '../../sidecar/state/published-bundle.ts';
import { codeOf } from '../../tls/pem-files.ts';
import { certificateBlocks } from '../../tls/pem.ts';
import { joinCertificates } from '../../tls/public-certificates.ts';
import { systemRoots } from '../../tls/system-roots.ts';
import { bundleVariables, extraVariable } from '../../tls/trust-variables.ts';
import { writePublicFile } from './public-files.ts';

export type TrustFiles = {
  /** Replaces a client's roots. */
  readonly bundleFile: string;
  /** Adds to a client's roots. */
  readonly extraFile: string;
  /** For the user. */
  readonly warnings: readonly string[];
};

/** Writes both files into `directory`; see writePublicFile(). */
export async function writeTrustFiles(
  directory: string,
  { caPem, caller }: { readonly caPem: string; readonly caller: NodeJS.ProcessEnv },
): Promise<TrustFiles & { readonly bundlePem: string }> {
  const warnings: string[] = [];
  const bundles = await readCallers(bundleVariables, caller, warnings);
  const extra = await readCallers([extraVariable], caller, warnings);
  const bundlePem = joinCertificates([caPem, ...systemRoots(), ...bundles]);
  return {
    bundlePem,
    bundleFile: await writePublicFile(directory, {
      name: 'ca-bundle',
      extension: 'pem',
      content: bundlePem,
    }),
    extraFile: await writePublicFile(directory, {
      name: 'ca-extra',
      extension: 'pem',
      content: joinCertificates([caPem, ...extra]),
    }),
    warnings,
  };
}

/** The files of the proxy's state directory; no file is written. Throws an InputError if the proxy has not written them. */
export async function publishedTrustFiles(
  published: { readonly certificateFile: string; readonly bundleFile: string },
  {
    caPem,
    nextPem = '',
    caller,
  }: { readonly caPem: string; readonly nextPem?: string; readonly caller: NodeJS.ProcessEnv },
): Promise<TrustFiles> {
  const { certificateFile, bundleFile } = published;
  const isFollowed = nextPem !== '';
  const next = isFollowed ? await readPublishedBundle(bundleFile, nextPem) : undefined;
  const bundle = next ?? (await readPublishedBundle(bundleFile, caPem));
  if (bundle === undefined)
    throw new InputError(
      `${bundleFile} is missing, cannot be read or is of another CA: start the proxy again, or give --write DIR`,
    );
  const known = new Set(certificateBlocks(bundle));
  const warnings: string[] = [];
  if (isFollowed && next === undefined)
    warnings.push(
      `${bundleFile} lacks the next CA of \`sallyport ca rotate\`: send SIGHUP to the proxy, then run this again before that CA signs`,
    );
  // The other file has the current CA alone.
  const extraFile = next === undefined ? certificateFile : bundleFile;
  for (const [file, name] of filesNamedBy([...bundleVariables, extraVariable], caller)) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (!certificateBlocks(text).every((block) => known.has(block)))
      warnings.push(`${name}: ${file} has certificates that are left out: give --write DIR to include them`);
  }
  return { bundleFile, extraFile, warnings };
}

/** Each file that one of the variables names, with the first of them. */
function filesNamedBy(names: readonly string[], caller: NodeJS.ProcessEnv): ReadonlyMap<string, string> {
  const namedBy = new Map<string, string>();
  for (const name of names) {
    const file = caller[name];
    if (file !== undefined && file !== '' && !namedBy.has(file)) namedBy.set(file, name);
  }
  return namedBy;
}

async function readCallers(names: readonly string[], caller: NodeJS.ProcessEnv, warnings: string[]) {
  const texts: string[] = [];
  for (const [file, name] of filesNamedBy(names, caller)) {
    try {
      texts.push(await readFile(file, 'utf8'));
    } catch (error) {
      warnings.push(`${name}: ${file} cannot be read (${codeOf(error)}), so its certificates are left out`);
    }
  }
  return texts;
}
