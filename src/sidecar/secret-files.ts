// Reads secrets from files, directories and descriptors, each within a size limit. Errors name the path, never the content.
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../tls/pem-files.ts';
import {
  ALPHABET,
  type FoundSecret,
  isSecretName,
  parseSecretDocument,
  parseSecretLines,
} from './sandboxes/secret-document.ts';

export const maxSecretBytes = 65_536;
export const maxSecrets = 1_000;

const MAX_DOCUMENT_BYTES = maxSecrets * maxSecretBytes;

/** The secrets of a source, and warnings for the operator. */
export type SecretSource = { readonly found: readonly FoundSecret[]; readonly warnings: readonly string[] };

/**
 * One secret, the whole file. A line end at its end is removed: editors and `echo` write it.
 * `from` stands for the path in messages.
 */
export function readSecretFile(name: string, path: string, from: string = path): FoundSecret {
  return { name, value: readText(path, from, maxSecretBytes + 2).replace(/\r?\n$/, ''), from };
}

/**
 * A mounted directory, one secret a file, named like the file. Symbolic links are followed: in a Kubernetes mount every
 * file is one. Dot entries (`..data`) are skipped silently, other entries that are no secret with a warning.
 */
export function readSecretDirectory(directory: string): SecretSource {
  const found: FoundSecret[] = [];
  const warnings: string[] = [];
  for (const name of reading(directory, () => readdirSync(directory)).toSorted()) {
    const path = join(directory, name);
    if (name.startsWith('.')) continue;
    if (!isSecretName(name)) warnings.push(`${path} is skipped: its name must have ${ALPHABET}`);
    else if (!reading(path, () => statSync(path)).isFile())
      warnings.push(`${path} is skipped: it is not a file`);
    else found.push(readSecretFile(name, path));
  }
  return { found, warnings };
}

/** A file of NAME=value lines. */
export function readSecretLines(path: string): SecretSource {
  const found = parseSecretLines(readText(path, path, MAX_DOCUMENT_BYTES), path);
  return { found, warnings: modeWarnings(path) };
}

/** A warning, not an error: the mode of a mount, for example in Kubernetes, may be one that its user cannot change. */
export function modeWarnings(path: string): readonly string[] {
  const isOpen = (reading(path, () => statSync(path)).mode & 0o077) !== 0;
  return isOpen ? [`${path} can be read by other users: chmod 600 it`] : [];
}

/** A document on an inherited descriptor, read to its end, then closed so that no child inherits it. */
export function readSecretDescriptor(fd: number): SecretSource {
  const source = `descriptor ${fd}`;
  return { found: parseSecretDocument(readText(fd, source, MAX_DOCUMENT_BYTES), source), warnings: [] };
}

function readText(file: string | number, source: string, maxBytes: number): string {
  const bytes = reading(source, () => {
    const fd = typeof file === 'number' ? file : openSync(file, 'r');
    try {
      return readToEnd(fd, maxBytes);
    } finally {
      // The next file to be opened would become standard input.
      if (fd > 0) closeSync(fd);
    }
  });
  if (bytes === undefined) throw new Error(`${source} is larger than ${maxBytes} bytes`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${source} is not UTF-8 text`);
  }
}

// Not readFileSync: the path may be an endless device.
function readToEnd(fd: number, maxBytes: number): Buffer | undefined {
  const chunks: Buffer[] = [];
  const chunk = Buffer.alloc(maxSecretBytes);
  for (let length = 0; length <= maxBytes; ) {
    const read = readSync(fd, chunk);
    if (read === 0) return Buffer.concat(chunks);
    chunks.push(Buffer.from(chunk.subarray(0, read)));
    length += read;
  }
  return undefined;
}

function reading<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unreadable(source, error);
  }
}

// The code alone: the error also holds the path, which may be a secret that was put in the wrong variable.
function unreadable(source: string, error: unknown): Error {
  return new Error(`${source} cannot be read: ${codeOf(error) ?? 'failed'}`);
}
