// Each error of an S3 service becomes one of the fixed conditions of the public API.
import { describe, expect, it } from 'vitest';
import {
  destinationFailures,
  findDestinationFailure,
} from '../../../../src/platform/bulk-export/destinations/destination-failure.ts';

const responded = (name: string, status: number) => ({ name, $metadata: { httpStatusCode: status } });

describe('the failure of a test write', () => {
  it.each([
    ['AccessDenied', 403, 'access'],
    ['SignatureDoesNotMatch', 403, 'secret'],
    ['ExpiredToken', 400, 'secret'],
    ['RequestTimeTooSkewed', 403, 'secret'],
    ['NoSuchBucket', 404, 'bucket'],
    ['MethodNotAllowed', 405, 'bucket'],
    ['InvalidAccessKeyId', 403, 'key'],
    ['InvalidBucketName', 400, 'bucket_name'],
    ['PermanentRedirect', 301, 'endpoint'],
    ['AuthorizationHeaderMalformed', 400, 'endpoint'],
    ['SlowDown', 503, 'busy'],
    ['InternalError', 500, 'busy'],
    ['SomethingElse', 503, 'busy'],
    ['SomethingElse', 429, 'busy'],
    ['SomethingElse', 404, 'endpoint'],
    ['constructor', 404, 'endpoint'],
  ] as const)('by the code %s with %s is "%s"', (code, status, expected) => {
    expect(findDestinationFailure(responded(code, status))).toBe(expected);
  });

  it.each([new Error('ECONNREFUSED'), { name: 'AccessDenied' }, 'text', null, undefined])(
    'without a response is an endpoint that is not valid',
    (error) => {
      expect(findDestinationFailure(error)).toBe('endpoint');
    },
  );

  it('is shown in sentences that begin with the condition', () => {
    expect(Object.values(destinationFailures).map((text) => text.split(':')[0])).toEqual([
      'Access denied',
      'Access denied',
      'Bucket is not valid',
      'Key ID you provided does not exist',
      'Invalid endpoint',
      'InvalidBucketName',
    ]);
  });

  it('names the field to correct, and what the operator may allow', () => {
    const { secret, access, endpoint } = destinationFailures;
    expect(secret).toContain('credentials.secret_access_key');
    expect(access).toContain('s3:PutObject');
    expect(endpoint).toMatch(/config\.endpoint_url.*exports\.private_addresses.*exports\.allow_loopback/);
  });
});
