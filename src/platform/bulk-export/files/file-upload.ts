// The upload of one file: what the next attempt needs to know of it is stored before each step, and a file counts once the service has
// shown its size, where it lets us see it.
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { uploadObject } from '../../store/files/s3-upload.ts';
import type { DestinationBucket } from '../destinations/bucket.ts';
import { ExportFailure } from './export-failure.ts';
import type { PendingUpload, RunCheckpoints } from './run-progress.ts';
import { readError } from './s3-failure.ts';

/** Of one request, however slowly its bytes go. */
const REQUEST_MS = 300_000;
/** Of an abort, or of a look at an object: the run ends without them. */
const SHORT_MS = 5_000;
/** Of all requests about what a killed attempt has left. */
const LEFT_MS = 10_000;
/** Of one file, which has one upload in each attempt. */
const MAX_LEFT = 100;
/** The header field `x-amz-meta-sallyport-upload`. */
const TOKEN = 'sallyport-upload';

type Command = Parameters<DestinationBucket['client']['send']>[0];

export type FileUpload = {
  readonly bucket: DestinationBucket;
  readonly key: string;
  readonly body: Readable;
  readonly beginUpload: RunCheckpoints['beginUpload'];
  /** What the file has, once its last byte was read. */
  target(): NonNullable<PendingUpload['target']>;
  readonly signal: AbortSignal;
};

/** Throws what the client, `body` or the checkpoint has thrown; the upload is aborted then, where the credentials allow that. */
export async function uploadFile(upload: FileUpload): Promise<void> {
  const { bucket, key, body, beginUpload, target } = upload;
  let pending: PendingUpload = { key, token: randomUUID() };
  await beginUpload(pending);
  const { s3, client, object } = bucket;
  const beforeRequest = async (command: Command): Promise<void> => {
    if (!(command instanceof s3.CompleteMultipartUploadCommand || command instanceof s3.PutObjectCommand))
      return;
    pending = { ...pending, target: target() };
    await beginUpload(pending);
  };
  const send = async (command: Command): Promise<unknown> => {
    if (command instanceof s3.AbortMultipartUploadCommand) return abortQuietly(bucket, command);
    await beforeRequest(command);
    const result = await client.send(command as never, { abortSignal: within(upload.signal, REQUEST_MS) });
    if (command instanceof s3.CreateMultipartUploadCommand)
      await beginUpload((pending = { ...pending, uploadId: uploadIdOf(result) }));
    return result;
  };
  const named = { ...object, Key: key, Metadata: { [TOKEN]: pending.token } };
  await uploadObject({ client, send, object: named, body });
  await checkFile(bucket, pending, upload.signal);
}

function uploadIdOf(result: unknown): string {
  const { UploadId } = result as { readonly UploadId?: string };
  if (UploadId === undefined || !UPLOAD_ID.test(UploadId))
    throw new Error('the response has no upload id that can be stored');
  return UploadId;
}

const UPLOAD_ID = /^[\x21-\x7e]{1,2048}$/;

/** A right that credentials need not have. */
async function abortQuietly({ client }: DestinationBucket, command: Command): Promise<unknown> {
  return client.send(command as never, { abortSignal: AbortSignal.timeout(SHORT_MS) }).catch(() => ({}));
}

async function checkFile(
  bucket: DestinationBucket,
  { key, target }: PendingUpload,
  signal: AbortSignal,
): Promise<void> {
  const seen = await lookAt(bucket, key, signal);
  if (seen === 'hidden' || (seen !== 'absent' && seen.bytes === target?.bytes)) return;
  throw new ExportFailure('unavailable', 'The storage has not kept the file as it was written');
}

type Seen = 'absent' | 'hidden' | { readonly bytes: number | undefined; readonly token: string | undefined };

/** `hidden`: the credentials do not allow to see it. */
async function lookAt(
  { s3, client, object }: DestinationBucket,
  key: string,
  signal: AbortSignal,
): Promise<Seen> {
  const head = new s3.HeadObjectCommand({ Bucket: object.Bucket, Key: key });
  try {
    const found = await client.send(head, { abortSignal: within(signal, SHORT_MS) });
    return { bytes: found.ContentLength, token: found.Metadata?.[TOKEN] };
  } catch (error) {
    signal.throwIfAborted();
    return readError(error).status === 404 ? 'absent' : 'hidden';
  }
}

/** Whether the object is the whole file of an upload that a killed attempt has left. */
export async function isComplete(
  bucket: DestinationBucket,
  { key, token, target }: PendingUpload,
  signal: AbortSignal,
): Promise<boolean> {
  if (target === undefined) return false;
  const seen = await lookAt(bucket, key, signal);
  return typeof seen === 'object' && seen.bytes === target.bytes && seen.token === token;
}

/**
 * Aborts what a killed attempt has left of an upload, as far as the credentials allow that: also one whose id was not stored any more.
 * Ends with the signal, and within seconds whatever the service lists: each request has its time, and all of them together. False: the
 * service did not respond to all of it, and may later.
 */
export async function abortLeftUpload(
  { s3, client, object: { Bucket } }: DestinationBucket,
  { key: Key, uploadId }: PendingUpload,
  signal?: AbortSignal,
): Promise<boolean> {
  let isSettled = true;
  const onError = (error: unknown): void => {
    const { status } = readError(error);
    if (status === undefined || status >= 500) isSettled = false;
  };
  const all = within(signal ?? new AbortController().signal, LEFT_MS);
  const limit = () => ({ abortSignal: within(all, SHORT_MS) });
  const list = new s3.ListMultipartUploadsCommand({ Bucket, Prefix: Key, MaxUploads: MAX_LEFT });
  const { Uploads = [] } = await client.send(list, limit()).catch((error: unknown) => {
    onError(error);
    return { Uploads: undefined };
  });
  const listed = Uploads.filter((one) => one.Key === Key).map(({ UploadId }) => UploadId);
  for (const UploadId of new Set([uploadId, ...listed])) {
    if (UploadId === undefined) continue;
    if (all.aborted) return false;
    const abort = new s3.AbortMultipartUploadCommand({ Bucket, Key, UploadId });
    await client.send(abort, limit()).catch(onError);
  }
  return isSettled;
}

/** An object that is no file of the run: an attempt has written it whose rows are gone. */
export async function removeLeftObject(
  { s3, client, object: { Bucket } }: DestinationBucket,
  Key: string,
): Promise<void> {
  const remove = new s3.DeleteObjectCommand({ Bucket, Key });
  await client.send(remove, { abortSignal: AbortSignal.timeout(SHORT_MS) }).catch(() => undefined);
}

function within(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}
