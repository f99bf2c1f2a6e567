// R-10 and H-09 to H-11: what a host puts into its response to disclose secrets to the sandbox, and error texts.
import { SECRET } from '../../invariants/credential-scene.ts';
import { response, malformed, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const bytes = Buffer.from(SECRET);
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const stars = (text: string): string => '*'.repeat(text.length);
const escaped = [...bytes].map((byte) => `%${byte.toString(16)}`).join('');

/** The same fields in the head that is sent and in the one that the client may read. */
const hidden = (name: string, sent: string, secret: string): OriginRow =>
  relayed(`H-09 ${name}`, sent, sent.replaceAll(secret, stars(secret)));

const echoes: readonly OriginRow[] = [
  hidden('value', response([`X-Echo: ${SECRET}`]), SECRET),
  hidden('rendered-value', response([`X-Echo: authorization: Bearer ${SECRET}`]), `Bearer ${SECRET}`),
  hidden('value-twice', response([`X-Echo: ${SECRET}, ${SECRET}`]), SECRET),
  hidden('value-glued-to-itself', response([`X-Echo: ${SECRET}${SECRET}`]), SECRET),
  hidden('cookie', response([`Set-Cookie: session=${SECRET}; HttpOnly`]), SECRET),
  hidden(
    'challenge',
    response([`WWW-Authenticate: Basic realm="${SECRET}"`], '', '401 Unauthorized'),
    SECRET,
  ),
  hidden('error-reason', response([], 'no', `400 Bad key ${SECRET}`), SECRET),
  hidden('reason-alone', response([], 'no', `401 ${SECRET}`), SECRET),
  hidden(
    'redirect',
    response([`Location: https://evil.test/?key=${encodeURIComponent(SECRET)}`], '', '302 Found'),
    encodeURIComponent(SECRET),
  ),
  hidden('every-byte-escaped', response([`Location: /?key=${escaped}`], '', '302 Found'), escaped),
  hidden(
    'every-byte-escaped-in-capitals',
    response([`Location: /?key=${escaped.toUpperCase()}`], '', '302 Found'),
    escaped.toUpperCase(),
  ),
  hidden('hexadecimal', response([`ETag: "${bytes.toString('hex')}"`]), bytes.toString('hex')),
  hidden(
    'hexadecimal-in-capitals',
    response([`ETag: "${bytes.toString('hex').toUpperCase()}"`]),
    bytes.toString('hex').toUpperCase(),
  ),
  hidden(
    'early-hint',
    `HTTP/1.1 103 Early Hints\r\nLink: <https://evil.test/${SECRET}>\r\n\r\n${response([])}`,
    SECRET,
  ),
  hidden('not-modified', `HTTP/1.1 304 Not Modified\r\nETag: "${SECRET}"\r\n\r\n`, SECRET),
  hidden('vary', response([`Vary: ${SECRET}`]), SECRET),
  hidden('content-type', response([`Content-Type: text/plain; charset=${SECRET}`]), SECRET),
  // Only the part of base64 that the secret alone determines is known in advance; the rest is not masked.
  relayed(
    'H-09 base64',
    response([`X-Echo: ${base64(SECRET)}`]),
    response([`X-Echo: ${stars(base64(SECRET).slice(0, 29))}${base64(SECRET).slice(29)}`]),
  ),
  ...['a:', 'ab:', 'abc:'].map((user): OriginRow => basic(user)),
  relayed(
    'H-09 trailer',
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Echo: ${SECRET}\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ),
  relayed(
    'H-09 chunk-extension',
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;key="${SECRET}"\r\nok\r\n0\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  ),
  relayed(
    'H-09 nominated-and-dropped',
    response([`Connection: x-echo, ${'x'.repeat(8)}`, `X-Echo: ${SECRET}`]),
    response([]),
  ),
  relayed('H-09 body', response([], `you sent ${SECRET}`), undefined, { expect: { isLeakDocumented: true } }),
];

function basic(user: string): OriginRow {
  const whole = base64(`${user}${SECRET}`);
  const from = Math.ceil((user.length * 8) / 6);
  const to = Math.floor(((user.length + SECRET.length) * 8) / 6);
  const masked = `${whole.slice(0, from)}${'*'.repeat(to - from)}${whole.slice(to)}`;
  return relayed(
    `H-09 basic-after-${user.length}-bytes`,
    response([`X-Echo: Basic ${whole}`]),
    response([`X-Echo: Basic ${masked}`]),
  );
}

const range = (value: string): readonly string[] => [
  `GET /echo HTTP/1.1\r\nHost: {HOST}\r\nRange: ${value}\r\n\r\n`,
];
const partial = (slice: string, at: string): string =>
  response([`Content-Range: bytes ${at}/22`], slice, '206 Partial Content');

/** Bodies are relayed unchanged, also slices and codings of them (SECURITY.md, Limits). */
const oracles: readonly OriginRow[] = [
  relayed('H-10 four-bytes', partial(SECRET.slice(0, 4), '0-3'), undefined, {
    script: { request: range('bytes=0-3'), response: [{ send: partial(SECRET.slice(0, 4), '0-3') }] },
  }),
  relayed(
    'H-10 range-in-a-206',
    response([`Content-Range: bytes ${SECRET}`], '', '416 Range Not Satisfiable'),
    response([`Content-Range: bytes ${stars(SECRET)}`], '', '416 Range Not Satisfiable'),
    {
      script: {
        request: range('bytes=99-'),
        response: [{ send: response([`Content-Range: bytes ${SECRET}`], '', '416 Range Not Satisfiable') }],
      },
    },
  ),
  relayed(
    'H-10 several-ranges',
    response([`Content-Type: multipart/byteranges; boundary=${SECRET}`], '--', '206 Partial Content'),
    response([`Content-Type: multipart/byteranges; boundary=${stars(SECRET)}`], '--', '206 Partial Content'),
    {
      script: {
        request: range('bytes=0-3,4-7'),
        response: [
          {
            send: response(
              [`Content-Type: multipart/byteranges; boundary=${SECRET}`],
              '--',
              '206 Partial Content',
            ),
          },
        ],
      },
    },
  ),
  relayed(
    'H-10 length-of-what-was-hidden',
    response([`X-Length: ${SECRET.length}`, `X-Echo: ${SECRET}`], 'x'.repeat(SECRET.length)),
    response([`X-Length: ${SECRET.length}`, `X-Echo: ${stars(SECRET)}`], 'x'.repeat(SECRET.length)),
  ),
  relayed('H-10 range-that-was-ignored', response(['Accept-Ranges: none'], 'whole'), undefined, {
    script: { request: range('bytes=0-0'), response: [{ send: response(['Accept-Ranges: none'], 'whole') }] },
  }),
  relayed(
    'H-10 digest-of-the-whole',
    response([`Repr-Digest: sha-256=:${base64('digest')}:`], SECRET.slice(0, 5), '206 Partial Content'),
  ),
];

/** A session that a host opens for the owner of the credential is relayed to the sandbox (SECURITY.md, Limits). */
const cookies: readonly OriginRow[] = [
  ['session', 'sid=31d4d96e407aad42; Path=/; Secure; HttpOnly'],
  ['session-for-a-wider-domain', 'sid=1; Domain=test'],
  ['session-with-a-prefix', '__Host-sid=1; Path=/; Secure'],
  ['session-without-a-name', '=1'],
  ['session-in-a-list', 'a=1, b=2'],
  ['session-that-ends', 'sid=; Max-Age=0'],
].map(([name = '', value = '']) => relayed(`H-11 ${name}`, response([`Set-Cookie: ${value}`])));

const failing = (name: string, host: string, code: string, status: number): OriginRow => ({
  id: `R-10 ${name}`,
  script: { host, response: [] },
  expect: { client: { refused: code }, record: { outcome: 'failed', status, reason: code } },
});

/** Whatever text the host or the system returns, the client reads a fixed text of the proxy. */
const errors: readonly OriginRow[] = [
  failing('name-that-cannot-be-resolved', 'lost.test:443', 'dns_failed', 502),
  failing('port-that-refuses', 'api.test:1', 'upstream_unreachable', 502),
  failing('certificate-for-another-name', 'bad.test', 'upstream_untrusted', 502),
  malformed('R-10 secret-in-a-malformed-head', `HTTP/1.1 200 OK\r\nX-Echo: ${SECRET}\n\r\n`, 'bare_lf'),
  malformed('R-10 secret-in-place-of-a-head', `${SECRET}\r\n\r\n`, 'version_malformed'),
  malformed('R-10 secret-as-a-name', `HTTP/1.1 200 OK\r\n${SECRET}: 1\r\n\r\n`, 'name_malformed'),
  malformed(
    'R-10 secret-as-a-length',
    `HTTP/1.1 200 OK\r\nContent-Length: ${SECRET}\r\n\r\n`,
    'content_length_malformed',
  ),
  malformed(
    'R-10 stack-trace-in-place-of-a-head',
    'Error: connect ECONNREFUSED 10.1.2.3:5432\n    at TCPConnectWrap',
    'version_malformed',
  ),
];

export const echoRows: readonly OriginRow[] = [...echoes, ...oracles, ...cookies, ...errors];
