// Unpacks the archive of a source, which a tenant has made, into a directory that it creates.
import { constants } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { readTar } from '../../../base/archive/tar-archive.ts';
import type { TreeLimits, TreeOwner } from '../../../base/archive/file-tree.ts';
import { InputError } from '../../../base/input-error.ts';
import { SourceTree } from './source-tree.ts';

export const sourceLimits: TreeLimits = { maxBytes: 1024 ** 3, maxEntries: 100_000 };

/** A head, records of PAX with a head of their own, and padding. */
const HEAD_BYTES = 2_560;

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

export type Unpacked = { readonly bytes: number; readonly entries: number };

/** Throws an InputError that says which entry cannot be unpacked, and why. Whoever called removes the directory. */
export async function unpackSource(
  archive: AsyncIterable<Uint8Array>,
  directory: string,
  {
    limits = sourceLimits,
    owner,
  }: { readonly limits?: TreeLimits; readonly owner?: TreeOwner | undefined } = {},
): Promise<Unpacked> {
  await mkdir(directory, { mode: 0o700 });
  // By its descriptor: what replaces the directory meanwhile is not written to.
  await using root = await open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const tree = new SourceTree(`/proc/self/fd/${root.fd}`, limits, owner);
  const maxPlainBytes = limits.maxBytes + limits.maxEntries * HEAD_BYTES;
  for await (const entry of readTar(archive, { maxPlainBytes, isGzip: true })) await tree.add(entry);
  if (tree.isEmpty) throw new InputError('The archive is empty');
  await tree.finish();
  if (owner !== undefined) await root.chown(owner.uid, owner.gid);
  return { bytes: tree.bytes, entries: tree.entries };
}
