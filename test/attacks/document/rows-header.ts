// H-05, H-06: names and values that no document may inject, in every place where a document may contain one.
import { type DocumentRow, refusedRow, takenRow } from './document-script.ts';

const header = (name: unknown, value: unknown, type = 'plaintext'): unknown => ({
  rules: [{ match_hosts: ['api.test'], headers: [{ name, type, value }] }],
});
const called = (name: unknown, value: unknown, type = 'plaintext'): unknown => ({
  callbacks: [
    {
      match_hosts: ['api.test'],
      url: 'https://cb.test/',
      ttl_seconds: 60,
      request_headers: [{ name, type, value }],
    },
  ],
});
const VALUE = 'rules.0.headers.0.value value_error';
const NAME = 'rules.0.headers.0.name value_error';
const CALLED_VALUE = 'callbacks.0.request_headers.0.value value_error';
const CALLED_NAME = 'callbacks.0.request_headers.0.name value_error';

const VALUES: readonly (readonly [name: string, value: string])[] = [
  ['crlf-and-a-field', 'canary\r\nX-Evil: 1'],
  ['crlf-and-a-request', 'canary\r\n\r\nGET /evil HTTP/1.1\r\nHost: api.test'],
  ['line-feed', 'canary\nX-Evil: 1'],
  ['carriage-return', 'canary\rX-Evil: 1'],
  ['fold', 'canary\r\n folded'],
  ['newline-of-a-file', 'canary\n'],
  ['crlf-of-a-file', 'canary\r\n'],
  ['nul', 'canary\u0000more'],
  ['nul-at-the-end', 'canary\u0000'],
  ['escape', 'canary\u001b[2J'],
  ['delete', 'canary\u007f'],
  ['vertical-tab', 'canary\u000b'],
  ['latin-letter', 'canary-\u00e9'],
  ['c1-control', 'canary\u0085X-Evil: 1'],
  ['line-separator', 'canary\u2028X-Evil: 1'],
  ['letter-whose-low-byte-is-cr', 'canary\u010d\u010aX-Evil: 1'],
  ['fullwidth-crlf', 'canary\uff0d\uff0a'],
  ['emoji', 'canary\u{1f600}'],
  ['byte-order-mark', '\ufeffcanary'],
  ['blank-in-front', ' canary'],
  ['blank-at-the-end', 'canary '],
  ['tab-at-the-end', 'canary\t'],
  ['only-blanks', '  '],
  ['empty', ''],
];

const valueRows: readonly DocumentRow[] = [
  ...VALUES.map(([name, value]) => refusedRow(`H-05 plaintext-${name}`, header('X-Key', value), [VALUE])),
  ...VALUES.filter(([, value]) => value !== '').flatMap(([name, value], i) =>
    i % 3 === 0 ? [refusedRow(`H-05 opaque-${name}`, header('X-Key', value, 'opaque'), [VALUE])] : [],
  ),
  ...VALUES.filter(([, value]) => value.startsWith('canary')).flatMap(([name, value], i) =>
    i % 3 === 1
      ? [refusedRow(`H-05 template-${name}`, header('X-Key', `{GOOD}${value}`, 'workspace_secret'), [VALUE])]
      : [],
  ),
  ...VALUES.flatMap(([name, value], i) =>
    i % 3 === 2 ? [refusedRow(`H-05 to-a-callback-${name}`, called('X-Key', value), [CALLED_VALUE])] : [],
  ),
  refusedRow(
    'H-05 opaque-empty',
    header('X-Key', '', 'opaque'),
    [VALUE],
    ['rules.0.headers.0.value missing'],
  ),
  refusedRow('H-05 beyond-8192', header('X-Key', 'c'.repeat(8_193)), [
    'rules.0.headers.0.value string_too_long',
  ]),
  ...(['CRLF', 'NEWLINE', 'NUL', 'LATIN', 'LONG'] as const).map((name) =>
    refusedRow(
      `H-05 a-secret-with-${name}`,
      header('X-Key', `Bearer {${name}}`, 'workspace_secret'),
      [],
      [VALUE],
    ),
  ),
  takenRow(
    'H-05 every-visible-byte',
    header('X-Key', Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('')),
    {
      ask: [['api.test', '/']],
      arrived: [[`X-Key: ${Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('')}`]],
    },
  ),
];

