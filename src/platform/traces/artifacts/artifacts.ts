// Where the contents of attachments are: files of a directory, or objects of a bucket. Their names are random, so that nothing that a
// client sends becomes a path. A content without a row in the database is removed: at once where its request fails, else by a sweep.
import { isAbsolute, join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { DomainError } from '../../../base/domain-error.ts';
import type { Reader } from '../../store/database.ts';
import { type FilePlace, type FileStore, openFileStore } from '../../store/files/file-store.ts';
import '../store/trace-rows.ts';

export type StoredArtifact = { readonly object: string; readonly size: number };

export type Artifacts = Pick<FileStore, 'list' | 'remove'> & {
  /**
   * Called before the transaction. Throws what the content throws, and `unavailable` where the place cannot take it; nothing is
   * left then.
   */
  write(content: AsyncIterable<Uint8Array>): Promise<StoredArtifact>;
  /** Removes what a request has written whose transaction was not committed. Those that cannot be removed are left to the sweep. */
  discard(objects: readonly string[]): Promise<void>;
  /** Rejects, or emits an error, where it is gone. */
  read(object: string): Promise<Readable>;
};

type Settings = {
  readonly dataDirectory: string;
  readonly traces: { readonly artifacts: string | undefined };
};

/** With a bucket, the directory has what is on its way there. */
export function artifactPlaceOf({ dataDirectory, traces: { artifacts } }: Settings): FilePlace {
  const directory = join(dataDirectory, 'trace-artifacts');
  if (artifacts === undefined) return { directory };
  if (artifacts.startsWith('s3://')) return { directory, bucket: artifacts };
  return { directory: isAbsolute(artifacts) ? artifacts : resolve(artifacts) };
}

export function openArtifacts(settings: Settings): Artifacts {
  return createArtifacts(openFileStore(artifactPlaceOf(settings)));
}

export function createArtifacts(files: FileStore): Artifacts {
  return {
    async write(content) {
      const noted = noteFailure(content);
      try {
        const { path, size } = await files.write(folderOf(new Date()), noted.content);
        return { object: path, size };
      } catch (error) {
        throw noted.hasFailed() ? error : toUnavailable(error);
      }
    },
    async discard(objects) {
      for (let at = 0; at < objects.length; at += REMOVED_AT_ONCE)
        await Promise.allSettled(
          objects.slice(at, at + REMOVED_AT_ONCE).map((object) => files.remove(object)),
        );
    },
    read: files.read,
    remove: files.remove,
    list: files.list,
  };
}

/** A request may have ten thousand of them, each of which would be a connection to a bucket. */
const REMOVED_AT_ONCE = 16;

/** So that no folder has more files than can be listed quickly. */
function folderOf(date: Date): string {
  return date.toISOString().slice(0, 13).replaceAll(/[-T]/g, '');
}

/** The content, and whether it was that which failed: what fails otherwise is the place. */
function noteFailure(content: AsyncIterable<Uint8Array>) {
  let failed = false;
  async function* noted(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* content;
    } catch (error) {
      failed = true;
      throw error;
    }
  }
  return { content: noted(), hasFailed: () => failed };
}

const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
const RETRY_MS = 30_000;

/** The cause is for the operator alone. */
function toUnavailable(cause: unknown): DomainError {
  const isFull = FULL.has((cause as NodeJS.ErrnoException).code);
  const reason = isFull ? 'has no space for attachments now' : 'cannot store attachments now';
  return Object.assign(
    new DomainError('unavailable', `This installation ${reason}: try again later`, RETRY_MS),
    { cause },
  );
}

/** Those of the objects that are attachments of runs. */
export async function knownObjects(db: Reader, objects: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('trace_attachments')
    .select('object')
    .where('object', 'in', objects)
    .execute();
  return new Set(rows.map(({ object }) => object));
}
