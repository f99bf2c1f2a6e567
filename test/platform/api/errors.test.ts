import { describe, expect, it } from 'vitest';
import { DomainError, GivenRefusal, InvalidInput } from '../../../src/base/domain-error.ts';
import { RequestError } from '../../../src/base/http/request-body.ts';
import {
  type PlatformErrorCode,
  platformError,
  platformErrorCodes,
  toErrorResponse,
} from '../../../src/platform/api/errors.ts';

describe('the errors of the API', () => {
  it('have one code each, which the body and the list share', () => {
    const codes = platformErrorCodes.map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const { code, status, meaning } of platformErrorCodes) {
      expect(code).toMatch(/^[a-z]+(?:_[a-z]+)*$/);
      const response = platformError(code as PlatformErrorCode);
      expect([response.status, JSON.parse(String(response.body))]).toEqual([
        status,
        { detail: meaning, code },
      ]);
    }
  });

  it('of the domain have its message, the code of their kind, and what a client needs to try again', () => {
    expect(toErrorResponse(new DomainError('unauthenticated', 'Who?'))).toEqual({
      status: 401,
      fields: { 'Content-Type': 'application/json', 'WWW-Authenticate': 'Bearer' },
      body: '{"detail":"Who?","code":"unauthenticated"}\n',
    });
    expect(toErrorResponse(new DomainError('too_many', 'Wait.', 1500))).toMatchObject({
      status: 429,
      fields: { 'Retry-After': '2' },
      body: '{"detail":"Wait.","code":"too_many"}\n',
    });
  });

  it('of code of a deployment have its status and fields, and the most general code', () => {
    const rows = [
      [401, 'unauthenticated'],
      [402, 'unusable'],
      [503, 'unavailable'],
      [507, 'internal_error'],
    ] as const;
    for (const [status, code] of rows)
      expect(toErrorResponse(new GivenRefusal(status, 'No.', { 'x-hint': 'one' }))).toEqual({
        status,
        fields: { 'Content-Type': 'application/json', 'x-hint': 'one' },
        body: `{"detail":"No.","code":"${code}"}\n`,
      });
  });

  it('of a request that is not read have the code of their kind', () => {
    expect(toErrorResponse(new RequestError('too_large'))).toMatchObject({
      status: 413,
      body: expect.stringContaining('"code":"too_large"'),
    });
  });

  it('of the input are its issues; a bug is none of them', () => {
    const issue = { loc: ['body'], msg: 'Field required', type: 'missing' } as const;
    expect(toErrorResponse(new InvalidInput([issue]))).toMatchObject({
      status: 422,
      body: `${JSON.stringify({ detail: [issue] })}\n`,
    });
    expect(toErrorResponse(new TypeError('a bug'))).toBeUndefined();
  });
});
