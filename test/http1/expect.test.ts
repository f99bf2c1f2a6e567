// The one expectation that is met.
import { describe, expect, it } from 'vitest';
import { expectsContinue } from '../../src/http1/expect.ts';
import { headErrors } from '../../src/http1/head-error.ts';
import { requestOf } from './parsed-head.ts';

describe('a request', () => {
  it.each([
    ['without Expect waits for nothing', 'Host: a', '1.1', false],
    ['with 100-continue waits', 'Expect: 100-Continue', '1.1', true],
    ['of HTTP/1.0 does not', 'Expect: 100-continue', '1.0', false],
    ['with another expectation fails', 'Expect: 200-ok', '1.1', headErrors.expectationUnknown],
    ['with an empty one too', 'Expect:', '1.1', headErrors.expectationUnknown],
    ['with a list too', 'Expect: 100-continue, x', '1.1', headErrors.expectationUnknown],
    [
      'with two fields too',
      'Expect: 100-continue\r\nExpect: 100-continue',
      '1.1',
      headErrors.expectationUnknown,
    ],
  ])('%s', (_name, lines, version, expected) => {
    expect(expectsContinue(requestOf(`POST / HTTP/${version}\r\n${lines}\r\n\r\n`))).toBe(expected);
  });
});
