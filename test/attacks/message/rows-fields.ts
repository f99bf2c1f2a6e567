// H-01 to H-04, H-07: fields that the client sends with, instead of or about the injected field.
import {
  type MessageExpectation,
  type MessageRow,
  accepted,
  arrival,
  malformed,
  post,
  refused,
  request,
  rowsOf,
} from './message-script.ts';

/** The request arrives with these of its fields and the injected one. */
const arrives = (...fields: readonly string[]): MessageExpectation => accepted(arrival('GET /x', fields));
const nothingSeen: MessageExpectation = { ...arrives(), unseen: ['AGENT'] };

const nominations: readonly (readonly [string, readonly string[]])[] = [
  ['credential', ['Connection: authorization']],
  ['credential-and-its-field', ['Connection: Authorization', 'Authorization: Bearer AGENT']],
  ['credential-after-close', ['Connection: keep-alive, authorization', 'Authorization: Bearer AGENT']],
  ['credential-in-upper-case', ['Connection: AUTHORIZATION']],
  ['credential-in-a-second-field', ['Connection: keep-alive', 'Connection: authorization']],
  ['before-the-field', ['Connection: x-a, x-b', 'X-A: AGENT', 'X-B: AGENT']],
  ['after-the-field', ['X-A: AGENT', 'Connection: x-a']],
  ['all-fields-of-the-name', ['X-A: AGENT', 'Connection: x-a', 'x-a: AGENT']],
  ['empty-members', ['Connection: , ,authorization,,']],
  ['tabs-around', ['Connection: \tauthorization\t,\tx-a', 'X-A: AGENT']],
  ['cookie', ['Connection: cookie', 'Cookie: AGENT']],
  ['proxy-connection-too', ['Proxy-Connection: authorization', 'Connection: proxy-connection']],
  ['itself', ['Connection: connection, authorization']],
  ['what-is-not-there', ['Connection: x-not-there']],
  ['underscored', ['Connection: x_a', 'X_A: AGENT']],
];

const badNominations: readonly (readonly [string, string, MessageExpectation])[] = [
  ['host', 'Connection: close, Host', malformed],
  ['length', 'Connection: content-length', malformed],
  ['coding', 'Connection: Transfer-Encoding', malformed],
  ['quoted', 'Connection: "authorization"', malformed],
  ['parameter', 'Connection: close; authorization', malformed],
  ['two-words', 'Connection: close authorization', malformed],
  ['above-ascii', 'Connection: authoriz\xe4tion', malformed],
  [
    '65-options',
    `Connection: ${Array.from({ length: 65 }, (_, i) => `a${i}`).join(',')}`,
    refused(431, 'head_too_large'),
  ],
];

const hopByHop: readonly (readonly [string, readonly string[]])[] = [
  ['keep-alive', ['Keep-Alive: timeout=5, max=AGENT']],
  ['te', ['TE: trailers, AGENT']],
  ['te-gzip', ['TE: gzip;q=AGENT']],
  ['trailer', ['Trailer: X-AGENT']],
  ['upgrade', ['Upgrade: AGENT']],
  ['proxy-authenticate', ['Proxy-Authenticate: Basic realm="AGENT"']],
  ['proxy-connection', ['Proxy-Connection: AGENT']],
  ['proxy-authentication-info', ['Proxy-Authentication-Info: AGENT']],
  ['proxy-unknown', ['Proxy-Anything: AGENT']],
  ['http2-settings', ['HTTP2-Settings: AGENT']],
  ['connection-of-another-hop', ['Connection: AGENT']],
];

/** On the proxy port this is the token of a sandbox, and an unknown token is refused. */
const proxyTokens: readonly (readonly [string, readonly string[]])[] = [
  ['proxy-authorization', ['Proxy-Authorization: Basic AGENT']],
  ['proxy-authorization-twice', ['Proxy-Authorization: Basic AGENT', 'proxy-authorization: Bearer AGENT']],
  ['upper-case', ['PROXY-AUTHORIZATION: AGENT', 'KEEP-ALIVE: AGENT']],
];

const sameField: readonly (readonly [string, readonly string[]])[] = [
  ['once', ['Authorization: Bearer AGENT']],
  ['twice', ['Authorization: Bearer AGENT', 'Authorization: Bearer AGENT2']],
  ['two-cases', ['authorization: AGENT', 'AUTHORIZATION: AGENT']],
  ['mixed-case', ['aUtHoRiZaTiOn: AGENT']],
  ['empty', ['Authorization:']],
  ['spaces', ['Authorization:    ']],
  ['list', ['Authorization: Bearer AGENT, Bearer AGENT']],
  ['other-scheme', ['Authorization: Basic QUdFTlQ6QUdFTlQ=']],
  ['very-value', ['Authorization: Bearer {SECRET}']],
  ['latin1', ['Authorization: Bearer AGENT\xff']],
  ['tab-first', ['Authorization:\tBearer AGENT']],
  ['no-space', ['Authorization:Bearer AGENT']],
  ['4-kib', [`Authorization: Bearer AGENT${'a'.repeat(4096)}`]],
  ['fifty', Array.from({ length: 50 }, (_, i) => `Authorization: Bearer AGENT${i}`)],
];

