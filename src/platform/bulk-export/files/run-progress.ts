// How far a run of an export has come, as JSON in its row: what the next attempt needs after this one was killed.
import type { RunCursor } from '../../traces/contract.ts';

export type ExportedFile = {
  /** Of the object in the bucket. */
  readonly key: string;
  readonly rows: number;
  readonly bytes: number;
};

export type PendingUpload = {
  readonly key: string;
  /** In the metadata of the object: that it is the one of this upload. */
  readonly token: string;
  /** Once the service has named it. */
  readonly uploadId?: string;
  /** Before the upload is completed: what the file has. The next attempt takes an object of that size and token as the file. */
  readonly target?: { readonly cursor: RunCursor; readonly rows: number; readonly bytes: number };
};

export type RunProgress = {
  /** The last trace run that the files have. */
  readonly cursor?: RunCursor;
  readonly rows: number;
  /** In the order of their numbers, which are their places. */
  readonly files: readonly ExportedFile[];
  readonly pendingUpload?: PendingUpload;
};

export const noProgress: RunProgress = { rows: 0, files: [] };

/** Each call ends before the export goes on, and throws where the lease of this attempt is lost. */
export type RunCheckpoints = {
  load(): Promise<RunProgress>;
  /** Stored before an upload begins, and again with more once it is known, so that the next attempt can abort it. */
  beginUpload(upload: PendingUpload): Promise<void>;
  /** In one transaction, only while the lease of this attempt holds. Without `pendingUpload`: nothing is pending any more. */
  commitFile(progress: RunProgress): Promise<void>;
};