const NAMES: readonly (readonly [name: string, field: string])[] = [
  ['host', 'Host'],
  ['host-in-capitals', 'HOST'],
  ['content-length', 'Content-Length'],
  ['content-length-by-underscore', 'content_length'],
  ['transfer-encoding', 'Transfer-Encoding'],
  ['transfer-encoding-by-underscore', 'Transfer_Encoding'],
  ['connection', 'Connection'],
  ['te', 'TE'],
  ['trailer', 'Trailer'],
  ['upgrade', 'upgrade'],
  ['keep-alive', 'Keep-Alive'],
  ['keep-alive-by-underscore', 'Keep_Alive'],
  ['expect', 'Expect'],
  ['proxy-authorization', 'Proxy-Authorization'],
  ['proxy-connection', 'Proxy-Connection'],
  ['proxy-of-any-kind', 'proxy-anything'],
  ['proxy-by-underscore', 'PROXY_AUTHENTICATE'],
  ['pseudo-path', ':path'],
  ['pseudo-authority', ':authority'],
  ['pseudo-unknown', ':x'],
  ['empty', ''],
  ['blank-inside', 'a b'],
  ['blank-in-front', ' X-Key'],
  ['blank-at-the-end', 'X-Key '],
  ['colon-inside', 'X-Key:'],
  ['crlf-inside', 'X-Key: 1\r\nX-Evil'],
  ['nul-inside', 'X\u0000Key'],
  ['delete-inside', 'X\u007fKey'],
  ['latin-letter', 'X-K\u00e9y'],
  ['kelvin-sign', 'X-\u212aey'],
  ['slash', 'X/Key'],
  ['quoted', '"X-Key"'],
  ['bracket', 'X-Key[]'],
  ['tab', 'X\tKey'],
];

const nameRows: readonly DocumentRow[] = [
  ...NAMES.map(([name, field]) => refusedRow(`H-06 ${name}`, header(field, 'canary'), [NAME])),
  ...NAMES.flatMap(([name, field], i) =>
    i % 4 === 0 ? [refusedRow(`H-06 opaque-${name}`, header(field, 'canary', 'opaque'), [NAME])] : [],
  ),
  ...NAMES.flatMap(([name, field], i) =>
    i % 4 === 1 ? [refusedRow(`H-06 to-a-callback-${name}`, called(field, 'canary'), [CALLED_NAME])] : [],
  ),
  ...['Content-Type', 'content_encoding', 'ACCEPT', 'Accept-Encoding'].map((field) =>
    refusedRow(`H-06 to-a-callback-its-own-${field.toLowerCase()}`, called(field, 'canary'), [CALLED_NAME]),
  ),
  refusedRow('H-06 beyond-256', header(`X-${'k'.repeat(255)}`, 'canary'), [
    'rules.0.headers.0.name string_too_long',
  ]),
  refusedRow(
    'H-06 twice-in-one-rule',
    {
      rules: [
        {
          match_hosts: ['api.test'],
          headers: ['X-Key', 'x-key'].map((name) => ({ name, type: 'plaintext', value: 'canary' })),
        },
      ],
    },
    ['rules.0.headers.1.name value_error'],
  ),
  refusedRow(
    'H-06 twice-by-underscore',
    {
      rules: [
        {
          match_hosts: ['api.test'],
          headers: ['X-Api-Key', 'X_Api_Key', 'X-Api_Key'].map((name) => ({
            name,
            type: 'opaque',
            value: 'canary',
          })),
        },
      ],
    },
    ['rules.0.headers.1.name value_error', 'rules.0.headers.2.name value_error'],
  ),
  takenRow(
    'H-06 cookie-and-forwarded-are-the-tenants-own',
    {
      rules: [
        {
          match_hosts: ['api.test'],
          headers: [
            ['Cookie', 'a=1'],
            ['X-Forwarded-For', '192.0.2.1'],
          ].map(([name, value]) => ({ name, type: 'plaintext', value })),
        },
      ],
    },
    {
      ask: [['api.test', '/']],
      arrived: [['Cookie: a=1', 'X-Forwarded-For: 192.0.2.1']],
    },
  ),
];

export const headerRows: readonly DocumentRow[] = [...valueRows, ...nameRows];
