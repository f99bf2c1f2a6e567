// One run of an export: the traces of its window, file by file, from where the attempt before this one has come to.
import { Readable } from 'node:stream';
import { type DestinationBucket, openDestination } from '../destinations/bucket.ts';
import { chooseColumns } from './export-columns.ts';
import { ExportFailure } from './export-failure.ts';
import { type ExportLimits, standardLimits } from './export-limits.ts';
import type { ExportMeans, RunExportEnd, RunExportTask } from './export-task.ts';
import { FileContent } from './file-content.ts';
import { fileKey } from './file-key.ts';
import { abortLeftUpload, isComplete, removeLeftObject, uploadFile } from './file-upload.ts';
import { GroupQueue } from './group-queue.ts';
import type { FileFormat } from './parquet-file.ts';
import { readGroups } from './run-reading.ts';
import type { PendingUpload, RunCheckpoints, RunProgress } from './run-progress.ts';
import { toExportFailure } from './s3-failure.ts';

export type { ExportMeans, RunExportTask } from './export-task.ts';

/** Of one request of the client, its first included. */
const ATTEMPTS = 3;

/**
 * Ends when the window is exported: a window without runs has no file. Throws an ExportFailure, what a checkpoint or the database has
 * thrown, or the reason of the signal, within seconds of it. Whatever it throws, no upload is left behind that the credentials let abort.
 */
export async function exportRun(task: RunExportTask, means: ExportMeans): Promise<RunExportEnd> {
  const { checkpoints, signal } = means;
  const limits = { ...standardLimits, ...means.limits };
  await using bucket = await openBucket(task, limits);
  let progress = await settleLeftUpload(bucket, checkpoints, await checkpoints.load(), signal);
  const columns = chooseColumns(task.fields);
  // A page that is read ahead ends with the attempt, however that ends.
  const ended = new AbortController();
  const reading = { ...means, signal: AbortSignal.any([signal, ended.signal]) };
  const groups = new GroupQueue(
    readGroups({ task, columns, means: reading, limits, after: progress.cursor }),
  );
  const format = { columns, hasZone: task.formatVersion === 'v2_beta', compression: task.compression };
  const run = { task, means, limits, bucket, format, groups };
  try {
    while (await groups.hasMore()) {
      progress = await exportFile(run, progress);
      if (means.isPreempted?.() === true) return 'preempted';
    }
  } finally {
    ended.abort(new Error('nobody waits for the page any more'));
    await groups.close();
  }
  await removeLeftFile(bucket, checkpoints, progress);
  return 'completed';
}

function openBucket(
  { destination }: Pick<RunExportTask, 'destination'>,
  { silenceMs }: Pick<ExportLimits, 'silenceMs'>,
) {
  return openDestination({ ...destination, attempts: ATTEMPTS, silenceMs });
}

/**
 * For a run that nobody tries again: aborts the upload that a killed attempt has left, where the credentials allow that. Throws an
 * ExportFailure where the storage does not respond.
 */
export async function abandonUpload(
  destination: RunExportTask['destination'],
  pending: PendingUpload,
): Promise<void> {
  await using bucket = await openBucket({ destination }, standardLimits);
  if (!(await abortLeftUpload(bucket, pending))) throw new ExportFailure('unavailable', NOT_ABORTED);
}

const NOT_ABORTED = 'The storage did not respond to the abort of an upload';

type Run = {
  readonly task: RunExportTask;
  readonly means: ExportMeans;
  readonly limits: ExportLimits;
  readonly bucket: DestinationBucket;
  readonly format: FileFormat;
  readonly groups: GroupQueue;
};

async function exportFile(run: Run, progress: RunProgress): Promise<RunProgress> {
  const { task, means, limits, bucket, format, groups } = run;
  const { checkpoints, signal, onProgress, isPreempted: isEnding = () => false } = means;
  const key = fileKey(task.destination.config.prefix, task, progress.files.length);
  let { rows } = progress;
  const onRows = (more: number): void => onProgress?.({ rows: (rows += more) });
  const content = new FileContent({ format, groups, limits, onRows, isEnding });
  const body = Readable.from(content.pieces(), { highWaterMark: 1 });
  const failed = watchCheckpoints(checkpoints);
  await uploadFile({
    ...{ bucket, key, body, signal },
    beginUpload: failed.beginUpload,
    target: () => content.target,
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw failed.reason ?? (body.errored === null ? toExportFailure(error) : body.errored);
  });
  const next = withFile(progress, key, content.target);
  await checkpoints.commitFile(next);
  return next;
}

/** What a checkpoint has thrown says that this attempt is over, and is no failure of the storage. */
function watchCheckpoints({ beginUpload }: Pick<RunCheckpoints, 'beginUpload'>) {
  const watched = {
    reason: undefined as unknown,
    beginUpload: (upload: PendingUpload): Promise<void> =>
      beginUpload(upload).catch((error: unknown) => {
        watched.reason = error;
        throw error;
      }),
  };
  return watched;
}

function withFile(
  { rows, files }: RunProgress,
  key: string,
  { cursor, rows: more, bytes }: NonNullable<PendingUpload['target']>,
): RunProgress {
  return { cursor, rows: rows + more, files: [...files, { key, rows: more, bytes }] };
}

/** Either the upload has ended before its attempt was killed, or it is aborted, and its file is written again. */
async function settleLeftUpload(
  bucket: DestinationBucket,
  checkpoints: RunCheckpoints,
  progress: RunProgress,
  signal: AbortSignal,
): Promise<RunProgress> {
  const { pendingUpload: pending } = progress;
  if (pending === undefined) return progress;
  if (pending.target !== undefined && (await isComplete(bucket, pending, signal))) {
    const next = withFile(progress, pending.key, pending.target);
    await checkpoints.commitFile(next);
    return next;
  }
  await abortLeftUpload(bucket, pending, signal);
  signal.throwIfAborted();
  return progress;
}

/** Its rows are gone: no file of this attempt has replaced it. */
async function removeLeftFile(
  bucket: DestinationBucket,
  checkpoints: RunCheckpoints,
  { pendingUpload: pending, ...progress }: RunProgress,
): Promise<void> {
  if (pending === undefined) return;
  // Throws where the lease is lost: another attempt may have written a file of this key since.
  await checkpoints.beginUpload(pending);
  await removeLeftObject(bucket, pending.key);
  await checkpoints.commitFile(progress);
}
