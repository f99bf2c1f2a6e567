// The CA certificates of this machine as PEM texts. On Linux the files that OpenSSL reads are read here: each root is
// there two or three times, and OpenSSL parses every copy, which takes a tenth of the start.
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { InputError } from '../base/input-error.ts';
import { certificateBlocks } from './pem.ts';

/** Where the OpenSSL that is part of Node looks, unless these variables name another file or directory. */
export type RootLocations = { readonly file: string; readonly directory: string };

/**
 * One certificate each: the system's roots, or where it has none Node's own. Throws an InputError where reading them could
 * block the process.
 */
export function systemRoots(): readonly string[] {
  const locations = locationsOf(process.env);
  const found = hasOwnOpenSsl() ? readRoots(locations) : undefined;
  if (found !== undefined && found.length > 0) return found;
  checkFiles(locations);
  const system = getCACertificates('system');
  return system.length > 0 ? system : getCACertificates('bundled');
}

/**
 * The certificates in the file and in the files of the directory, each once. A file that cannot be read is skipped.
 * Undefined if one has anything else that begins like a block of PEM: only OpenSSL knows what it reads there, and where it
 * stops.
 */
export function readRoots({ file, directory }: RootLocations): readonly string[] | undefined {
  const roots = new Set<string>();
  for (const each of [file, ...rootFiles(directory)]) {
    const text = readRegularFile(each);
    const blocks = certificateBlocks(text);
    const areAll = blocks.every((block) => roots.has(block) || isCertificate(block));
    if (text.split('-----BEGIN').length - 1 !== blocks.length || !areAll) return undefined;
    for (const block of blocks) roots.add(block);
  }
  return [...roots];
}

/** OpenSSL opens every file of these names, and waits for ever for a writer to a named pipe or for the end of a device. */
function checkFiles({ file, directory }: RootLocations): void {
  for (const each of [file, ...rootFiles(directory)]) {
    const stats = quietly(() => statSync(each));
    if (stats?.isFIFO() || (stats?.isCharacterDevice() && stats.rdev !== statSync('/dev/null').rdev))
      throw new InputError(
        `the trusted roots cannot be read: ${each} is not a regular file; remove it, or set SSL_CERT_FILE and SSL_CERT_DIR`,
      );
  }
}

/** OpenSSL's own opinion of the block. */
function isCertificate(block: string): boolean {
  return quietly(() => new X509Certificate(block)) !== undefined;
}

/** Node of a Linux distribution may have the OpenSSL of that distribution, which has directories of its own. */
function hasOwnOpenSsl(): boolean {
  return process.platform === 'linux' && process.config.variables.node_shared_openssl === false;
}

function locationsOf(env: NodeJS.ProcessEnv): RootLocations {
  return {
    file: env['SSL_CERT_FILE'] ?? '/etc/ssl/cert.pem',
    directory: env['SSL_CERT_DIR'] ?? '/etc/ssl/certs',
  };
}

// OpenSSL finds a certificate by the hash of its subject: a link of that name to the file, which is read anyway.
const HASH_LINK = /^[0-9a-f]{8}\.\d+$/;

function rootFiles(directory: string): readonly string[] {
  const names = quietly(() => readdirSync(directory)) ?? [];
  const listed = new Set(names);
  const isCopy = (name: string): boolean =>
    HASH_LINK.test(name) && listed.has(quietly(() => readlinkSync(join(directory, name))) ?? '');
  return names.filter((name) => !isCopy(name)).map((name) => join(directory, name));
}

function readRegularFile(file: string): string {
  // A named pipe would block.
  return quietly(() => (statSync(file).isFile() ? readFileSync(file, 'latin1') : '')) ?? '';
}

/** OpenSSL ignores what it cannot read here too: without a root, an upstream is rejected. */
function quietly<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
