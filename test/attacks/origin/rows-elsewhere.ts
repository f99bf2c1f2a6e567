// D-20 and D-21: responses that direct a client, or a proxy that follows them, to another destination.
import { response, relayed } from './row-shapes.ts';
import type { OriginRow } from './origin-script.ts';

const EVIL = 'http://127.0.0.1:{ELSEWHERE}/';

/** The port placeholder is replaced; the client reads what the host sent. */
const redirects: readonly (readonly [name: string, status: string, fields: readonly string[]])[] = [
  ['moved-permanently', '301 Moved Permanently', [`Location: ${EVIL}`]],
  ['found', '302 Found', ['Location: https://evil.test/steal']],
  ['see-other', '303 See Other', ['Location: //evil.test/']],
  ['temporary', '307 Temporary Redirect', [`Location: https://api.test@evil.test/`]],
  ['permanent', '308 Permanent Redirect', ['Location: https://evil.test\\@api.test/']],
  ['to-http', '302 Found', ['Location: http://api.test/']],
  ['to-itself', '302 Found', ['Location: /']],
  ['to-a-file', '302 Found', ['Location: file:///etc/passwd']],
  [
    'to-the-metadata-service',
    '307 Temporary Redirect',
    ['Location: http://169.254.169.254/latest/meta-data/'],
  ],
  ['to-nowhere', '302 Found', ['Location:']],
  ['to-two-places', '302 Found', ['Location: /a', 'Location: https://evil.test/']],
  ['use-proxy', '305 Use Proxy', ['Location: http://evil.test:3128/']],
  [
    'multiple-choices',
    '300 Multiple Choices',
    ['Location: https://evil.test/', 'Link: <https://evil.test/>; rel=alternate'],
  ],
  ['refresh', '200 OK', ['Refresh: 0; url=https://evil.test/']],
  ['content-location', '200 OK', ['Content-Location: https://evil.test/']],
  ['preload', '200 OK', ['Link: <https://evil.test/a.js>; rel=preload']],
  ['retry-after', '503 Service Unavailable', ['Retry-After: 0', 'Location: https://evil.test/']],
];

const redirectRows = redirects.map(([name, status, fields]) =>
  relayed(`D-20 ${name}`, response(fields, 'gone', status)),
);

const posted: OriginRow = relayed(
  'D-20 temporary-for-a-post',
  response(['Location: https://evil.test/'], '', '307 Temporary Redirect'),
  undefined,
  {
    script: {
      request: ['POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 4\r\n\r\nbody'],
      response: ['body', { send: response(['Location: https://evil.test/'], '', '307 Temporary Redirect') }],
    },
    // A host that refuses a body may not have read it.
    expect: { host: 'fresh', body: 'body' },
  },
);

const services: readonly (readonly [name: string, sent: string, client: string])[] = [
  ['h3-elsewhere', response(['Alt-Svc: h3="evil.test:443"; ma=86400']), response([])],
  ['h2-at-another-port', response(['Alt-Svc: h2=":8443"; persist=1']), response([])],
  ['lower-case', response(['alt-svc: h3=":443"', 'X-A: one']), response(['X-A: one'])],
  ['upper-case', response(['ALT-SVC: h3-29=":443"']), response([])],
  [
    'several',
    response(['Alt-Svc: h3=":1"', 'X-A: one', 'Alt-Svc: h3=":2"', 'Alt-Svc: clear']),
    response(['X-A: one']),
  ],
  ['clear', response(['Alt-Svc: clear']), response([])],
  ['nothing', response(['Alt-Svc:']), response([])],
  ['quoted-tricks', response(['Alt-Svc: h3="evil.test:443\\"; ma=1, h2=\\":1"']), response([])],
  [
    'in-a-hint',
    `HTTP/1.1 103 Early Hints\r\nAlt-Svc: h3=":1"\r\nLink: </a>\r\n\r\n${response([])}`,
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${response([])}`,
  ],
  [
    'in-a-304',
    'HTTP/1.1 304 Not Modified\r\nAlt-Svc: h3=":443"\r\nETag: "a"\r\n\r\n',
    'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n',
  ],
  [
    'in-an-error',
    response(['Alt-Svc: h3=":443"'], 'no', '500 Internal Server Error'),
    response([], 'no', '500 Internal Server Error'),
  ],
  [
    'in-a-421',
    response(['Alt-Svc: h3=":443"'], '', '421 Misdirected Request'),
    response([], '', '421 Misdirected Request'),
  ],
  [
    'as-a-trailer',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAlt-Svc: h3=":1"\r\n\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
];

const serviceRows = services.map(([name, sent, client]) => relayed(`D-21 ${name}`, sent, client));

export const elsewhereRows: readonly OriginRow[] = [...redirectRows, posted, ...serviceRows];
