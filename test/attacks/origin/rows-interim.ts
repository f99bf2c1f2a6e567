// interim heads that are many, large, malformed, unsolicited, or not followed by a final response.
import { refusals } from './origin-violations.ts';
import { response, malformed, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const HINT = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const FINAL = response([]);
const hintOf = (bytes: number): string =>
  `HTTP/1.1 103 Early Hints\r\nX-Pad: ${'x'.repeat(bytes - 37)}\r\n\r\n`;
const post = (...fields: readonly string[]): string =>
  ['POST /upload HTTP/1.1', 'Host: {HOST}', 'Content-Length: 4', ...fields, '', ''].join('\r\n');

const expecting = [post('Expect: 100-continue'), 'body'];

/** A relayed hint cannot be undone; after it the client reads a refusal. */
const refused: readonly OriginRow[] = [
  malformed(
    'R-04 continue-with-a-length',
    `HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n${FINAL}`,
    'content_length_unexpected',
  ),
  malformed(
    'R-04 continue-with-a-length-of-zero',
    `HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n${FINAL}`,
    'content_length_unexpected',
  ),
  malformed(
    'R-04 continue-with-chunks',
    `HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${FINAL}`,
    'transfer_encoding_unexpected',
  ),
  malformed(
    'R-04 hint-with-a-length',
    `HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\nok${FINAL}`,
    'content_length_unexpected',
  ),
  malformed(
    'R-04 processing-with-chunks',
    `HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n${FINAL}`,
    'transfer_encoding_unexpected',
  ),
  malformed(
    'R-04 hint-with-two-lengths',
    `HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n${FINAL}`,
    'content_length_repeated',
  ),
  malformed('R-04 continue-with-a-body', `${CONTINUE}surprise${FINAL}`, 'version_malformed'),
  malformed('R-04 continue-with-an-extra-line-end', `${CONTINUE}\r\n${FINAL}`, 'version_malformed'),
  malformed('R-04 continue-with-a-bare-lf', `HTTP/1.1 100 Continue\n\n${FINAL}`, 'bare_lf'),
  malformed('R-04 continue-by-http-12', `HTTP/1.2 100 Continue\r\n\r\n${FINAL}`, 'version_unsupported'),
  malformed('R-04 twenty-one-continues', CONTINUE.repeat(21) + FINAL, 'too_many_interim_responses'),
  malformed(
    'R-04 ten-thousand-continues',
    [{ repeat: CONTINUE, times: 10_000 }, FINAL],
    'too_many_interim_responses',
  ),
  malformed(
    'R-04 continue-of-thirty-three-kibibytes',
    `HTTP/1.1 100 Continue\r\nX-Pad: ${'x'.repeat(33_000)}\r\n\r\n${FINAL}`,
    'head_too_large',
  ),
  malformed(
    'R-04 continues-of-ninety-kibibytes',
    `HTTP/1.1 100 Continue\r\nX-Pad: ${'x'.repeat(30_000)}\r\n\r\n`.repeat(3) + FINAL,
    'too_many_interim_responses',
  ),
];

const within = (id: OriginRow['id'], sent: string, whole: string, cause: string): OriginRow => ({
  id,
  script: { response: [{ send: sent }] },
  // The refusal follows the relayed hints.
  expect: {
    client: whole + refusal('upstream_malformed'),
    record: { outcome: 'failed', status: 502, reason: 'upstream_malformed', cause },
  },
});

function refusal(error: string): string {
  const [status = '', message = '', hint] = refusals[error] ?? [];
  const body = `${JSON.stringify({ error, message, hint })}\n`;
  return response(['X-Sallyport-Error: none'], body, status)
    .replace('X-Sallyport-Error: none\r\n', 'Content-Type: application/json\r\n')
    .replace(/(Content-Length: \d+\r\n)/, `$1X-Sallyport-Error: ${error}\r\nCache-Control: no-store\r\n`);
}

const afterHints: readonly OriginRow[] = [
  within('R-04 twenty-one-hints', HINT.repeat(21) + FINAL, HINT.repeat(20), 'too_many_interim_responses'),
  within(
    'R-04 hints-of-ninety-kibibytes',
    hintOf(30_000).repeat(3) + FINAL,
    hintOf(30_000).repeat(2),
    'too_many_interim_responses',
  ),
  within(
    'R-04 hint-then-a-malformed-head',
    `${HINT}HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok`,
    HINT,
    'bare_lf',
  ),
  within('R-04 hint-then-no-head', `${HINT}<html>`, HINT, 'version_malformed'),
  within(
    'R-04 hint-then-unasked-101',
    `${HINT}HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`,
    HINT,
    'unasked_101',
  ),
  {
    id: 'R-04 hint-then-the-end',
    script: { response: [{ send: HINT }, 'end'] },
    expect: {
      client: HINT + refusal('upstream_closed'),
      record: { outcome: 'failed', status: 502, reason: 'upstream_closed', cause: 'no_response' },
    },
  },
  {
    id: 'R-04 half-a-hint-then-the-end',
    script: { response: [{ send: HINT.slice(0, 40) }, 'end'] },
    expect: {
      client: { refused: 'upstream_closed' },
      record: { outcome: 'failed', status: 502, reason: 'upstream_closed', cause: 'no_response' },
    },
  },
];

const passed: readonly OriginRow[] = [
  relayed('R-04 one-hint', HINT + FINAL),
  relayed('R-04 twenty-hints', HINT.repeat(20) + FINAL),
  relayed('R-04 sixty-kibibytes-of-hints', hintOf(30_000).repeat(2) + FINAL),
  relayed('R-04 processing', `HTTP/1.1 102 Processing\r\n\r\n${FINAL}`),
  relayed('R-04 status-199', `HTTP/1.1 199 Odd\r\nX-A: one\r\n\r\n${FINAL}`),
  relayed('R-04 unasked-continue', CONTINUE + FINAL, FINAL),
  relayed('R-04 twenty-unasked-continues', CONTINUE.repeat(20) + FINAL, FINAL),
  relayed('R-04 continue-between-hints', HINT + CONTINUE + HINT + FINAL, HINT + HINT + FINAL),
  relayed('R-04 hint-byte-by-byte', HINT + FINAL, HINT + FINAL, {
    script: { response: [{ drip: HINT + FINAL }] },
  }),
  relayed(
    'R-04 hint-with-hop-by-hop-fields',
    `HTTP/1.1 103 Early Hints\r\nConnection: close, X-A\r\nX-A: one\r\nProxy-Authenticate: Basic\r\nLink: </a>\r\n\r\n${FINAL}`,
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${FINAL}`,
  ),
  relayed('R-04 hint-to-http-10', HINT + FINAL, FINAL.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'), {
    script: { response: [{ send: HINT + FINAL }], request: ['GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n'] },
    expect: { end: 'ended' },
  }),
  relayed('R-04 hint-before-head', `${HINT}HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n`, undefined, {
    script: {
      response: [{ send: `${HINT}HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n` }],
      request: ['HEAD / HTTP/1.1\r\nHost: {HOST}\r\n\r\n'],
    },
  }),
  relayed('R-04 continue-that-was-asked-for', CONTINUE + FINAL, CONTINUE + FINAL, {
    script: { request: expecting, response: [{ send: CONTINUE }, 'go', 'body', { send: FINAL }] },
    expect: { body: 'body' },
  }),
  relayed('R-04 requested-continue-sent-twice', CONTINUE + CONTINUE + FINAL, undefined, {
    script: { request: expecting, response: [{ send: CONTINUE + CONTINUE }, 'go', 'body', { send: FINAL }] },
    expect: { body: 'body' },
  }),
  relayed('R-04 hint-in-place-of-continue', HINT + CONTINUE + FINAL, undefined, {
    script: {
      request: expecting,
      response: [{ send: HINT }, { send: CONTINUE }, 'go', 'body', { send: FINAL }],
    },
    expect: { body: 'body' },
  }),
  relayed('R-04 continue-after-the-body', CONTINUE + FINAL, FINAL, {
    script: { request: [`${post()}body`], response: ['body', { send: CONTINUE }, { send: FINAL }] },
    expect: { body: 'body' },
  }),
];

export const interimRows: readonly OriginRow[] = [...refused, ...afterHints, ...passed];
