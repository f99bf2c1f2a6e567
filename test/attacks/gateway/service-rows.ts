// What code in a box sends as the response of its service, to speak for the gateway, for another service or for the next request.
// Each row has what must not be in the bytes that the client gets, and what must.

export type ServiceRow = {
  readonly id: string;
  /** `{PORT}` is the port of the gateway. */
  readonly bytes: string;
  readonly never?: RegExp;
  readonly expected: RegExp;
};

const OK = 'Content-Length: 2\r\n\r\nok';
const withField = (line: string): string => `HTTP/1.1 200 OK\r\n${line}\r\n${OK}`;
const anyCookie = /set-cookie/i;
const OURS = /sallyport-service=/i;
const SANDBOXED = /\r\nContent-Security-Policy: sandbox (?![^\r]*allow-same-origin)/;
const served = /^HTTP\/1\.1 200 /;
const refused = /^HTTP\/1\.1 502 [^]*\r\nX-Sallyport-Error: target_/;

export const serviceRows: readonly ServiceRow[] = [
  ...[
    'sallyport',
    'Sallyport-Service',
    '__Host-sallyport-service',
    '__secure-SALLYPORT',
    ' sallyport-service',
    '',
  ]
    .map((name) => ({
      id: `sets our cookie: "${name}"`,
      bytes: withField(`Set-Cookie: ${name}=sallyport-service=x; Path=/`),
    }))
    .map((row) => ({ ...row, never: anyCookie, expected: served })),
  {
    id: 'sets a cookie for the whole host',
    bytes: withField('Set-Cookie: a=1; path = /; Domain=127.0.0.1; PATH=/; Path\t=/'),
    never: /\r\nSet-Cookie: (?!box-[^=]*-a=1; Path=\/services\/[^;]*\r)/i,
    expected: /\r\nSet-Cookie: box-/,
  },
  {
    id: 'sets our cookie in an early hint',
    bytes: `HTTP/1.1 103 Early Hints\r\nSet-Cookie: sallyport-service=x\r\n\r\n${withField('A: b')}`,
    never: anyCookie,
    expected: served,
  },
  {
    id: 'sets our cookie in a trailer',
    bytes:
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Set-Cookie\r\n\r\n2\r\nok\r\n0\r\nSet-Cookie: sallyport-service=x\r\n\r\n',
    never: anyCookie,
    expected: served,
  },
  {
    id: 'sets our cookie in a folded field',
    bytes: withField('A: b\r\n Set-Cookie: sallyport-service=x'),
    never: /\nset-cookie/i,
    expected: /^HTTP\/1\.1 (?:200|502) /,
  },
  {
    id: 'sets our cookie behind a bare CR',
    bytes: withField('A: b\rSet-Cookie: sallyport-service=x'),
    never: OURS,
    expected: refused,
  },
  {
    id: 'sends a second response behind the first',
    bytes: `${withField('A: b')}HTTP/1.1 200 OK\r\nSet-Cookie: sallyport-service=x\r\n${OK}`,
    never: OURS,
    expected: served,
  },
  {
    id: 'frames its response twice',
    bytes: withField('Transfer-Encoding: chunked'),
    expected: refused,
  },
  {
    id: 'switches protocols without being asked',
    bytes:
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: sallyport-service=x\r\n\r\n',
    never: OURS,
    expected: refused,
  },
  {
    id: 'sends a head without an end',
    bytes: `HTTP/1.1 200 OK\r\nA: ${'a'.repeat(100_000)}`,
    never: /aaaa/,
    expected: refused,
  },
  {
    id: 'gives its page the origin of the gateway',
    bytes: withField('Content-Security-Policy: sandbox allow-scripts allow-same-origin'),
    expected: SANDBOXED,
  },
  {
    id: 'has its policy removed as a field of one hop',
    bytes: withField('Connection: content-security-policy, close'),
    expected: SANDBOXED,
  },
  {
    id: 'responds as the gateway',
    bytes: withField('X-Sallyport-Error: unauthenticated'),
    never: /x-sallyport-error/i,
    expected: served,
  },
  ...[
    'Clear-Site-Data',
    'Strict-Transport-Security',
    'Alt-Svc',
    'Service-Worker-Allowed',
    'Secure-Session-Registration',
  ].map((name) => ({
    id: `speaks for the origin: ${name}`,
    bytes: withField(`${name}: x`),
    never: new RegExp(name, 'i'),
    expected: served,
  })),
  ...[
    '/boxes/1/download',
    'http://127.0.0.1:{PORT}/boxes/1',
    '//127.0.0.1:{PORT}/boxes/1',
    '/services/2/80/',
  ].map((location) => ({
    id: `leads to another place of the gateway: ${location}`,
    bytes: withField(`Location: ${location}`),
    never: /\r\nLocation: (?!(?:http:\/\/127\.0\.0\.1:\d+)?\/services\/11111111)/i,
    expected: /\r\nLocation: /,
  })),
];
