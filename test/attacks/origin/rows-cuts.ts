// hosts that close, reset or respond at the wrong moment.
import { response, cutWithin, relayed } from './row-shapes.ts';
import type { OriginExpectation, OriginRow, OriginScript, OriginStep } from './origin-script.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const LENGTH = `${OK}Content-Length: 9\r\n\r\n`;

const closed = (
  name: string,
  responseSteps: readonly OriginStep[],
  cause: string,
  more: Partial<OriginExpectation> = {},
): OriginRow => ({
  id: `R-09 ${name}`,
  script: { response: responseSteps },
  expect: {
    client: { refused: 'upstream_closed' },
    record: { outcome: 'failed', status: 502, reason: 'upstream_closed', cause },
    ...more,
  },
});

const beforeTheHead: readonly OriginRow[] = [
  closed('end-before-a-byte', ['end'], 'no_response'),
  closed('reset-before-a-byte', ['reset'], 'ECONNRESET'),
  closed('end-within-the-start-line', [{ send: 'HTTP/1.1 2' }, 'end'], 'no_response'),
  closed('end-within-a-field', [{ send: `${OK}Content-Len` }, 'end'], 'no_response'),
  closed('end-within-the-blank-line', [{ send: `${OK}Content-Length: 0\r\n\r` }, 'end'], 'no_response'),
];

const withinTheBody: readonly OriginRow[] = [
  cutWithin('R-09 end-within-a-length', [{ send: `${LENGTH}half` }, 'end'], `${LENGTH}half`, {
    reason: 'upstream_truncated',
    cause: 'truncated',
  }),
  cutWithin('R-09 end-before-a-length', [{ send: LENGTH }, 'end'], LENGTH, {
    reason: 'upstream_truncated',
    cause: 'truncated',
  }),
  cutWithin('R-09 end-within-a-chunk', [{ send: `${CHUNKED}9\r\nhalf` }, 'end'], `${CHUNKED}9\r\nhalf`, {
    reason: 'upstream_truncated',
    cause: 'truncated',
  }),
  cutWithin(
    'R-09 end-between-chunks',
    [{ send: `${CHUNKED}4\r\nhalf\r\n` }, 'end'],
    `${CHUNKED}4\r\nhalf\r\n`,
    { reason: 'upstream_truncated', cause: 'truncated' },
  ),
  cutWithin(
    'R-09 end-within-a-chunk-size',
    [{ send: `${CHUNKED}4\r\nhalf\r\n1` }, 'end'],
    `${CHUNKED}4\r\nhalf\r\n`,
    { reason: 'upstream_truncated', cause: 'truncated' },
  ),
  cutWithin(
    'R-09 end-within-the-last-chunk',
    [{ send: `${CHUNKED}4\r\nhalf\r\n0\r\n` }, 'end'],
    `${CHUNKED}4\r\nhalf\r\n`,
    { reason: 'upstream_truncated', cause: 'truncated' },
  ),
  cutWithin(
    'R-09 end-within-the-last-line-end',
    [{ send: `${CHUNKED}4\r\nhalf\r\n0\r\n\r` }, 'end'],
    `${CHUNKED}4\r\nhalf\r\n`,
    { reason: 'upstream_truncated', cause: 'truncated' },
  ),
  cutWithin(
    'R-09 end-within-trailers',
    [{ send: `${CHUNKED}4\r\nhalf\r\n0\r\nX-A: o` }, 'end'],
    `${CHUNKED}4\r\nhalf\r\n`,
    { reason: 'upstream_truncated', cause: 'truncated' },
  ),
  cutWithin('R-09 reset-within-a-length', [{ send: `${LENGTH}half` }, 'reset'], `${LENGTH}half`, {
    reason: 'upstream_truncated',
  }),
  cutWithin('R-09 reset-within-a-chunk', [{ send: `${CHUNKED}9\r\nhalf` }, 'reset'], `${CHUNKED}9\r\nhalf`, {
    reason: 'upstream_truncated',
  }),
];

const post = (method: string, length: number, ...fields: readonly string[]): string =>
  [`${method} /upload HTTP/1.1`, 'Host: {HOST}', `Content-Length: ${length}`, ...fields, '', ''].join('\r\n');
const ended = (sent: string): string => sent.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');

const early = (
  name: string,
  sent: string,
  script: OriginScript,
  record: OriginExpectation['record'] = { outcome: 'injected' },
): OriginRow => ({
  id: `R-09 ${name}`,
  script,
  expect: { client: ended(sent), end: 'ended', record },
});

const TOO_LARGE = response([], 'no', '413 Content Too Large');
const EXPECTING = [post('POST', 4, 'Expect: 100-continue'), 'body'];

