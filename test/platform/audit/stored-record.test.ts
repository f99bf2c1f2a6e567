import { describe, expect, it } from 'vitest';
import { parseStoredRecord, type StoredRecord } from '../../../src/platform/audit/stored-record.ts';

const record: StoredRecord = {
  operation_succeeded: true,
  api_key_id: null,
  user_id: null,
  enrichments: {
    request_method: 'POST',
    request_path: '/v2/listeners',
    client_host: '192.0.2.1',
    client_port: 1,
    x_forwarded_for: null,
    response_status_code: 201,
    resource_ids: ['a'],
  },
};

describe('a stored record', () => {
  it('is read as it was written', () => {
    const issued = { ...record, enrichments: { ...record.enrichments, credential_issued_by: 'k' } };
    for (const one of [record, issued]) expect(parseStoredRecord(JSON.stringify(one))).toEqual(one);
  });

  it.each([
    '',
    '{"operation_succeeded":',
    'null',
    JSON.stringify({ ...record, extra: 1 }),
    JSON.stringify({ ...record, operation_succeeded: 'yes' }),
    JSON.stringify({ ...record, enrichments: { ...record.enrichments, client_port: 1.5 } }),
    JSON.stringify({ ...record, enrichments: undefined }),
  ])('is not read from %s', (text) => expect(parseStoredRecord(text)).toBeUndefined());
});
