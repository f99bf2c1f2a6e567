// who reaches the admin API without being its operator: what runs beside it, what came through a proxy,
// a page in a browser (CSRF, DNS rebinding), and what they can read.
import { type AdminRow, BEARER, HOST, JSON_TYPE, adminRow, request } from './admin-script.ts';

const CONFIG = '/v1/proxy_config';
const STOLEN = '{"rules":[]}';
const FORM_TYPE = 'Content-Type: application/x-www-form-urlencoded';

/** What a proxy leaves in a request, with the right token too. */
const MARKS: readonly (readonly [name: string, field: string])[] = [
  ['via', 'Via: 1.1 sidecar'],
  ['via-empty', 'Via:'],
  ['forwarded', 'Forwarded: for=127.0.0.1;host=localhost'],
  ['x-forwarded-for', 'X-Forwarded-For: 127.0.0.1'],
  ['x-forwarded-host', 'X-Forwarded-Host: localhost'],
  ['x-forwarded-of-any-kind', 'X-Forwarded-Prefix: /v1'],
  ['proxy-authorization', 'Proxy-Authorization: Bearer <TOKEN>'],
  ['proxy-connection', 'Proxy-Connection: keep-alive'],
  ['upgrade', 'Upgrade: h2c'],
  ['in-capitals', 'VIA: 1.0 x'],
];

const reachRows: readonly AdminRow[] = [
  ...MARKS.map(([name, field]) =>
    adminRow(
      `A-01 marked-by-${name}`,
      request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE, field], STOLEN),
      403,
      '403 proxied',
    ),
  ),
  adminRow('A-01 read-without-a-token', request(`GET ${CONFIG}`, [HOST]), 401),
  adminRow('A-01 records-without-a-token', request('GET /v1/records', [HOST]), 401),
  adminRow('A-01 records-with-the-token-in-the-query', request('GET /v1/records?token=<TOKEN>', [HOST]), 401),
  adminRow(
    'A-01 records-through-a-proxy',
    request('GET /v1/records', [HOST, BEARER, 'Via: 1.1 sidecar']),
    403,
  ),
  adminRow(
    'A-01 records-with-a-filter-that-is-a-script',
    request('GET /v1/records?status=%3Cscript%3Ealert(1)%3C/script%3E', [HOST, BEARER]),
    422,
  ),
  adminRow('A-01 records-with-a-filter-twice', request('GET /v1/records?rule=a&rule=b', [HOST, BEARER]), 422),
  adminRow(
    'A-01 write-without-a-token',
    request(`PUT ${CONFIG}`, [HOST, JSON_TYPE], STOLEN),
    401,
    '401 no_token',
  ),
  adminRow(
    'A-01 secrets-without-a-token',
    request('PUT /v1/workspace_secrets', [HOST, JSON_TYPE], '{"A":"b"}'),
    401,
    '401 no_token',
  ),
  adminRow(
    'A-01 a-sandbox-without-a-token',
    request('POST /v1/sandboxes', [HOST, JSON_TYPE], '{}'),
    401,
    '401 no_token',
  ),
  adminRow(
    'A-01 remove-without-a-token',
    request('DELETE /v1/sandboxes/tenant-a', [HOST]),
    401,
    '401 no_token',
  ),
  adminRow('A-01 absolute-form', request(`GET http://localhost${CONFIG}`, [HOST, BEARER]), 403),
  adminRow(
    'A-01 absolute-form-of-another-host',
    request(`PUT http://evil.test${CONFIG}`, [HOST, BEARER, JSON_TYPE], STOLEN),
    403,
    '403 proxied',
  ),
  adminRow(
    'A-01 connect-to-itself',
    request('CONNECT localhost:<ADMIN>', [HOST, BEARER]),
    403,
    '403 proxied',
    { ends: true },
  ),
  adminRow('A-01 options-of-everything', request('OPTIONS *', [HOST, BEARER]), 403, '403 proxied', {
    ends: true,
  }),
  {
    id: 'A-01 through-the-proxy-with-the-token',
    script: {
      entry: 'proxy',
      turns: [[request('GET http://127.0.0.1:<ADMIN>/v1/proxy_config', ['Host: 127.0.0.1:<ADMIN>', BEARER])]],
    },
    expect: { statuses: [403], code: 'address_denied' },
  },
  {
    id: 'A-01 through-the-proxy-by-name',
    script: {
      entry: 'proxy',
      turns: [[request('GET http://localhost:<ADMIN>/healthz', ['Host: localhost:<ADMIN>'])]],
    },
    expect: { statuses: [403], code: 'address_denied' },
  },
  {
    id: 'A-01 through-a-tunnel',
    script: { entry: 'proxy', turns: [[request('CONNECT [::ffff:127.0.0.1]:<ADMIN>', ['Host: x'])]] },
    // Another port than the open ones, in a form that is no loopback by itself.
    expect: { statuses: [403], code: 'port_denied' },
  },
  {
    id: 'A-01 admin-paths-on-the-proxy-port',
    script: { entry: 'proxy', turns: [[request('GET /v1/proxy_config', [HOST, BEARER])]] },
    expect: { statuses: [400], code: 'not_a_proxy_request' },
  },
];

