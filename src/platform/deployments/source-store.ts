// The sources that were uploaded: files of this machine, or objects of a bucket that every machine can read.
import { join } from 'node:path';
import { DomainError } from '../../base/domain-error.ts';
import { type FilePlace, type FileStore, openFileStore, type StoredFile } from '../store/files/file-store.ts';

export type StoredSource = StoredFile;

export type SourceStore = FileStore & {
  /** Only processes with this directory can read what it has. Undefined: every machine can. */
  readonly machineId: string | undefined;
};

export type SourcePlace = FilePlace & { readonly machineId: string };

/** Of an installation: the platform writes there what its builders read. */
export function sourcePlaceOf(
  { dataDirectory, deployments }: { dataDirectory: string; deployments: { sources: string | undefined } },
  machineId: string,
): SourcePlace {
  return { directory: join(dataDirectory, 'deployment-sources'), machineId, bucket: deployments.sources };
}

export function openSourceStore({ machineId, ...place }: SourcePlace): SourceStore {
  const files = openFileStore(place);
  const fail = (error: unknown): never => {
    throw toFullDisk(error);
  };
  return {
    ...files,
    write: (prefix, content) => files.write(prefix, content).catch(fail),
    machineId: place.bucket === undefined ? machineId : undefined,
  };
}

const FULL: readonly unknown[] = ['ENOSPC', 'EDQUOT'];
const FULL_RETRY_MS = 60_000;

/** A matter of the operator, which the caller can only wait for. */
function toFullDisk(error: unknown): unknown {
  if (!FULL.includes((error as { readonly code?: unknown } | null)?.code)) return error;
  const full = new DomainError(
    'unavailable',
    'The platform has no space left for sources: its operator must free some',
    FULL_RETRY_MS,
  );
  return Object.assign(full, { cause: error });
}
