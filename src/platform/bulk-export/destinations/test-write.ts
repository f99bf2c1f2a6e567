// The test of a destination: a small file is written, and removed where the credentials allow that. Nothing is stored of a
// destination that fails it.
import { randomUUID } from 'node:crypto';
import { DomainError } from '../../../base/domain-error.ts';
import type { Wiring } from '../../module.ts';
import type { S3Credentials } from '../../store/files/s3-client.ts';
import { type DestinationBucket, openDestination } from './bucket.ts';
import { destinationFailures, findDestinationFailure } from './destination-failure.ts';
import type { DestinationConfig } from './destination-schema.ts';
import { toObjectKey } from './object-prefix.ts';

/** Of the write, and of the removal. */
const TEST_MS = 10_000;
const RETRY_MS = 5_000;
const CONTENT = 'Bulk exports wrote this file to test the destination. It can be deleted.\n';

/** Throws a DomainError: `unusable` in the sentences of the public API, `unavailable` where the service is busy. */
export async function testWrite(
  config: DestinationConfig,
  credentials: S3Credentials | undefined,
  { addresses, testFile }: Wiring['config']['exports'],
  signal: AbortSignal,
): Promise<void> {
  await using bucket = await openDestination({ config, credentials, addresses, attempts: 2 });
  const name = `tmp/${randomUUID()}.txt`;
  const key = testFile === 'prefix' ? toObjectKey(config.prefix, name) : name;
  await writeTestFile(bucket, key, signal).catch((error: unknown) => {
    throw toDomainError(error);
  });
  // Optional rights: a file that stays harms nothing.
  await removeTestFile(bucket, key, signal).catch(() => undefined);
}

async function writeTestFile(
  { s3, client, object }: DestinationBucket,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const put = new s3.PutObjectCommand({ ...object, Key: key, Body: CONTENT, ContentType: 'text/plain' });
  const { ETag } = await client.send(put, { abortSignal: within(signal) });
  // A server of another kind may send 200 for any request.
  if (ETag === undefined) throw new Error('the response has no ETag');
}

async function removeTestFile(
  { s3, client, object }: DestinationBucket,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const remove = new s3.DeleteObjectCommand({ Bucket: object.Bucket, Key: key });
  await client.send(remove, { abortSignal: within(signal) });
}

function within(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(TEST_MS)]);
}

function toDomainError(error: unknown): DomainError {
  const failure = findDestinationFailure(error);
  if (failure === 'busy')
    return new DomainError('unavailable', 'The storage is busy and did not take the test file', RETRY_MS);
  return new DomainError('unusable', destinationFailures[failure]);
}
