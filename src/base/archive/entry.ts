// What an archive or a directory is read as, and which names and links it may have. Pure. An archive is input of a tenant:
// nothing in it may lead outside of the directory that it is written to, whatever reads that later.
import { InputError } from '../input-error.ts';

export type ArchiveEntry = {
  /** As written in the source. */
  readonly path: string;
  readonly modifiedMs: number;
} & (
  | { readonly kind: 'directory' }
  | { readonly kind: 'file'; readonly isExecutable: boolean; readonly content: AsyncIterable<Uint8Array> }
  | { readonly kind: 'symlink'; readonly target: string }
  /** Another name of a file that came before. */
  | { readonly kind: 'hardlink'; readonly target: string }
);

const MAX_NAME_BYTES = 255;
const MAX_PATH_BYTES = 4_095;
const MAX_DEPTH = 128;

/** The path from the root, without `.`; empty for the root itself. */
export function parseEntryPath(path: string): string {
  if (path.startsWith('/')) throw refusal(path, 'is absolute: name it relative to the root');
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) throw refusal(path, 'leads outside of the root');
  if (path.includes('\0')) throw refusal(path, 'contains a NUL');
  if (names.length > MAX_DEPTH) throw refusal(path, `has more than ${MAX_DEPTH} directories`);
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES))
    throw refusal(path, `has a name of more than ${MAX_NAME_BYTES} bytes`);
  const parsed = names.join('/');
  if (Buffer.byteLength(parsed) > MAX_PATH_BYTES)
    throw refusal(path, `has more than ${MAX_PATH_BYTES} bytes`);
  return parsed;
}

/**
 * An absolute target starts at the root, as it does in the box that a snapshot becomes. A relative one must not climb above
 * it: for a program of the host it would name a file of the host.
 */
export function checkLinkTarget(path: string, target: string): void {
  if (target === '' || target.includes('\0') || Buffer.byteLength(target) > MAX_PATH_BYTES)
    throw refusal(path, 'is a link with an invalid target');
  let depth = target.startsWith('/') ? 0 : path.split('/').length - 1;
  for (const name of target.split('/')) {
    if (name === '..') depth -= 1;
    else if (name !== '' && name !== '.') depth += 1;
    if (depth < 0) throw refusal(path, 'is a link that leads outside of the root');
  }
}

/** The path is quoted as JSON, so that no control character of it reaches a terminal. */
export function refusal(path: string, reason: string, cause?: unknown): InputError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new InputError(`The entry ${JSON.stringify(shown)} ${reason}`, { cause });
}
