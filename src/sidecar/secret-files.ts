// Reads secrets from files, directories and descriptors, each within a bound. It judges no value but the proxy token's.
// Errors name the path and never the content.
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from './config.ts';
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

/** What a source gave, and what the operator should know about the rest. */
export type SecretSource = { readonly found: readonly FoundSecret[]; readonly warnings: readonly string[] };

/**
 * One secret, the whole file. One line end at its end is removed: editors and `echo` write it, nobody means it.
 * `from` stands for the path in messages.
 */
export function readSecretFile(name: string, path: string, from: string = path): FoundSecret {
  return { name, value: readText(path, from, maxSecretBytes + 2).replace(/\r?\n$/, ''), from };
}

/** The token that clients of the proxy show. As text, unlike a workspace's secret, since clients are to be told of it. */
export function readProxyToken(path: string): string {
  const { value } = readSecretFile('proxy token', path);
  if (value.length < MIN_TOKEN_CHARS)
    throw new Error(`${path}: the proxy token should have at least ${MIN_TOKEN_CHARS} characters`);
  return value;
}

export const MIN_TOKEN_CHARS = 16;

/** What the operator should know of the proxy token's file. */
export function tokenWarnings({ auth }: Pick<Config, 'auth'>): readonly string[] {
  return auth === undefined || auth === 'none' ? [] : exposureWarnings(auth.tokenFile);
}

/**
 * A mounted directory, one secret a file, named by the file. Symbolic links are followed: in a Kubernetes mount every
 * file is one. Dot entries (its `..data`) are skipped silently, others that are no secret with a warning.
 */
export function readSecretDirectory(directory: string): SecretSource {
  const found: FoundSecret[] = [];
  const warnings: string[] = [];
  for (const name of reading(directory, () => readdirSync(directory)).toSorted()) {
    const path = join(directory, name);
    if (name.startsWith('.')) continue;
    if (!isSecretName(name)) warnings.push(`${path} is skipped: its name should be of ${ALPHABET}`);
    else if (!reading(path, () => statSync(path)).isFile())
      warnings.push(`${path} is skipped: it is not a file`);
    else found.push(readSecretFile(name, path));
  }
  return { found, warnings };
}

/** A file of NAME=value lines. */
export function readSecretLines(path: string): SecretSource {
  const found = parseSecretLines(readText(path, path, MAX_DOCUMENT_BYTES), path);
  return { found, warnings: exposureWarnings(path) };
}

/** Not refused: a mount, Kubernetes' among them, may give a mode that its user cannot change. */
function exposureWarnings(path: string): readonly string[] {
  const isOpen = (reading(path, () => statSync(path)).mode & 0o077) !== 0;
  return isOpen ? [`${path} can be read by other users: chmod 600 it`] : [];
}

/** A document on an inherited descriptor, read to its end. Then it is closed, so that no child inherits it. */
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
  if (bytes === undefined) throw new Error(`${source} holds more than ${maxBytes} bytes`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error(`${source} is not UTF-8 text`);
  }
}

// Not readFileSync: a mount may hold anything, an endless device among it.
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
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed';
  return new Error(`${source} cannot be read: ${code}`);
}
