// The catalogue of the gateway's own responses, pinned: clients depend on codes and statuses.
import { expect, it } from 'vitest';
import { refusalBytes, refusalCatalogue, refusalOfHead, refuse } from '../../src/gateway/refusal.ts';
import { headErrors } from '../../src/http1/head-error.ts';

it('has these codes', () => {
  expect(refusalCatalogue().map(({ code, status }) => `${status} ${code}`)).toEqual([
    '200 preflight',
    '303 see_other',
    '400 malformed_request',
    '400 target_not_ready',
    '400 target_form_refused',
    '400 host_invalid',
    '401 unauthenticated',
    '403 forbidden',
    '404 target_not_found',
    '405 method_refused',
    '408 request_timeout',
    '414 uri_too_long',
    '417 expectation_failed',
    '421 misdirected',
    '422 invalid_input',
    '429 too_many_requests',
    '431 head_too_large',
    '500 internal_error',
    '501 not_supported',
    '501 transfer_coding_refused',
    '502 target_unreachable',
    '502 target_closed',
    '502 target_response_invalid',
    '503 too_many_connections',
    '503 draining',
    '503 overloaded',
    '503 target_unavailable',
    '504 decision_timeout',
    '504 target_timeout',
    '505 version_refused',
  ]);
});

it('maps every error of the parser to its status', () => {
  for (const error of Object.values(headErrors)) {
    const status = error === headErrors.methodTooLong ? 405 : error.status;
    expect([error.code, refusalOfHead(error).status]).toEqual([error.code, status]);
  }
});

it('has the fields of its owner', () => {
  const refusal = refuse('see_other', { fields: { Location: '/', 'Set-Cookie': 'a=b' } });
  const bytes = String(refusalBytes(refusal, { method: 'GET', isLast: false }));
  expect(bytes).toMatch(/^HTTP\/1\.1 303 See Other\r\n[^]*Location: \/\r\nSet-Cookie: a=b\r\n/);
  expect(bytes).toContain('Cache-Control: no-store\r\n');
});

it('has the fields of its target', () => {
  const about = { method: 'GET', isLast: true, fields: [['Vary', 'Origin']] as const };
  expect(String(refusalBytes(refuse('forbidden'), about))).toContain('\r\nVary: Origin\r\nConnection: close');
});

it('is written without a body to HEAD', () => {
  const bytes = String(refusalBytes(refuse('forbidden'), { method: 'HEAD', isLast: true }));
  expect(bytes).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[^]*Connection: close\r\n\r\n$/);
});
