// over HTTP/2: a host that sends invalid responses. Its client gets a refusal or a reset, and never a
// truncated response that looks complete.
import { type H2Expectation, type H2Row, type H2Step, arrival } from './h2-script.ts';

const failed = (stream: string): H2Expectation => ({ streams: { 1: stream }, arrives: [arrival()] });
const AGAIN = 'again';
/** A GET whose session was lost without a response is sent again (ARCHITECTURE, decisions). */
const again: H2Expectation = { streams: { 1: '200' }, arrives: [arrival(), arrival()] };
const ok: readonly [string, string] = [':status', '200'];

const table: readonly (readonly [id: H2Row['id'], host: readonly H2Step[], stream: string])[] = [
  [
    'R-02 h2-length-and-a-longer-body',
    [{ head: [ok, ['content-length', '3']] }, { data: 'abcdef', isEnd: true }],
    '200 RST PROTOCOL_ERROR|200 RST INTERNAL_ERROR|200 RST CANCEL|502 upstream_closed|502 upstream_malformed|RST PROTOCOL_ERROR',
  ],
  [
    'R-02 h2-length-and-a-shorter-body',
    [{ head: [ok, ['content-length', '9']] }, { data: 'abc', isEnd: true }],
    '200 RST PROTOCOL_ERROR|200 RST INTERNAL_ERROR|200 RST CANCEL|502 upstream_closed|502 upstream_malformed|RST PROTOCOL_ERROR',
  ],
  [
    'R-02 h2-status-of-two-digits',
    [{ head: [[':status', '20']], isEnd: true }],
    '502 upstream_closed|502 upstream_malformed|RST PROTOCOL_ERROR',
  ],
  [
    'R-02 h2-no-status',
    [{ head: [['x', 'y']], isEnd: true }],
    '502 upstream_closed|502 upstream_malformed|RST PROTOCOL_ERROR',
  ],
  [
    'R-02 h2-transfer-encoding',
    [{ head: [ok, ['transfer-encoding', 'chunked']], isEnd: true }],
    '502 upstream_closed|502 upstream_malformed|RST PROTOCOL_ERROR',
  ],
  [
    'R-04 h2-switching-protocols',
    [{ head: [[':status', '101']] }, { data: 'abc', isEnd: true }],
    '502 upstream_closed|502 upstream_malformed|RST PROTOCOL_ERROR',
  ],
  ['R-09 h2-a-body-before-its-head', [{ data: 'abc', isEnd: true }], AGAIN],
  ['R-09 h2-fin-instead-of-a-response', [{ leave: 'fin' }], AGAIN],
];

export const h2HostRows: readonly H2Row[] = table.map(([id, host, stream]) => ({
  id,
  script: { host },
  expect: stream === AGAIN ? again : failed(stream),
}));
