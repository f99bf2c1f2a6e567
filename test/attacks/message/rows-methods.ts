// H-08, H-13: methods that make an origin echo its request, and heads that are too large.
import {
  type MessageRow,
  accepted,
  arrival,
  malformed,
  post,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

const noMethod = refused(405, 'method_refused');
const tooLarge = refused(431, 'head_too_large');
const tooLong = refused(414, 'uri_too_long');
const a = (count: number): string => 'a'.repeat(count);

export const methodRows: readonly MessageRow[] = [
  ...rowsOf('H-08', [
    ['trace', request('TRACE /v1'), noMethod],
    ['trace-with-max-forwards', request('TRACE /v1', ['Max-Forwards: 0']), noMethod],
    ['trace-with-credential', request('TRACE /v1', ['Authorization: Bearer AGENT']), noMethod],
    ['trace-with-body', request('TRACE /v1', ['Content-Length: 3'], 'abc'), noMethod],
    ['trace-with-chunks', request('TRACE /v1', ['Transfer-Encoding: chunked'], '0\r\n\r\n'), noMethod],
    ['trace-on-http-1.0', request('TRACE /v1').replace(' HTTP/1.1', ' HTTP/1.0'), noMethod],
    ['track', request('TRACK /v1'), noMethod],
    ['track-with-max-forwards', request('TRACK /v1', ['Max-Forwards: 9']), noMethod],
    [
      'trace-after-get',
      `${request('GET /x')}${request('TRACE /x')}`,
      {
        arrivals: [arrival('GET /x')],
        responses: [{ status: 200 }, { status: 405, code: 'method_refused' }],
        ends: true,
      },
    ],
    ['options-with-max-forwards-of-zero', request('OPTIONS /v1', ['Max-Forwards: 0']), noMethod],
    ['options-with-max-forwards', request('OPTIONS /v1', ['Max-Forwards: 10']), noMethod],
    ['options-with-max-forwards-in-lower-case', request('OPTIONS /v1', ['max-forwards: 1']), noMethod],
    ['options', request('OPTIONS /v1'), accepted(arrival('OPTIONS /v1'))],
    [
      'max-forwards-elsewhere',
      request('GET /v1', ['Max-Forwards: 0']),
      accepted(arrival('GET /v1', ['Max-Forwards: 0'])),
    ],
    ['lower-case-trace', request('trace /v1'), noMethod],
    ['mixed-case-trace', request('Trace /v1'), noMethod],
    ['lower-case-track', request('track /v1'), noMethod],
    ['debug', request('DEBUG /v1'), accepted(arrival('DEBUG /v1'))],
  ]),
  ...rowsOf('H-08', [['connect-in-the-tunnel', request('CONNECT {HOST}'), noMethod]], { on: ['tunnel'] }),
  ...rowsOf('H-13', [
    ['value-of-1-mib', request('GET /x', [`X: ${a(1 << 20)}`]).slice(0, 40_000), tooLarge],
    ['value-of-16-kib', request('GET /x', [`X: ${a(16_384)}`]), tooLarge],
    ['name-of-16-kib', request('GET /x', [`${a(16_384)}: x`]), tooLarge],
    ['name-without-end', `GET {AT}/x HTTP/1.1\r\nHost: {HOST}\r\n${a(17_000)}`, tooLarge],
    [
      '500-fields',
      request(
        'GET /x',
        Array.from({ length: 500 }, (_, i) => `X-${i}: a`),
      ),
      tooLarge,
    ],
    [
      '101-fields',
      request(
        'GET /x',
        Array.from({ length: 100 }, (_, i) => `X-${i}: a`),
      ),
      tooLarge,
    ],
    [
      'many-empty-fields',
      request(
        'GET /x',
        Array.from({ length: 3000 }, () => 'X:'),
      ),
      tooLarge,
    ],
    [
      'fields-of-4-kib',
      request(
        'GET /x',
        Array.from({ length: 4 }, (_, i) => `X-${i}: ${a(4096)}`),
      ),
      tooLarge,
    ],
    ['target-of-16-kib', request(`GET /${a(16_000)}`), tooLong],
    ['target-of-9-kib', request(`GET /${a(9216)}`), tooLong],
    ['query-of-9-kib', request(`GET /?${a(9216)}`), tooLong],
    ['target-without-end', `GET {AT}/${a(12_000)}`, tooLong],
    ['method-of-33', request(`${'M'.repeat(33)} /x`), noMethod],
    ['method-of-16-kib', request(`${'M'.repeat(16_000)} /x`), noMethod],
    ['method-without-end', 'M'.repeat(17_000), noMethod],
    ['version-without-end', `GET {AT}/x HTTP/1.1${'1'.repeat(17_000)}`, malformed],
    ['host-of-9-kib', `GET {AT}/x HTTP/1.1\r\nHost: ${a(9216)}\r\n\r\n`, refused(400, 'host_invalid')],
    ['connection-of-9-kib', request('GET /x', [`Connection: ${'a,'.repeat(4608)}`]), tooLarge],
    ['length-of-9-kib', post('/x', [`Content-Length: ${'1'.repeat(9216)}`]), malformed],
    ['target-of-8000', request(`GET /${a(8000)}`), accepted(arrival(`GET /${a(8000)}`))],
    ['method-of-32', request(`${'M'.repeat(32)} /x`), accepted(arrival(`${'M'.repeat(32)} /x`))],
    [
      '99-fields',
      request(
        'GET /x',
        Array.from({ length: 99 }, (_, i) => `X-${i}: a`),
      ),
      accepted(
        arrival(
          'GET /x',
          Array.from({ length: 99 }, (_, i) => `X-${i}: a`),
        ),
      ),
    ],
  ]),
];
