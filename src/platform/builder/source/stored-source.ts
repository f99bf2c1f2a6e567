// Reads an uploaded source and unpacks it. What arrives must be what was uploaded.
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { TreeOwner } from '../../../base/archive/file-tree.ts';
import { InputError } from '../../../base/input-error.ts';
import type { SourceStore } from '../../deployments/source-store.ts';
import { BuildError } from '../build-error.ts';
import { type Unpacked, unpackSource } from './unpack.ts';

/** Undefined: it was never uploaded. */
export type StoredSource = { readonly path: string | undefined; readonly sha256: string | undefined };

/** Rejects with a BuildError for a source that cannot be unpacked, and with the reason of the signal. */
export async function unpackStoredSource(
  store: Pick<SourceStore, 'read'>,
  { path, sha256 }: StoredSource,
  {
    directory,
    owner,
    signal,
  }: { readonly directory: string; readonly owner: TreeOwner | undefined; readonly signal: AbortSignal },
): Promise<Unpacked> {
  if (path === undefined || sha256 === undefined) throw failed('The source was not uploaded');
  const hash = createHash('sha256');
  const read = async function* (stream: Readable): AsyncGenerator<Uint8Array> {
    for await (const piece of stream) {
      signal.throwIfAborted();
      hash.update(piece as Uint8Array);
      yield piece as Uint8Array;
    }
  };
  try {
    const unpacked = await unpackSource(read(await store.read(path)), directory, { owner });
    if (hash.digest('hex') !== sha256)
      throw failed('The stored source is not what was uploaded: upload it again');
    return unpacked;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof InputError) throw failed(error.message, error);
    if (isAbsent(error)) throw failed('The source is not there any more: upload it again', error);
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  return code === 'ENOENT' || name === 'NoSuchKey' || name === 'NotFound';
}

function failed(message: string, cause?: unknown): BuildError {
  return new BuildError('CREATE_FAILED', message, { cause });
}