const beforeTheBodyEnded: readonly OriginRow[] = [
  early('refusal-within-a-body', TOO_LARGE, {
    request: [`${post('POST', 100_000)}part`],
    response: [{ send: TOO_LARGE }],
  }),
  early('success-within-a-body', response([]), {
    request: [`${post('PUT', 100_000)}part`],
    response: [{ send: response([]) }],
  }),
  early('response-within-chunks', response([]), {
    request: ['POST / HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe'],
    response: [{ send: response([]) }],
  }),
  early('response-then-reset-within-a-body', TOO_LARGE, {
    request: [`${post('POST', 100_000)}part`],
    response: [{ send: TOO_LARGE }, 'responded', 'reset'],
  }),
  early('response-then-end-within-a-body', TOO_LARGE, {
    request: [`${post('POST', 100_000)}part`],
    response: [{ send: TOO_LARGE }, 'end'],
  }),
  early('refusal-in-place-of-continue', TOO_LARGE, { request: EXPECTING, response: [{ send: TOO_LARGE }] }),
  early('expectation-failed', response([], '', '417 Expectation Failed'), {
    request: EXPECTING,
    response: [{ send: response([], '', '417 Expectation Failed') }],
  }),
  early('redirect-in-place-of-continue', response(['Location: /b'], '', '307 Temporary Redirect'), {
    request: EXPECTING,
    response: [{ send: response(['Location: /b'], '', '307 Temporary Redirect') }],
  }),
  early('success-in-place-of-continue', response([]), {
    request: EXPECTING,
    response: [{ send: response([]) }],
  }),
  {
    id: 'R-09 reset-within-a-body',
    script: { request: [`${post('POST', 100_000)}part`], response: ['reset'] },
    expect: {
      client: { refused: 'upstream_closed' },
      end: 'ended',
      record: { outcome: 'failed', status: 502, reason: 'upstream_closed' },
    },
  },
  {
    id: 'R-09 end-within-a-body',
    script: { request: [`${post('POST', 100_000)}part`], response: ['end'] },
    expect: {
      client: { refused: 'upstream_closed' },
      end: 'ended',
      record: { outcome: 'failed', status: 502, reason: 'upstream_closed' },
    },
  },
  {
    id: 'R-09 malformed-response-within-a-body',
    script: { request: [`${post('POST', 100_000)}part`], response: [{ send: 'SSH-2.0-OpenSSH\r\n' }] },
    expect: {
      client: { refused: 'upstream_malformed' },
      end: 'ended',
      record: { outcome: 'failed', status: 502, reason: 'upstream_malformed' },
    },
  },
];

/** The host ends the exchange and may not have read the body (a CL.0 desync). */
const unread = (method: string, status: string, host: 'reused' | 'fresh'): OriginRow =>
  relayed(
    `R-09 ${method.toLowerCase()}-with-response-${status.slice(0, 3)}`,
    response([], 'ok', status),
    undefined,
    {
      script: {
        request: [`${post(method, 4)}body`],
        response: ['body', { send: response([], 'ok', status) }],
      },
      expect: { host, body: 'body' },
    },
  );

const perhapsUnread: readonly OriginRow[] = [
  unread('GET', '200 OK', 'fresh'),
  unread('DELETE', '200 OK', 'fresh'),
  unread('OPTIONS', '204 No Content', 'fresh'),
  unread('POST', '404 Not Found', 'fresh'),
  unread('POST', '302 Found', 'fresh'),
  unread('PATCH', '500 Oops', 'fresh'),
  unread('POST', '200 OK', 'reused'),
  unread('PUT', '201 Created', 'reused'),
].map((row) => (row.id.endsWith('204') ? noContent(row) : row));

function noContent(row: OriginRow): OriginRow {
  const sent = 'HTTP/1.1 204 No Content\r\n\r\n';
  return {
    ...row,
    script: { ...row.script, response: ['body', { send: sent }] },
    expect: { ...row.expect, client: sent },
  };
}

/** On a reused connection, which the host may have been about to close. */
const afterReuse: readonly OriginRow[] = [
  {
    id: 'R-09 end-on-reuse-for-a-get',
    script: { before: 1, response: ['end'] },
    expect: {
      client: 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nX-Plain: yes\r\n\r\n/',
      arrivals: 4,
      record: { outcome: 'injected', status: 200 },
    },
  },
  {
    id: 'R-09 reset-on-reuse-for-a-delete',
    script: { before: 1, request: ['DELETE /a HTTP/1.1\r\nHost: {HOST}\r\n\r\n'], response: ['reset'] },
    expect: {
      client: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Plain: yes\r\n\r\n/a',
      arrivals: 4,
      record: { outcome: 'injected', status: 200 },
    },
  },
  {
    id: 'R-09 end-on-reuse-for-a-post',
    script: {
      before: 1,
      request: ['POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n'],
      response: ['end'],
    },
    expect: { client: '', end: 'cut', record: { outcome: 'failed', reason: 'upstream_closed' } },
  },
  {
    id: 'R-09 reset-on-reuse-for-a-put-with-a-body',
    script: { before: 1, request: [`${post('PUT', 4)}body`], response: ['body', 'reset'] },
    expect: {
      client: '',
      end: 'cut',
      record: { outcome: 'failed', reason: 'upstream_closed' },
      body: 'body',
    },
  },
  {
    id: 'R-09 end-after-a-byte-on-reuse',
    script: { before: 1, response: [{ send: 'H' }, 'end'] },
    expect: {
      client: { refused: 'upstream_closed' },
      record: { outcome: 'failed', status: 502, reason: 'upstream_closed' },
    },
  },
];

export const cutRows: readonly OriginRow[] = [
  ...beforeTheHead,
  ...withinTheBody,
  ...beforeTheBodyEnded,
  ...perhapsUnread,
  ...afterReuse,
];
