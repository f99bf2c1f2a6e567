// Writes the files of programs that read no variable with the path of a CA bundle, or no CA bundle in PEM: wget, apt, PHP,
// Java, and Node's preload. program-variables.ts sets the variables that point to these files.
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../../tls/pem-files.ts';
import { blockToDer, certificateBlocks } from '../../tls/pem.ts';
import { agentPreload } from './node-preload.ts';
import type { Program } from './programs.ts';
import { writePublicFile } from './public-files.ts';
import { encodeTruststore } from './truststore.ts';

/** Paths. A file that is undefined is not wanted, or cannot be used by its program. */
export type ProgramFiles = {
  readonly wgetrc: string | undefined;
  readonly aptConfig: string | undefined;
  /** With one file of settings. */
  readonly phpDirectory: string | undefined;
  readonly truststore: string | undefined;
  readonly agentPreload: string | undefined;
};

export const noProgramFiles: ProgramFiles = {
  wgetrc: undefined,
  aptConfig: undefined,
  phpDirectory: undefined,
  truststore: undefined,
  agentPreload: undefined,
};

type Sources = {
  readonly bundleFile: string;
  readonly bundlePem: string;
  readonly wanted: ReadonlySet<Program>;
  readonly caller: NodeJS.ProcessEnv;
};

const WITH_FILES: readonly Program[] = ['apt', 'java', 'node', 'php', 'wget'];

// Each of these has a meaning in one of the files, or in a variable that names one.
const SPECIAL = /[\s\p{Cc}"'\\$;:#%{}]/u;

/** Writes the files beside the bundle. */
export async function writeProgramFiles(sources: Sources) {
  const { bundleFile, bundlePem, wanted } = sources;
  const directory = dirname(bundleFile);
  if (!WITH_FILES.some((program) => wanted.has(program))) return { files: noProgramFiles, warnings: [] };
  if (SPECIAL.test(bundleFile)) {
    const warning = `${directory} has characters that wget, apt, PHP, Java and NODE_OPTIONS cannot read: their variables are not set`;
    return { files: noProgramFiles, warnings: [warning] };
  }
  const warnings: string[] = [];
  const write = (name: string, extension: string, content: string | Uint8Array): Promise<string> =>
    writePublicFile(directory, { name, extension, content });
  const wgetrc = wanted.has('wget') ? await wgetSettings(sources, warnings) : undefined;
  const files: ProgramFiles = {
    wgetrc: wgetrc === undefined ? undefined : await write('wgetrc', 'conf', wgetrc),
    aptConfig: wanted.has('apt')
      ? await write('apt', 'conf', `Acquire::https::CAInfo "${bundleFile}";\n`)
      : undefined,
    phpDirectory: wanted.has('php') ? await writePhpSettings(bundleFile) : undefined,
    truststore: wanted.has('java')
      ? await write('truststore', 'p12', encodeTruststore(certificateBlocks(bundlePem).map(blockToDer)))
      : undefined,
    agentPreload: wanted.has('node') ? await write('agent-preload', 'cjs', agentPreload) : undefined,
  };
  return { files, warnings };
}

/** PHP reads every .ini file of a directory, so it has one of its own for each bundle. */
async function writePhpSettings(bundleFile: string): Promise<string> {
  const directory = join(dirname(bundleFile), `php-${basename(bundleFile, '.pem')}`);
  const content = `curl.cainfo="${bundleFile}"\nopenssl.cafile="${bundleFile}"\n`;
  await writePublicFile(directory, { name: 'ca', extension: 'ini', content });
  return directory;
}

// A line that Sallyport added to a file that is the caller's now.
const OUR_BUNDLE = /^ca_certificate = \S*\/ca-bundle-[0-9a-f]{16}\.pem\n/gm;

/** The system's settings, which the variable replaces, with the bundle. The user's own file is read after them. */
async function wgetSettings(
  { bundleFile, caller }: Sources,
  warnings: string[],
): Promise<string | undefined> {
  const named = caller['SYSTEM_WGETRC'];
  const file = named === undefined || named === '' ? '/etc/wgetrc' : named;
  try {
    // They may have a password, and the copy is readable by other users.
    if (((await stat(file)).mode & 0o004) === 0) {
      warnings.push(
        `wget: other users cannot read ${file}, so it is not copied and SYSTEM_WGETRC is not set`,
      );
      return undefined;
    }
    const settings = (await readFile(file, 'utf8')).replaceAll(OUR_BUNDLE, '');
    // Its mode says nothing if it is in a directory that is closed to others.
    if (file === named && holdsCredential(settings)) {
      warnings.push(
        `wget: ${file} has a password, a header, cookies or a login, so it is not copied and SYSTEM_WGETRC is not set`,
      );
      return undefined;
    }
    const isWhole = settings === '' || settings.endsWith('\n');
    return `${settings}${isWhole ? '' : '\n'}ca_certificate = ${bundleFile}\n`;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || named !== undefined)
      warnings.push(`wget: ${file} cannot be read (${codeOf(error)}), so its settings are left out`);
    return `ca_certificate = ${bundleFile}\n`;
  }
}

/** wget ignores case, hyphens and underscores in the names of settings. */
function holdsCredential(settings: string): boolean {
  if (/:\/\/[^/\s]*@/.test(settings)) return true;
  const names = settings.split('\n').map((line) => line.split('=', 1)[0] ?? '');
  return names.some((name) => /^(?:header|.*(?:passw|cookie).*)$/i.test(name.replaceAll(/[\s_-]/g, '')));
}
