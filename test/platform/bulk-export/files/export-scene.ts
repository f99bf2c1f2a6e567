// What an export needs: runs in a database, an S3 server, and checkpoints in memory that can be made to fail.
import { randomUUID } from 'node:crypto';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { type AsyncBuffer, parquetMetadata, parquetReadObjects } from 'hyparquet';
import { destinationConfig } from '../../../../src/platform/bulk-export/destinations/destination-schema.ts';
import type { RunExportEnd } from '../../../../src/platform/bulk-export/files/export-task.ts';
import {
  exportRun,
  type ExportMeans,
  type RunExportTask,
} from '../../../../src/platform/bulk-export/files/run-export.ts';
import {
  noProgress,
  type PendingUpload,
  type RunProgress,
} from '../../../../src/platform/bulk-export/files/run-progress.ts';
import { Secret } from '../../../../src/base/secret.ts';
import type { Store } from '../../../../src/platform/store/database.ts';
import { createRunPages } from '../../../../src/platform/traces/queries/run-pages.ts';
import type { PlacedPart } from '../../../../src/platform/traces/runs/run-part.ts';
import { postgresTraceStore } from '../../../../src/platform/traces/store/postgres-trace-store.ts';
import type { S3Server } from '../../../support/s3-server.ts';
import { addWorkspace, mergeRuns, partOf, type GivenPart } from '../../traces/store/trace-scene.ts';

export type ExportScene = {
  readonly task: RunExportTask;
  readonly checkpoints: MemoryCheckpoints;
  /** At a second of the day of the export. */
  add(runs: readonly (GivenPart & { readonly second: number })[]): Promise<readonly PlacedPart[]>;
  /** With the bytes of each file, by its key. */
  run(more?: Partial<RunExportTask>, means?: Partial<ExportMeans>): Promise<RunExportEnd>;
};

export class MemoryCheckpoints {
  progress: RunProgress = noProgress;
  /** Each upload that was stored. */
  readonly uploads: PendingUpload[] = [];
  /** Throws in place of a kill. */
  onCommit: (progress: RunProgress) => void = () => undefined;
  load = async (): Promise<RunProgress> => this.progress;
  beginUpload = async (pendingUpload: PendingUpload): Promise<void> => {
    this.uploads.push(pendingUpload);
    this.progress = { ...this.progress, pendingUpload };
  };
  commitFile = async (progress: RunProgress): Promise<void> => {
    this.onCommit(progress);
    this.progress = progress;
  };
}

export const day = '2026-11-20';

export async function createScene(
  database: { readonly store: Store; readonly owner: Store },
  s3: S3Server,
): Promise<ExportScene> {
  const workspaceId = await addWorkspace(database.owner.db);
  const projectId = randomUUID();
  const checkpoints = new MemoryCheckpoints();
  const config = destinationConfig.parse({
    ...{ bucket_name: 'traces', prefix: 'exports/', endpoint_url: s3.endpoint, region: 'us-east-1' },
  });
  const task: RunExportTask = {
    ...{ workspaceId, projectId, exportId: randomUUID(), runId: randomUUID() },
    ...{ window: { from: `${day}T00:00:00Z`, to: '2026-11-21T00:00:00Z' } },
    ...{ compression: 'zstd', formatVersion: 'v2_beta' },
    destination: {
      config,
      credentials: { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: new Secret('not-a-secret') },
      addresses: { allowAllPrivate: false, allowLoopback: true, allowCidrs: [], isOwnListener: () => false },
    },
  };
  return {
    ...{ task, checkpoints },
    async add(given) {
      const parts = given.map(({ second, ...part }) =>
        partOf({
          project: { rank: 2, id: projectId },
          ...part,
          start: { start_time: `${day}T${timeOf(second)}.000001Z`, ...part.start },
        }),
      );
      await mergeRuns(database.store, workspaceId, parts);
      return parts;
    },
    run: (more = {}, means = {}) =>
      exportRun(
        { ...task, ...more },
        {
          ...{ traces: createRunPages(postgresTraceStore), db: database.store.db, checkpoints },
          cancelBy: database.owner.db,
          signal: new AbortController().signal,
          ...means,
        },
      ),
  };
}

function timeOf(second: number): string {
  return new Date(second * 1000).toISOString().slice(11, 19);
}

const compressors = {
  GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
  ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes),
};

export type Row = Readonly<Record<string, unknown>>;

export async function readRows(content: Uint8Array): Promise<readonly Row[]> {
  return parquetReadObjects({ file: toBuffer(content), compressors, utf8: false });
}

export function readMetadata(content: Uint8Array) {
  return parquetMetadata(bufferOf(content));
}

function bufferOf(content: Uint8Array): ArrayBuffer {
  return Uint8Array.from(content).buffer;
}

function toBuffer(content: Uint8Array): AsyncBuffer {
  const whole = bufferOf(content);
  return { byteLength: whole.byteLength, slice: (from, to) => whole.slice(from, to) };
}
