// Errors of the S3 client as failures of a run, in fixed sentences: what the service has sent is never part of them.
import { AddressDenied } from '../../../base/http/guarded-agent.ts';
import { destinationFailures, findDestinationFailure } from '../destinations/destination-failure.ts';
import { ExportFailure, type FailureKind } from './export-failure.ts';

const UNAVAILABLE = 'The storage cannot be reached, or does not take the file at the moment';
const CREDENTIALS =
  'Access denied: the credentials of the destination are not valid, or no longer: replace them, and create a new export';

/** Another attempt may succeed: the clocks may agree then, and the upload begins anew. */
const OF_THE_MOMENT: ReadonlySet<string> = new Set(['NoSuchUpload', 'InvalidPart', 'RequestTimeTooSkewed']);

export function toExportFailure(cause: unknown): ExportFailure {
  if (cause instanceof ExportFailure) return cause;
  const [kind, message] = explain(cause);
  return new ExportFailure(kind, message, { cause });
}

function explain(error: unknown): readonly [FailureKind, string] {
  if (isDenied(error)) return ['destination', destinationFailures.endpoint];
  const { status, code } = readError(error);
  if (status === undefined || status >= 500 || OF_THE_MOMENT.has(code)) return ['unavailable', UNAVAILABLE];
  const failure = findDestinationFailure(error);
  switch (failure) {
    case 'access':
      return ['permissions', destinationFailures.access];
    case 'secret':
      return ['credentials', CREDENTIALS];
    case 'key':
      return ['credentials', destinationFailures.key];
    case 'bucket':
    case 'bucket_name':
      return ['bucket', destinationFailures[failure]];
    case 'endpoint':
      return ['destination', destinationFailures.endpoint];
    case 'busy':
      return ['unavailable', UNAVAILABLE];
  }
}

/** Also where the client has wrapped it. */
function isDenied(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof AddressDenied || (error.cause !== error && isDenied(error.cause));
}

export type S3Error = { readonly status: number | undefined; readonly code: string };

/** Without a status there was no response. */
export function readError(error: unknown): S3Error {
  const given = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly name?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: number };
  };
  const code = typeof given.name === 'string' ? given.name : '';
  return { status: given.$metadata?.httpStatusCode, code };
}
