// guesses at the token, and one sandbox's names and tokens where another's are meant.
import { type AdminRow, BEARER, HOST, JSON_TYPE, adminRow, request } from './admin-script.ts';

const CONFIG = '/v1/proxy_config';
const guess = (...fields: readonly string[]): string => request(`GET ${CONFIG}`, [HOST, ...fields]);
const WRONG = '401 wrong_token';

const GUESSES: readonly (readonly [name: string, fields: readonly string[]])[] = [
  ['prefix', ['X-Api-Key: canary-admin-token-']],
  ['one-more-character', ['Authorization: Bearer <TOKEN>x']],
  ['one-more-blank-inside', ['Authorization: Bearer <TOKEN> x']],
  ['quoted', ['Authorization: Bearer "<TOKEN>"']],
  ['other-scheme', ['Authorization: Token <TOKEN>']],
  ['basic', ['Authorization: Basic <TOKEN>']],
  ['no-scheme', ['Authorization: <TOKEN>']],
  ['scheme-glued', ['Authorization: Bearer<TOKEN>']],
  ['scheme-alone', ['Authorization: Bearer']],
  ['empty', ['Authorization:']],
  ['empty-key', ['X-Api-Key:']],
  ['as-a-list', ['X-Api-Key: <TOKEN>, <TOKEN>']],
  ['twice-the-right', ['X-Api-Key: <TOKEN>', 'X-Api-Key: <TOKEN>']],
  ['right-then-wrong', ['X-Api-Key: <TOKEN>', 'X-Api-Key: x']],
  ['wrong-then-right', ['X-Api-Key: x', 'X-Api-Key: <TOKEN>']],
  ['two-bearers', ['Authorization: Bearer <TOKEN>', 'Authorization: Bearer <TOKEN>']],
  ['right-bearer-wrong-key', [BEARER, 'X-Api-Key: x']],
  ['fifteen-kilobytes', [`X-Api-Key: ${'a'.repeat(15_000)}`]],
  ['latin-bytes', ['X-Api-Key: \u00e9\u00ff\u0080']],
  ['a-proxy-token', ['X-Api-Key: <TOKEN-A>']],
  ['a-proxy-token-as-basic', ['Authorization: Basic <A>']],
];

const tokenRows: readonly AdminRow[] = [
  ...GUESSES.map(([name, fields]) => adminRow(`A-03 ${name}`, guess(...fields), 401, WRONG)),
  adminRow('A-03 by-underscore', guess('X_Api_Key: <TOKEN>'), 401),
  adminRow('A-03 by-another-name', guess('Api-Key: <TOKEN>', 'X-Auth-Token: <TOKEN>'), 401),
  adminRow('A-03 wrong-on-an-open-path', request('GET /healthz', [HOST, 'X-Api-Key: x']), 401, WRONG),
  adminRow('A-03 wrong-on-no-path', request('GET /nothing', [HOST, 'X-Api-Key: x']), 401, WRONG),
  adminRow('A-03 nul-inside', guess('X-Api-Key: <TOKEN>\u0000'), 400, undefined, { ends: true }),
  {
    id: 'A-03 the-sixth-guess-waits-and-the-right-token-does-not',
    script: {
      turns: [
        ...Array.from({ length: 6 }, (_, i) => [guess(`X-Api-Key: guess-${i}`)]),
        [guess('X-Api-Key: <TOKEN>', 'X-Forwarded-For: x')],
      ],
    },
    expect: {
      statuses: [401, 401, 401, 401, 401, 429, 403],
      records: [WRONG, WRONG, WRONG, WRONG, WRONG, '429 wrong_token'],
    },
  },
];

const NO_BODY =
  '{"detail":"There is no such sandbox: GET /v1/sandboxes lists all sandboxes","code":"not_found"}\n';
const NO_PATH = '{"detail":"There is no such path: GET / lists all paths","code":"no_route"}\n';
const NO_TOKEN =
  '{"detail":"The admin token is missing: send Authorization: Bearer TOKEN or X-Api-Key: TOKEN","code":"no_token"}\n';
const own = (line: string, body?: string): string =>
  request(line, [HOST, BEARER, ...(body === undefined ? [] : [JSON_TYPE])], body);
