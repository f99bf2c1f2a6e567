// Files that are written once under a name that nobody else has, read and removed: in a directory, or as objects of a bucket. What
// limits them is in the content itself, which throws.
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Readable } from 'node:stream';
import { type Bucket, openBucket } from './object-store.ts';

export type StoredFile = { readonly path: string; readonly size: number; readonly sha256: string };

export type FileStore = {
  /** Below `prefix`, under a new name. Throws what the content throws, and leaves nothing then. */
  write(prefix: string, content: AsyncIterable<Uint8Array>): Promise<StoredFile>;
  /** Rejects, or emits an error, where it is gone. */
  read(path: string): Promise<Readable>;
  /** Also of one that is gone. */
  remove(path: string): Promise<void>;
  /**
   * What was written this long ago or before. What is written is not listed before it can be in the database, and what has another name
   * than those that are given here is not listed: a directory of something else, by mistake, keeps its files.
   */
  list(olderThanMs: number): AsyncIterable<string>;
};

export type FilePlace = {
  /** Of the files of this machine; with a bucket, of what is on its way there. */
  readonly directory: string;
  /** `s3://bucket/prefix` */
  readonly bucket?: string | undefined;
};

export function openFileStore({ directory, bucket }: FilePlace): FileStore {
  return bucket === undefined
    ? createDirectoryStore(directory)
    : createBucketStore(directory, openBucket(bucket, TRANSFER_MS));
}

/** Of one object, which has at most 200 MiB. */
const TRANSFER_MS = 600_000;
/** What is on its way. One that stays was left by a process that was killed. */
const INCOMING = 'incoming';

function createDirectoryStore(directory: string): FileStore {
  return {
    async write(prefix, content) {
      await using incoming = await receive(directory, content);
      const path = `${prefix}/${randomUUID()}`;
      const file = join(directory, path);
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await rename(incoming.file, file);
      await syncDirectory(dirname(file));
      return { path, size: incoming.size, sha256: incoming.sha256 };
    },
    read: async (path) => createReadStream(join(directory, path)),
    remove: (path) => rm(join(directory, path), { force: true }),
    list: (olderThanMs) => listFiles(directory, olderThanMs),
  };
}

function createBucketStore(directory: string, bucket: Bucket): FileStore {
  return {
    async write(prefix, content) {
      // The size of an object is part of its head: it is known when all of it is here.
      await using incoming = await receive(directory, content);
      const path = `${prefix}/${randomUUID()}`;
      await bucket.put(path, createReadStream(incoming.file), incoming.size);
      return { path, size: incoming.size, sha256: incoming.sha256 };
    },
    read: (path) => bucket.open(path),
    remove: (path) => bucket.remove(path),
    async *list(olderThanMs) {
      for await (const file of listFiles(join(directory, INCOMING), olderThanMs))
        await rm(join(directory, INCOMING, file), { force: true });
      const before = Date.now() - olderThanMs;
      for await (const { name, at } of bucket.entries())
        if (at.getTime() <= before && isOurs(name)) yield name;
    },
  };
}

type Incoming = AsyncDisposable & { readonly file: string; readonly size: number; readonly sha256: string };

/** On disk and whole; it is removed unless it was moved. */
async function receive(directory: string, content: AsyncIterable<Uint8Array>): Promise<Incoming> {
  const file = join(directory, INCOMING, randomUUID());
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const dispose = (): Promise<void> => rm(file, { force: true });
  const hash = createHash('sha256');
  let size = 0;
  try {
    await using handle = await open(file, 'wx', 0o600);
    for await (const piece of content) {
      hash.update(piece);
      size += piece.length;
      await handle.writeFile(piece);
    }
    await handle.sync();
  } catch (error) {
    await dispose();
    throw error;
  }
  return { file, size, sha256: hash.digest('hex'), [Symbol.asyncDispose]: dispose };
}

function isOurs(name: string): boolean {
  return /(?:^|\/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name);
}

/** Relative to the directory. */
async function* listFiles(directory: string, olderThanMs: number): AsyncGenerator<string, void, undefined> {
  const before = Date.now() - olderThanMs;
  const entries = await opendir(directory, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (entries === undefined) return;
  for await (const entry of entries) {
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !isOurs(entry.name)) continue;
    const { mtimeMs = Number.POSITIVE_INFINITY } = (await stat(file).catch(() => undefined)) ?? {};
    if (mtimeMs <= before) yield relative(directory, file);
  }
}

async function syncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, 'r');
  await handle.sync();
}
