// bodies that are endless, in tiny pieces, or compressed bombs. They are relayed unchanged with back-pressure from
// the client, and the proxy decodes nothing.
import { gzipSync } from 'node:zlib';
import { response, cutWithin, relayed } from './row-shapes.ts';
import type { OriginExpectation, OriginRow, OriginScript } from './origin-script.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const STREAM = `${OK}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n`;
const event = (text: string): string => {
  const data = `data: ${text}\n\n`;
  return `${data.length.toString(16)}\r\n${data}\r\n`;
};

/** The client disconnects; the host must not continue to send. */
const endless = (name: string, head: string, flood: string): OriginRow => ({
  id: `R-06 endless-${name}`,
  script: { response: [{ send: head }, { flood }], leavesAfter: 200_000 },
  expect: {
    client: { within: [head, { repeat: flood, times: Math.ceil(200_000 / flood.length) }] },
    end: 'cut',
    record: { outcome: 'failed', reason: 'client_gone' },
  },
});

const KIBIBYTE = 'x'.repeat(1_024);
const LONG = { repeat: KIBIBYTE, times: 512 } as const;

const silent = (
  name: string,
  script: OriginScript,
  expect: Pick<OriginExpectation, 'client' | 'end' | 'record'>,
): OriginRow => ({ id: `R-06 ${name}`, script: { ...script, isImpatient: true }, expect });

const slow: readonly OriginRow[] = [
  silent(
    'no-response',
    { response: ['closed'] },
    {
      client: { refused: 'upstream_timeout' },
      record: { outcome: 'failed', status: 504, reason: 'upstream_timeout', cause: 'response' },
    },
  ),
  silent(
    'half-a-head',
    { response: [{ send: `${OK}X-A: o` }, 'closed'] },
    {
      client: { refused: 'upstream_timeout' },
      record: { outcome: 'failed', status: 504, reason: 'upstream_timeout', cause: 'response' },
    },
  ),
  silent(
    'half-a-body',
    { response: [{ send: `${OK}Content-Length: 9\r\n\r\nhalf` }, 'closed'] },
    {
      client: `${OK}Content-Length: 9\r\n\r\nhalf`,
      end: 'cut',
      record: { outcome: 'failed', status: 200, reason: 'upstream_idle' },
    },
  ),
  silent(
    'half-a-chunk',
    { response: [{ send: `${CHUNKED}9\r\nhalf` }, 'closed'] },
    {
      client: `${CHUNKED}9\r\nhalf`,
      end: 'cut',
      record: { outcome: 'failed', status: 200, reason: 'upstream_idle' },
    },
  ),
  silent(
    'no-last-chunk',
    { response: [{ send: `${STREAM}${event('one')}` }, 'closed'] },
    {
      client: `${STREAM}${event('one')}`,
      end: 'cut',
      record: { outcome: 'failed', status: 200, reason: 'upstream_idle' },
    },
  ),
  silent(
    'never-a-continue',
    {
      request: ['POST / HTTP/1.1\r\nHost: {HOST}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody'],
      response: ['body', { send: response([]) }],
    },
    { client: response([]), record: { outcome: 'injected', status: 200 } },
  ),
].map((row) =>
  row.id.endsWith('continue') ? { ...row, expect: { ...row.expect, host: 'reused', body: 'body' } } : row,
);

const streams: readonly OriginRow[] = [
  endless('length', `${OK}Content-Length: 10000000000\r\n\r\n`, KIBIBYTE),
  endless('chunks', CHUNKED, `400\r\n${KIBIBYTE}\r\n`),
  endless('one-chunk', `${CHUNKED}1fffffffffffff\r\n`, KIBIBYTE),
  endless('without-a-length', `${OK}Connection: close\r\n\r\n`, KIBIBYTE),
  endless('events', STREAM, event('tick')),
  relayed('R-06 half-a-mebibyte', [`${OK}Content-Length: 524288\r\n\r\n`, LONG]),
  relayed('R-06 half-a-mebibyte-in-one-chunk', [`${CHUNKED}80000\r\n`, LONG, '\r\n0\r\n\r\n']),
  relayed('R-06 half-a-mebibyte-in-crumbs', [
    CHUNKED,
    { repeat: '4\r\nxxxx\r\n', times: 50_000 },
    '0\r\n\r\n',
  ]),
  relayed('R-06 body-byte-by-byte', response([], 'x'.repeat(300)), undefined, {
    script: { response: [{ drip: response([], 'x'.repeat(300)) }] },
  }),
  relayed('R-06 events-one-by-one', `${STREAM}${event('one')}${event('two')}0\r\n\r\n`, undefined, {
    script: {
      response: [{ send: STREAM }, { send: event('one') }, { send: event('two') }, { send: '0\r\n\r\n' }],
    },
  }),
];

const zeros = gzipSync(Buffer.alloc(20_000_000)).toString('latin1');
const twice = gzipSync(gzipSync(Buffer.alloc(20_000_000))).toString('latin1');

const bombs: readonly OriginRow[] = [
  relayed('R-07 gzip-of-zeros', response(['Content-Encoding: gzip'], zeros)),
  relayed('R-07 gzip-of-gzip', response(['Content-Encoding: gzip, gzip'], twice)),
  relayed(
    'R-07 six-hundred-codings',
    response([`Content-Encoding: ${'gzip, '.repeat(600)}gzip`], zeros.slice(0, 99)),
  ),
  relayed(
    'R-07 fifty-fields-of-codings',
    response(
      Array.from({ length: 50 }, () => 'Content-Encoding: br'),
      'none',
    ),
  ),
  relayed('R-07 wrong-coding', response(['Content-Encoding: gzip'], 'plain text')),
  relayed('R-07 coding-unknown', response(['Content-Encoding: zstd, dcb, exi'], '\x28\xb5\x2f\xfd\0')),
  relayed(
    'R-07 bomb-in-chunks',
    `${OK}Content-Encoding: gzip\r\n${CHUNKED.slice(OK.length)}3e8\r\n${zeros.slice(0, 1_000)}\r\n0\r\n\r\n`,
  ),
  relayed(
    'R-07 bomb-of-no-length',
    `${OK}Content-Encoding: deflate\r\n\r\n${twice}`,
    `${OK}Content-Encoding: deflate\r\nConnection: close\r\n\r\n${twice}`,
    {
      script: { response: [{ send: `${OK}Content-Encoding: deflate\r\n\r\n${twice}` }, 'end'] },
      expect: { end: 'ended', host: 'fresh', record: { outcome: 'injected', unframed: true } },
    },
  ),
  cutWithin(
    'R-07 coding-of-the-transfer',
    [{ send: `${CHUNKED}5\r\ngzip?0\r\n\r\n` }],
    `${CHUNKED}5\r\ngzip?`,
    {
      reason: 'upstream_malformed',
      cause: 'chunk_end_missing',
    },
  ),
];

export const bodyRows: readonly OriginRow[] = [...slow, ...streams, ...bombs];