const keys: readonly (readonly [string, readonly string[]])[] = [
  ['all-underscored', ['X_Api_Key: AGENT']],
  ['first-underscored', ['X_Api-Key: AGENT']],
  ['last-underscored', ['X-Api_Key: AGENT']],
  ['lower-case', ['x_api_key: AGENT']],
  ['upper-case', ['X_API_KEY: AGENT']],
  ['beside-the-hyphened', ['X-Api-Key: AGENT', 'X_Api_Key: AGENT']],
  ['three-spellings', ['X_Api-Key: AGENT', 'X-Api_Key: AGENT', 'x_API_key: AGENT']],
  ['nominated', ['Connection: x_api_key', 'X_Api_Key: AGENT']],
  ['hyphened-nominated', ['Connection: x-api-key', 'X-Api-Key: AGENT']],
  ['among-others', ['A: 1', 'X_Api_Key: AGENT', 'B: 2']],
];

const propertyNames = [
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  '__defineGetter__',
];

export const fieldRows: readonly MessageRow[] = [
  ...rowsOf(
    'H-01',
    nominations.map(([name, fields]) => [name, request('GET /x', fields), nothingSeen]),
  ),
  ...rowsOf(
    'H-01',
    badNominations.map(([name, field, expect]) => [name, request('GET /x', [field]), expect]),
  ),
  ...rowsOf('H-01', [
    [
      'with-close',
      `${request('GET /x', ['Connection: close, authorization'])}${request('GET /next')}`,
      { ...arrives(), ends: true },
    ],
  ]),
  ...rowsOf(
    'H-01',
    [
      ['key', request('GET /x', ['Connection: X-Api-Key']), arrives()],
      ['key-underscored', request('GET /x', ['Connection: x_api_key']), arrives()],
      [
        'key-and-credential',
        request('GET /x', ['Connection: x-api-key, authorization', 'Authorization: AGENT']),
        nothingSeen,
      ],
    ],
    { policy: 'api_key' },
  ),
  ...rowsOf(
    'H-02',
    hopByHop.map(([name, fields]) => [name, request('GET /x', fields), nothingSeen]),
  ),
  ...rowsOf(
    'H-02',
    proxyTokens.map(([name, fields]) => [name, request('GET /x', fields), nothingSeen]),
    { on: ['tunnel'] },
  ),
  ...rowsOf(
    'H-02',
    proxyTokens.map(([name, fields]) => [
      `${name}-as-token`,
      request('GET /x', fields),
      { arrivals: [], responses: [{ status: 407, code: 'proxy_auth_required' }] },
    ]),
    { on: ['plain'] },
  ),
  ...rowsOf(
    'H-03',
    sameField.map(([name, fields]) => [name, request('GET /x', fields), nothingSeen]),
  ),
  ...rowsOf('H-03', [
    [
      'between-others',
      request('GET /x', ['A: 1', 'Authorization: AGENT', 'B: 2']),
      { ...arrives('A: 1', 'B: 2'), unseen: ['AGENT'] },
    ],
    [
      'names-that-only-begin-so',
      request('GET /x', ['Authorization2: a', 'X-Authorization: b', 'Authorizatio: c']),
      arrives('Authorization2: a', 'X-Authorization: b', 'Authorizatio: c'),
    ],
    [
      'with-a-body',
      post('/x', ['Authorization: AGENT', 'Content-Length: 3'], 'abc'),
      { ...accepted(arrival('POST /x', ['Content-Length: 3'], 'abc')), unseen: ['AGENT'] },
    ],
    [
      'http-1.0',
      request('GET /x', ['Authorization: AGENT']).replace(' HTTP/1.1', ' HTTP/1.0'),
      {
        arrivals: [
          { ...arrival('GET /x'), head: ['GET /x HTTP/1.1', 'Host: {HOST}', 'Connection: close', '{AUTH}'] },
        ],
        responses: [{ status: 200, body: 'GET /x' }],
        ends: true,
        unseen: ['AGENT'],
      },
    ],
  ]),
  ...rowsOf(
    'H-04',
    keys.map(([name, fields]) => [
      name,
      request('GET /x', fields),
      { ...arrives(...fields.filter((field) => /^[AB]:/.test(field))), unseen: ['AGENT'] },
    ]),
    { policy: 'api_key' },
  ),
  ...rowsOf('H-04', [
    ['another-name', request('GET /x', ['X_Api_Key: mine']), arrives('X_Api_Key: mine')],
    ['host', request('GET /x', ['X_Host: a']), arrives('X_Host: a')],
    ['path-override', request('GET /x', ['X_Original_URL: /AGENT']), nothingSeen],
  ]),
  ...rowsOf(
    'H-07',
    propertyNames.map((name) => [
      `name-${name.toLowerCase().replaceAll('_', '')}`,
      request('GET /x', [`${name}: {"a":1}`, `${name}: b`]),
      arrives(`${name}: {"a":1}`, `${name}: b`),
    ]),
  ),
  ...rowsOf('H-07', [
    [
      'nominated',
      request('GET /x', ['Connection: __proto__, constructor', '__proto__: AGENT', 'constructor: AGENT']),
      nothingSeen,
    ],
    [
      'expected',
      post('/x', ['Expect: __proto__', 'Content-Length: 3'], 'abc'),
      refused(417, 'expectation_failed'),
    ],
    [
      'as-a-method',
      request('__proto__ /x', ['__proto__: a']),
      accepted(arrival('__proto__ /x', ['__proto__: a'])),
    ],
    ['as-a-method-of-a-map', request('constructor /x'), accepted(arrival('constructor /x'))],
    ['as-an-upgrade', request('GET /x', ['Connection: Upgrade', 'Upgrade: __proto__']), arrives()],
  ]),
];
