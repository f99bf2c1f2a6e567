import { expect, it } from 'vitest';
import { errorResponse, jsonResponse, listErrors, retryAfter } from '../../../src/base/http/http-response.ts';

it('a JSON response has its type and ends with a line feed; without a value it has no body', () => {
  expect(jsonResponse(200, { a: 1 }, { ETag: '"e"' })).toEqual({
    status: 200,
    fields: { 'Content-Type': 'application/json', ETag: '"e"' },
    body: '{"a":1}\n',
  });
  expect(jsonResponse(204, undefined)).toEqual({ status: 204, fields: {} });
});

it('an error response has a text for people and a code for programs', () => {
  expect(errorResponse(404, 'not_found', 'No such thing').body).toBe(
    '{"detail":"No such thing","code":"not_found"}\n',
  );
  expect(listErrors({ not_found: [404, 'No such thing'] })).toEqual([
    { code: 'not_found', status: 404, meaning: 'No such thing' },
  ]);
});

it.each([
  [0, '1'],
  [1000, '1'],
  [1001, '2'],
])('Retry-After for %i ms is %s s: rounded up', (ms, seconds) => {
  expect(retryAfter(ms)).toEqual({ 'Retry-After': seconds });
});
