// What one run of an export is given: the traces of a UTC day, or of a part of one, and where their files go.
import type { AddressRules } from '../../../base/address-guard.ts';
import type { Database } from '../../store/database.ts';
import type { S3Credentials } from '../../store/files/s3-client.ts';
import type { RunPages } from '../../traces/contract.ts';
import type { DestinationConfig } from '../destinations/destination-schema.ts';
import type { ExportField } from './export-columns.ts';
import type { ExportLimits } from './export-limits.ts';
import type { Compression } from './parquet-file.ts';
import type { RunCheckpoints } from './run-progress.ts';

export type RunExportTask = {
  readonly workspaceId: string;
  readonly exportId: string;
  readonly runId: string;
  readonly projectId: string;
  /** ISO 8601 in UTC, the end exclusive. */
  readonly window: { readonly from: string; readonly to: string };
  /** In the language of the queries of traces. */
  readonly filter?: string;
  /** All when absent. */
  readonly fields?: readonly ExportField[];
  readonly compression: Compression;
  /** Times without a time zone, or in UTC. */
  readonly formatVersion: 'v1' | 'v2_beta';
  readonly destination: {
    readonly config: DestinationConfig;
    /** Undefined: those of this machine. */
    readonly credentials: S3Credentials | undefined;
    readonly addresses: AddressRules;
  };
};

export type ExportMeans = {
  readonly traces: RunPages;
  /** Of a pool whose statements may take minutes; a page is a transaction of it. */
  readonly db: Database;
  /** Of another pool, whose statements are short: by it, a page that is not waited for any more is cancelled. */
  readonly cancelBy: Database;
  readonly checkpoints: RunCheckpoints;
  readonly signal: AbortSignal;
  /** Whether others need the place of the run: it ends with the group of rows that it writes. */
  readonly isPreempted?: () => boolean;
  /** Rows that were read by this attempt and those before it, also those of a file that is not complete. */
  readonly onProgress?: (progress: { readonly rows: number }) => void;
  readonly limits?: Partial<ExportLimits>;
};

/** `preempted`: the next attempt goes on behind the files of this one. */
export type RunExportEnd = 'completed' | 'preempted';
