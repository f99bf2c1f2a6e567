import { describe, expect, it } from 'vitest';
import { adminError, adminErrorCodes, invalid, problemResponse } from '../../src/admin/admin-errors.ts';

describe('the errors of the admin API', () => {
  it('have one code each, which the body, the record and the list share', () => {
    const codes = adminErrorCodes.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const { code, status, meaning } of adminErrorCodes) {
      expect(code).toMatch(/^[a-z]+(?:_[a-z]+)*$/);
      const response = adminError(code as Parameters<typeof adminError>[0]);
      expect(response).toMatchObject({ status, reason: code });
      expect(JSON.parse(String(response.body))).toEqual({ detail: meaning, code });
    }
  });

  it('may have a more specific text, fields, and a time to wait', () => {
    expect(adminError('busy', { detail: 'Wait.', fields: { 'X-A': '1' }, waitMs: 1500 })).toEqual({
      status: 503,
      reason: 'busy',
      fields: { 'Content-Type': 'application/json', 'X-A': '1', 'Retry-After': '2' },
      body: '{"detail":"Wait.","code":"busy"}\n',
    });
  });

  it('list every issue of a document, each with its location in the request', () => {
    const issue = { loc: ['name'], msg: 'Field required', type: 'missing' } as const;
    const body = { detail: [{ ...issue, loc: ['body', 'name'] }] };
    const response = problemResponse({ kind: 'invalid', issues: [issue] }, ['body']);
    expect([response.status, response.reason]).toEqual([422, 'invalid']);
    expect(JSON.parse(String(response.body))).toEqual(body);
    expect(response).toEqual(invalid(body.detail));
  });
});