const FOREIGN: readonly (readonly [name: string, host: string])[] = [
  ['attacker', 'attacker.test'],
  ['attacker-with-port', 'attacker.test:<ADMIN>'],
  ['rebinding-service', '127.0.0.1.nip.io'],
  ['localhost-as-a-label', 'localhost.attacker.test'],
  ['ends-like-localhost', 'notlocalhost'],
  ['root-dot', 'localhost.'],
  ['root-dot-on-an-address', '127.0.0.1.'],
  ['short-address', '127.1'],
  ['decimal-address', '2130706433'],
  ['octal-address', '0177.0.0.1'],
  ['octet-too-large', '127.0.0.256'],
  ['every-interface', '0.0.0.0'],
  ['mapped', '[::ffff:127.0.0.1]'],
  ['v6-unspecified', '[::]'],
  ['metadata-name', 'metadata.google.internal'],
];
const BROKEN: readonly (readonly [name: string, fields: readonly string[]])[] = [
  ['absent', []],
  ['empty', ['Host:']],
  ['twice', [HOST, HOST]],
  ['twice-the-second-foreign', [HOST, 'Host: attacker.test']],
  ['list', ['Host: localhost, attacker.test']],
  ['userinfo', ['Host: localhost@attacker.test']],
  ['path', ['Host: localhost/..']],
  ['zone', ['Host: [::1%25lo]']],
  ['blank-inside', ['Host: local host']],
  ['port-of-letters', ['Host: localhost:http']],
  ['latin-letter', ['Host: localh\u00f6st']],
];
const rebindingRows: readonly AdminRow[] = [
  ...FOREIGN.map(([name, host]) =>
    adminRow(`A-02 host-${name}`, request('GET /healthz', [`Host: ${host}`]), 421),
  ),
  ...BROKEN.map(([name, fields]) => adminRow(`A-02 host-${name}`, request('GET /healthz', fields), 400)),
  adminRow(
    'A-02 write-under-a-foreign-host',
    request(`PUT ${CONFIG}`, ['Host: attacker.test', JSON_TYPE], STOLEN),
    421,
    '421 foreign_host',
  ),
  adminRow('A-02 ca-under-a-foreign-host', request('GET /v1/ca.pem', ['Host: attacker.test']), 421),
  adminRow(
    'A-02 wrong-token-under-a-foreign-host',
    request('GET /v1/ca.pem', ['Host: attacker.test', 'X-Api-Key: x']),
    421,
    '421 foreign_host',
  ),
  adminRow(
    'A-02 host-twice-with-the-token',
    request(`PUT ${CONFIG}`, [HOST, HOST, BEARER, JSON_TYPE], STOLEN),
    400,
    '400 bad_host',
  ),
  adminRow(
    'A-02 simple-request-of-a-page',
    request(
      `POST ${CONFIG}`,
      [HOST, 'Origin: https://attacker.test', 'Sec-Fetch-Site: cross-site', 'Content-Type: text/plain'],
      STOLEN,
    ),
    401,
    '401 no_token',
  ),
  adminRow(
    'A-02 form-of-a-page',
    request(
      'POST /v1/sandboxes',
      [HOST, 'Origin: null', 'Content-Type: application/x-www-form-urlencoded'],
      '{"id=":1}',
    ),
    401,
    '401 no_token',
  ),
  adminRow(
    'A-02 preflight',
    request(`OPTIONS ${CONFIG}`, [
      HOST,
      'Origin: https://attacker.test',
      'Access-Control-Request-Method: PUT',
      'Access-Control-Request-Headers: authorization',
    ]),
    401,
    '401 no_token',
  ),
  adminRow(
    'A-02 preflight-of-an-open-path',
    request('OPTIONS /healthz', [
      HOST,
      'Origin: https://attacker.test',
      'Access-Control-Request-Method: GET',
    ]),
    405,
    '405 method',
  ),
  adminRow(
    'A-02 private-network-preflight',
    request('OPTIONS /v1/ca.pem', [
      HOST,
      'Origin: http://attacker.test',
      'Access-Control-Request-Private-Network: true',
    ]),
    405,
    '405 method',
  ),
  adminRow(
    'A-02 cookie-as-token',
    request(`GET ${CONFIG}`, [HOST, 'Cookie: token=<TOKEN>; authorization=Bearer <TOKEN>']),
    401,
  ),
  adminRow('A-02 page-under-a-foreign-host', request('GET /ui', ['Host: attacker.test:<ADMIN>']), 421),
  adminRow('A-02 token-of-the-api-on-a-page', request('GET /ui/state', [HOST, BEARER]), 401),
  adminRow('A-02 stream-of-a-page-without-a-session', request('GET /ui/stream', [HOST]), 401),
  adminRow(
    'A-02 sign-in-under-a-foreign-host',
    request(
      'POST /ui/sign-in',
      ['Host: attacker.test', 'Origin: http://attacker.test', FORM_TYPE],
      'token=x',
    ),
    421,
    '421 foreign_host',
  ),
  ...(
    [
      ['another-site', ['Origin: https://attacker.test', 'Sec-Fetch-Site: cross-site'], 'foreign_form'],
      ['another-port', ['Origin: http://localhost:8080', 'Sec-Fetch-Site: same-site'], 'foreign_form'],
      ['a-hidden-origin', ['Origin: null'], 'foreign_form'],
      ['no-origin', [], 'foreign_form'],
      ['somebody-who-read-no-page', ['Origin: http://localhost', 'Sec-Fetch-Site: same-origin'], 'old_form'],
    ] as const
  ).map(([name, fields, reason]) =>
    adminRow(
      `A-02 sign-in-by-${name}`,
      request('POST /ui/sign-in', [HOST, ...fields, FORM_TYPE], 'token=x&next=/ui'),
      403,
      `403 ${reason}`,
    ),
  ),
  adminRow(
    'A-02 cookie-of-the-page-on-the-api',
    request(`PUT ${CONFIG}`, [HOST, JSON_TYPE, `Cookie: sallyport-admin-80=${'a'.repeat(43)}`], STOLEN),
    401,
    '401 no_token',
  ),
  adminRow('A-02 token-in-the-query', request(`GET ${CONFIG}?access_token=<TOKEN>`, [HOST]), 401),
  adminRow(
    'A-02 method-override',
    request('POST /v1/sandboxes/tenant-a', [HOST, BEARER, JSON_TYPE, 'X-HTTP-Method-Override: DELETE'], '{}'),
    405,
    '405 method',
  ),
  ...(
    [
      ['text', 'text/plain'],
      ['form', 'application/x-www-form-urlencoded'],
      ['multipart', 'multipart/form-data; boundary=x'],
      ['text-that-claims-json', 'text/plain; application/json'],
      ['json-like', 'application/json-patch+json'],
      ['two-types', 'application/json, text/plain'],
      ['other-charset', 'application/json; charset=utf-7'],
      ['empty', ''],
    ] as const
  ).map(([name, type]) =>
    adminRow(
      `A-02 content-type-${name}`,
      request(`PUT ${CONFIG}`, [HOST, BEARER, `Content-Type: ${type}`], STOLEN),
      415,
      '415 content_type',
    ),
  ),
  adminRow(
    'A-02 content-type-absent',
    request(`PUT ${CONFIG}`, [HOST, BEARER], STOLEN),
    415,
    '415 content_type',
  ),
  adminRow(
    'A-02 content-type-twice',
    request(`PUT ${CONFIG}`, [HOST, BEARER, JSON_TYPE, 'Content-Type: text/plain'], STOLEN),
    415,
    '415 content_type',
  ),
];

