// The catalogue is closed, frozen and pinned: codes are what operators search their logs for.
import { describe, expect, it } from 'vitest';
import { headErrorCodes, headErrors, isHeadError } from '../../src/http1/head-error.ts';

const all = Object.values(headErrors);

describe('the catalogue of head errors', () => {
  it('has one code for each error', () => {
    expect(new Set(headErrorCodes).size).toBe(all.length);
  });

  it('names each error as its code', () => {
    const toCode = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    expect(Object.entries(headErrors).filter(([name, { code }]) => toCode(name) !== code)).toEqual([]);
  });

  it('cannot be changed', () => {
    expect(Object.isFrozen(headErrors) && all.every((error) => Object.isFrozen(error))).toBe(true);
  });

  it('has the status 400 unless another says more', () => {
    const others = all.filter(({ status }) => status !== 400).map(({ code, status }) => [code, status]);
    expect(Object.fromEntries(others)).toEqual({
      method_too_long: 501,
      http2_preface: 505,
      target_too_long: 414,
      version_unsupported: 505,
      too_many_fields: 431,
      head_too_large: 431,
      transfer_encoding_unsupported: 501,
      connection_too_long: 431,
      expectation_unknown: 417,
      trailer_too_large: 431,
    });
  });

  it('recognises its own errors', () => expect(all.every(isHeadError)).toBe(true));

  it.each([undefined, null, 'bare_lf', 400, {}, { ...headErrors.bareLf }])(
    'takes %j for none of its own',
    (value) => {
      expect(isHeadError(value)).toBe(false);
    },
  );
});