const IDS: readonly (readonly [name: string, id: string, body: string])[] = [
  ['nobody', 'nobody', NO_BODY],
  ['in-capitals', 'TENANT-A', NO_BODY],
  ['prefix', 'tenant', NO_BODY],
  ['one-more', 'tenant-a0', NO_BODY],
  ['hyphen-behind', 'tenant-a-', NO_BODY],
  ['root-dot', 'tenant-a.', NO_BODY],
  ['proto', '__proto__', NO_BODY],
  ['constructor', 'constructor', NO_BODY],
  ['number', '0', NO_BODY],
  ['tilde', '~', NO_BODY],
  ['long', 'a'.repeat(1_000), NO_BODY],
  ['encoded', '%74enant-a', NO_PATH],
  ['encoded-twice', '%2574enant-a', NO_PATH],
  ['encoded-slash', 'default%2f..%2ftenant-a', NO_PATH],
  ['nul', 'tenant-a%00', NO_PATH],
  ['dot-segments', 'default/../tenant-a', NO_PATH],
  ['dot-segment', './tenant-a', NO_PATH],
  ['empty', '', NO_PATH],
  ['parameter', 'tenant-a;x=1', NO_PATH],
  ['star', '*', NO_PATH],
  ['list', 'tenant-a,tenant-b', NO_PATH],
];
const throughProxy = (id: AdminRow['id'], credentials: string, expect: AdminRow['expect']): AdminRow => ({
  id,
  script: {
    entry: 'proxy',
    turns: [
      [
        request('GET http://127.0.0.1:<ORIGIN>/', [
          'Host: 127.0.0.1:<ORIGIN>',
          `Proxy-Authorization: ${credentials}`,
          'X-Tenant-Id: tenant-a',
          'X-Key: mine',
          'Connection: close',
        ]),
      ],
    ],
  },
  expect,
});

const tenantRows: readonly AdminRow[] = [
  ...IDS.map(([name, id, body]) =>
    adminRow(`A-07 ${name}`, own(`GET /v1/sandboxes/${id}`), 404, undefined, { bodies: [body] }),
  ),
  adminRow('A-07 write-to-nobody', own('PUT /v1/sandboxes/nobody/proxy_config', '{}'), 404, '404 not_found', {
    bodies: ['{"detail":"There is no sandbox nobody","code":"not_found"}\n'],
  }),
  adminRow(
    'A-07 secrets-of-nobody',
    own('PUT /v1/sandboxes/nobody/workspace_secrets', '{"A":"b"}'),
    404,
    '404 not_found',
  ),
  adminRow('A-07 change-nobody', own('PATCH /v1/sandboxes/nobody', '{}'), 404, '404 not_found'),
  adminRow('A-07 remove-nobody', own('DELETE /v1/sandboxes/nobody'), 404, '404 not_found'),
  adminRow('A-07 remove-the-default', own('DELETE /v1/sandboxes/default'), 409, '409 protected'),
  adminRow(
    'A-07 make-one-twice',
    own('POST /v1/sandboxes', '{"id":"tenant-a","token":"another-token-of-the-same"}'),
    409,
    '409 exists',
  ),
  adminRow(
    'A-07 take-the-others-token',
    own('POST /v1/sandboxes', '{"id":"tenant-c","token":"<TOKEN-A>"}').replace(
      /Content-Length: \d+/,
      `Content-Length: ${'{"id":"tenant-c","token":""}'.length + 32}`,
    ),
    422,
    '422 invalid',
  ),
  adminRow(
    'A-07 there-or-not-alike-without-a-token',
    request('GET /v1/sandboxes/tenant-a', [HOST]),
    401,
    undefined,
    { bodies: [NO_TOKEN] },
  ),
  adminRow('A-07 not-there-without-a-token', request('GET /v1/sandboxes/nobody', [HOST]), 401, undefined, {
    bodies: [NO_TOKEN],
  }),
  adminRow(
    'A-07 a-header-names-another',
    request('GET /v1/sandboxes/nobody', [HOST, BEARER, 'X-Tenant-Id: tenant-a', 'X-Sandbox: tenant-a']),
    404,
    undefined,
    { bodies: [NO_BODY] },
  ),
  throughProxy('A-07 the-token-decides-not-the-header', 'Basic <B>', {
    statuses: [200],
    arrived: ['canary-value-of-b'],
  }),
  throughProxy('A-07 the-admin-token-is-no-proxy-token', 'Bearer <TOKEN>', {
    statuses: [407],
    code: 'proxy_auth_required',
  }),
  throughProxy('A-07 a-token-of-nobody', 'Basic eDpub2JvZHktaGFzLXRoaXMtdG9rZW4=', {
    statuses: [407],
    code: 'proxy_auth_required',
  }),
  throughProxy('A-07 two-tokens-as-a-list', 'Basic <B>, Basic <A>', {
    statuses: [407],
    code: 'proxy_auth_required',
  }),
];

export const tokenAdminRows: readonly AdminRow[] = [...tokenRows, ...tenantRows];