const openRows: readonly AdminRow[] = [
  adminRow('A-10 health', request('GET /healthz', [HOST]), 200, undefined, { bodies: ['{"status":"ok"}\n'] }),
  adminRow('A-10 health-by-address', request('GET /healthz', ['Host: 127.0.0.1:<ADMIN>']), 200, undefined, {
    bodies: ['{"status":"ok"}\n'],
  }),
  adminRow('A-10 health-in-capitals', request('GET /healthz', ['Host: LOCALHOST']), 200, undefined, {
    bodies: ['{"status":"ok"}\n'],
  }),
  adminRow('A-10 ready', request('GET /readyz', [HOST]), 200, undefined, {
    bodies: [
      '{"status":"ready","reloads":{"done":0,"failed":0,"is_current":true},"ca":{"is_ending":false}}\n',
    ],
  }),
  adminRow('A-10 health-head', request('HEAD /healthz', [HOST]), 200),
  adminRow('A-10 health-with-detail', request('GET /healthz?verbose=1', [HOST]), 422),
  adminRow('A-10 ready-with-names', request('GET /readyz?exclude=rules&verbose', [HOST]), 422),
  ...[
    '/metrics',
    '/debug/pprof',
    '/v1/sandboxes',
    '/v1/workspace_secrets',
    '/v1/sandboxes/default',
    '/config',
    '/healthz/',
    '//healthz',
    '/healthz/..',
    '/v1/ca.key',
  ].map((path) => adminRow(`A-10 nothing-at-${path}`, request(`GET ${path}`, [HOST]), 401)),
  adminRow('A-10 write-to-health', request('PUT /healthz', [HOST, JSON_TYPE], '{}'), 405, '405 method'),
  adminRow('A-10 encoded-health', request('GET /health%7a', [HOST]), 401),
  adminRow(
    'A-10 accept-of-metrics',
    request('GET /healthz', [HOST, 'Accept: application/openmetrics-text']),
    200,
    undefined,
    { bodies: ['{"status":"ok"}\n'] },
  ),
];

export const reachAdminRows: readonly AdminRow[] = [...reachRows, ...rebindingRows, ...openRows];
