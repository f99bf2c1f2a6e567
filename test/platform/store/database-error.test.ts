import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../src/base/domain-error.ts';
import {
  brokenReferenceOf,
  codeOf,
  isDuplicate,
  isNotReady,
  isTimeout,
  toDomainError,
} from '../../../src/platform/store/database-error.ts';

const withCode = (code: string, rest: object = {}): Error =>
  Object.assign(new Error('hush'), { code, ...rest });

describe('an error of the database', () => {
  it.each([
    withCode('ECONNREFUSED'),
    withCode('57P01'),
    withCode('57014'),
    withCode('08006'),
    new Error('Connection terminated unexpectedly'),
    new Error('timeout exceeded when trying to connect'),
    new Error('Query read timeout'),
  ])('is `unavailable` with the error as its cause: %o', (error) => {
    const converted = toDomainError(error);
    expect(converted).toBeInstanceOf(DomainError);
    expect(converted).toMatchObject({ kind: 'unavailable', retryMs: 1000, cause: error });
    expect((converted as DomainError).message).not.toContain('hush');
  });

  it.each([withCode('23505'), withCode('42501'), new Error('Connection'), 'text', undefined])(
    'is left as it is: %o',
    (error) => expect(toDomainError(error)).toBe(error),
  );

  it('is a duplicate only for its constraint', () => {
    const error = withCode('23505', { constraint: 'users_email' });
    expect([isDuplicate(error, 'users_email'), isDuplicate(error, 'other')]).toEqual([true, false]);
    expect(isDuplicate(withCode('23503', { constraint: 'users_email' }), 'users_email')).toBe(false);
  });

  it('names the constraint of a broken reference', () => {
    const constraint = 'listeners_workspace_id_fkey';
    expect(brokenReferenceOf(withCode('23503', { constraint }))).toBe(constraint);
    expect(brokenReferenceOf(withCode('23505', { constraint }))).toBeUndefined();
  });

  it('is `not ready` while a server starts, shuts down or does not run', () => {
    for (const code of ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', '57P03'])
      expect(isNotReady(withCode(code))).toBe(true);
    expect(isNotReady(new Error('Connection terminated unexpectedly'))).toBe(true);
    expect(isNotReady(withCode('28P01'))).toBe(false);
  });

  it('is a timeout by its message alone', () => {
    expect([isTimeout(new Error('Query read timeout')), isTimeout(withCode('57014'))]).toEqual([true, false]);
  });

  it('has a code or none', () => {
    expect([codeOf(withCode('57014')), codeOf(new Error('x')), codeOf(null), codeOf('x')]).toEqual([
      '57014',
      undefined,
      undefined,
      undefined,
    ]);
  });
});
