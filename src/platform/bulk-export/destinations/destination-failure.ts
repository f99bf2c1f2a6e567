// Why a destination cannot be written to, in the fixed sentences of the public API. What the endpoint sent is never part of them: a
// caller who names an internal service as endpoint would read it there.

export type DestinationFailure = 'access' | 'secret' | 'bucket' | 'key' | 'endpoint' | 'bucket_name' | 'busy';

export const destinationFailures: Readonly<Record<Exclude<DestinationFailure, 'busy'>, string>> = {
  access: 'Access denied: the credentials do not allow to write objects into this bucket (s3:PutObject)',
  secret:
    'Access denied: the service does not accept these credentials; check credentials.secret_access_key and session_token, and the clock of the machine',
  bucket: 'Bucket is not valid: it does not exist, or writes to it are not permitted',
  key: 'Key ID you provided does not exist: check credentials.access_key_id',
  endpoint:
    'Invalid endpoint: no S3-compatible service responds at this address; check config.endpoint_url, which must be left out for a bucket of AWS, and config.region. Its addresses must be public, or be allowed by the operator (exports.private_addresses, exports.allow_loopback)',
  bucket_name:
    'InvalidBucketName: the service rejected the addressing style; set config.config_kwargs_s3.addressing_style to virtual',
};

/** The codes of errors that S3 services send (S3 API reference, "Error responses"). */
const BY_CODE: ReadonlyMap<string, DestinationFailure> = new Map([
  ['AccessDenied', 'access'],
  ['AccountProblem', 'access'],
  ['AllAccessDisabled', 'access'],
  ['ExpiredToken', 'secret'],
  ['InvalidSecurity', 'secret'],
  ['InvalidToken', 'secret'],
  ['NotSignedUp', 'access'],
  ['RequestTimeTooSkewed', 'secret'],
  ['SignatureDoesNotMatch', 'secret'],
  ['InvalidBucketState', 'bucket'],
  ['MethodNotAllowed', 'bucket'],
  ['NoSuchBucket', 'bucket'],
  ['InvalidAccessKeyId', 'key'],
  ['InvalidBucketName', 'bucket_name'],
  ['InternalError', 'busy'],
  ['OperationAborted', 'busy'],
  ['RequestTimeout', 'busy'],
  ['ServiceUnavailable', 'busy'],
  ['SlowDown', 'busy'],
]);

/** What the S3 client throws: an error of the service has the status of its response and its code as the name. */
type ClientError = {
  readonly name?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
};

/** `busy`: the service may take the same request later. */
export function findDestinationFailure(error: unknown): DestinationFailure {
  const { name, $metadata = {} } = (typeof error === 'object' && error !== null ? error : {}) as ClientError;
  const known = typeof name === 'string' ? BY_CODE.get(name) : undefined;
  // Without a status, there was no response: the name of such an error is chosen by no service.
  const { httpStatusCode: status } = $metadata;
  if (status === undefined) return 'endpoint';
  if (known !== undefined) return known;
  return status === 429 || status === 503 ? 'busy' : 'endpoint';
}
