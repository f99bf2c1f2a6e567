// Which requests of a deployment are sent on, and which of their fields.
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { readRequestHead } from '../../../../src/base/http/request-head.ts';
import { decideTraceRequest } from '../../../../src/platform/runner/traces/trace-request.ts';

const decide = (
  method: string,
  url: string,
  fields: Readonly<Record<string, string>> = {},
  version = '1.1',
) => {
  const rawHeaders = Object.entries({ host: '127.0.0.1:3126', ...fields }).flat();
  return decideTraceRequest(readRequestHead({ method, url, httpVersion: version, rawHeaders }));
};
const run = `/runs/${randomUUID()}`;

it.each([
  ['GET', '/info'],
  ['POST', '/runs'],
  ['POST', '/runs/batch'],
  ['POST', '/runs/multipart'],
  ['PATCH', run],
])('%s %s is sent on', (method, path) => {
  expect(decide(method, path)).toEqual({ method, path, fields: {} });
});

it.each([
  ['POST', '/runs/query'],
  ['GET', run],
  ['DELETE', run],
  ['PATCH', '/runs/1'],
  ['GET', '/sessions'],
  ['POST', '/runs?x=1'],
  ['POST', '/runs/'],
  ['POST', '//runs'],
  ['POST', '/runs/../sessions'],
  ['POST', '/runs%2fbatch'],
  ['POST', '/api/v1/runs'],
  ['POST', 'http://127.0.0.1:8080/runs'],
  ['POST', '/RUNS'],
  ['OPTIONS', '*'],
  ['CONNECT', '127.0.0.1:8080'],
  ['PATCH', `${run}/share`],
  ['PATCH', `/runs/${randomUUID()}\t`],
])('%s %s is not', (method, path) => {
  expect(decide(method, path)).toMatchObject({ status: 404 });
});

it.each([{ 'transfer-encoding': 'chunked' }, { 'content-length': '7' }])(
  'a GET with a body (%o) is not: behind its head the body could be read as another request',
  (fields) => {
    expect(decide('GET', '/info', fields)).toMatchObject({ status: 400 });
  },
);

it('of the fields, those of the body are sent', () => {
  const fields = {
    ...{ 'x-api-key': 'own', authorization: 'Bearer own', cookie: 'a=b', 'x-tenant-id': randomUUID() },
    ...{ 'x-forwarded-for': '1.2.3.4', connection: 'content-encoding', 'x-http-method-override': 'DELETE' },
    ...{
      'content-type': 'multipart/form-data; boundary=x',
      'content-encoding': 'zstd',
      'content-length': '7',
    },
  };
  expect(decide('POST', '/runs/multipart', fields)).toMatchObject({
    fields: {
      ...{ 'content-type': 'multipart/form-data; boundary=x', 'content-encoding': 'zstd' },
      'content-length': '7',
    },
  });
});

it.each([
  ['two framings', { 'transfer-encoding': 'chunked', 'content-length': '3' }, '1.1', 400],
  ['another version', {}, '1.0', 400],
  ['a value with a control byte', { 'content-type': 'a\u0001b' }, '1.1', 400],
  ['a value that is too long', { 'content-type': 'x'.repeat(300) }, '1.1', 400],
  ['an unknown expectation', { expect: 'more' }, '1.1', 417],
])('one with %s is not', (_, fields, version, status) => {
  expect(decide('POST', '/runs', fields, version)).toMatchObject({ status });
});
