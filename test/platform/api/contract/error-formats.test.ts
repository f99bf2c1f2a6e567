// The same error in each format, as the clients of that contract read it.
import { describe, expect, it } from 'vitest';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  type ApiError,
  type ErrorFormat,
  problemErrors,
  sandboxErrors,
  textErrors,
  traceErrors,
} from '../../../../src/platform/api/contract/error-formats.ts';

const conflict: ApiError = {
  status: 409,
  code: 'too_many',
  detail: 'It exists',
  fields: { 'Retry-After': '1' },
};
const issue = { loc: ['body', 'rules', 0], msg: 'Field required', type: 'missing' } as const;
const invalid: ApiError = { status: 422, code: 'invalid_input', detail: 'Invalid', issues: [issue] };

const rows: readonly (readonly [string, ErrorFormat, unknown, unknown])[] = [
  ['ours', problemErrors, { detail: 'It exists', code: 'too_many' }, { detail: [issue] }],
  [
    'sandboxes',
    sandboxErrors,
    { detail: { error: 'TooMany', message: 'It exists', error_id: 'id-1' } },
    { detail: [{ ...issue, type: 'value_error' }] },
  ],
  [
    'traces',
    traceErrors,
    { error: 'too_many', details: 'It exists', detail: 'It exists' },
    { error: 'invalid_input', details: [issue], detail: [issue] },
  ],
  ['text', textErrors, 'It exists\n', 'body.rules.0: Field required\n'],
];

describe('an error', () => {
  it.each(rows)('in the format of %s', (_, format, ofConflict, ofInvalid) => {
    for (const [error, wanted] of [
      [conflict, ofConflict],
      [invalid, ofInvalid],
    ] as const) {
      const { status, fields, body } = format.write(error, 'id-1');
      const sent = typeof wanted === 'string' ? String(body) : JSON.parse(String(body));
      expect([status, sent]).toEqual([error.status, wanted]);
      expect(fields).toMatchObject(error.fields ?? {});
      expect(fields?.['Content-Type']?.startsWith(format.mediaType)).toBe(true);
      expect(new Ajv2020({ strict: false }).validate(format.schema, sent)).toBe(true);
    }
  });
});
