// Targets that are not a path (P-08, P-12, D-16), targets with misleading parts (P-09, P-11), and the order of rules (P-16):
// the first matching rule applies, in every reading of the target, or the request is refused.
import {
  type ExpectedArrival,
  type MessageExpectation,
  type MessageRow,
  accepted,
  arrival,
  malformed,
  refused,
  request,
  rowsOf,
} from './message-script.ts';
import { ambiguous, bare, injected, paths } from './rows-paths.ts';

const targetInvalid = refused(400, 'target_invalid');

/** Both positions are tried, because some parsers cut at the start and some at the end. */
const bytesOfNoTarget: readonly (readonly [name: string, bytes: string])[] = [
  ['fragment', '#/../admin'],
  ['fragment-alone', '#'],
  ['space', ' admin'],
  ['tab', '\tadmin'],
  ['vertical-tab', '\vadmin'],
  ['form-feed', '\fadmin'],
  ['nul', '\0admin'],
  ['unit-separator', '\x1fadmin'],
  ['delete', '\x7fadmin'],
  ['carriage-return', '\rX-Scope: all'],
  ['line-feed', '\nX-Scope: all'],
  ['next-line', '\x85admin'],
  ['no-break-space', '\xa0admin'],
  ['latin1', 'caf\xe9'],
  ['utf-8', 'caf\xc3\xa9'],
  ['quote', '"admin"'],
  ['angle-brackets', '<admin>'],
];

const noTarget: readonly MessageRow[] = [
  ...rowsOf(
    'P-08',
    bytesOfNoTarget.map(([name, bytes]) => [name, withTarget(`/v1/x${bytes}`), malformed] as const),
    { policy: 'paths' },
  ),
  ...rowsOf('P-08', [
    ['fragment-where-all-paths-are-one', withTarget('/v1/x#/y'), malformed],
    ['fragment-in-the-query', withTarget('/v1/x?a#b'), malformed],
    ['utf-8-where-all-paths-are-one', withTarget('/caf\xc3\xa9'), malformed],
  ]),
];

function withTarget(path: string): string {
  return `GET {AT}${path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n`;
}

const queries: readonly MessageRow[] = [
  ...paths(
    'P-09',
    [
      ['that-names-the-rule', '/admin?/v1/x'],
      ['that-holds-a-path', '/admin?x=/v1/'],
      ['after-the-segment-alone', '/v1?/x'],
      ['on-the-root', '/?/v1/x'],
      ['with-dots-into-the-rule', '/admin?/../v1/x'],
      ['encoded-question-mark', '/admin%3f/v1/x'],
      ['encoded-question-mark-on-the-segment', '/v1%3fx'],
    ],
    bare,
  ),
  ...paths(
    'P-09',
    [
      ['with-encoded-slashes', '/v1/x?..%2f..%2fadmin'],
      ['with-dots', '/v1/x?/../../admin'],
      ['with-a-nul', '/v1/x?%00'],
      ['with-a-line-break', '/v1/x?%0d%0aX-Scope:%20all'],
      ['with-a-broken-escape', '/v1/x?%zz'],
      ['empty', '/v1/x?'],
      ['two-question-marks', '/v1/x??/admin'],
      ['with-a-url', '/v1/x?u=http://evil.test/'],
      ['encoded-question-mark-inside', '/v1/x%3fy=1'],
    ],
    injected,
  ),
  ...paths(
    'P-09',
    [
      ['dots-after-an-encoded-question-mark', '/v1/x%3f/../../admin'],
      ['dots-before-an-encoded-question-mark', '/v1/..%3f'],
      ['dots-after-an-encoded-fragment', '/v1/x%23/../admin'],
    ],
    ambiguous,
  ),
];

const overrides: readonly (readonly [name: string, field: string, isRemoved: boolean])[] = [
  ['method-override', 'X-HTTP-Method-Override: DELETE', false],
  ['method-by-another-name', 'X-Method-Override: PUT', false],
  ['original-url', 'X-Original-URL: /admin', true],
  ['rewrite-url', 'X-Rewrite-URL: /admin', true],
  ['forwarded-uri', 'X-Forwarded-Uri: /admin', true],
  ['original-url-in-capitals', 'X-ORIGINAL-URL: /admin', true],
  ['original-url-by-underscores', 'X_Original_URL: /admin', true],
  ['forwarded-method', 'X-Forwarded-Method: DELETE', false],
  ['forwarded-prefix', 'X-Forwarded-Prefix: /v1', false],
];

/** From an injected request, fields that override the path are removed; without injection they cannot gain a credential. */
const overridden: readonly MessageRow[] = overrides.flatMap(([name, field, isRemoved]) => [
  ...rowsOf(
    'P-11',
    [[name, request('GET /v1/x', [field]), accepted(arrival('GET /v1/x', isRemoved ? [] : [field]))]],
    {
      policy: 'paths',
    },
  ),
  ...rowsOf(
    'P-11',
    [
      [
        `${name}-into-the-rule`,
        request('GET /admin', [field.replace('/admin', '/v1/x')]),
        bareWith('/admin', field.replace('/admin', '/v1/x')),
      ],
    ],
    { policy: 'paths' },
  ),
]);

function bareWith(path: string, field: string): MessageExpectation {
  const { arrivals, ...rest } = bare(path);
  return {
    ...rest,
    arrivals: arrivals.map((one): ExpectedArrival => ({ ...one, head: [...one.head, field] })),
  };
}

const start = (line: string): string => `${line} HTTP/1.1\r\nHost: {HOST}\r\n\r\n`;
const serverWide: MessageExpectation = {
  ...accepted({ head: ['OPTIONS * HTTP/1.1', 'Host: {HOST}'], body: '', framing: 'none' }),
  records: ['forwarded no_path_match'],
};
const inTunnel = { on: ['tunnel'] } as const;
const onPlain = { on: ['plain'] } as const;
const notForUs = refused(400, 'not_a_proxy_request');

const forms: readonly MessageRow[] = [
  ...rowsOf(
    'P-12',
    [
      ['options-asterisk', start('OPTIONS *'), serverWide],
      ['get-asterisk', start('GET *'), targetInvalid],
      ['head-asterisk', start('HEAD *'), targetInvalid],
      ['post-asterisk', 'POST * HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n', targetInvalid],
      ['asterisk-and-path', start('OPTIONS */v1/x'), targetInvalid],
      ['two-asterisks', start('OPTIONS **'), targetInvalid],
      ['asterisk-and-query', start('OPTIONS *?x'), targetInvalid],
      ['authority', start('GET {HOST}'), targetInvalid],
      ['host-alone', start('GET api.test'), targetInvalid],
      ['relative-path', start('GET v1/x'), targetInvalid],
      ['relative-dot-path', start('GET ./v1/x'), targetInvalid],
      ['query-alone', start('GET ?/v1/x'), targetInvalid],
      ['backslash-first', start('GET \\v1\\x'), targetInvalid],
    ],
    inTunnel,
  ),
  ...rowsOf(
    'P-12',
    [
      ['plain-options-of-the-host', start('OPTIONS http://{HOST}'), serverWide],
      ['plain-options-asterisk', start('OPTIONS *'), notForUs],
      ['plain-get-asterisk', start('GET *'), notForUs],
      ['plain-origin-form', start('GET /v1/x'), notForUs],
      ['plain-network-path', start('GET //{HOST}/v1/x'), notForUs],
      ['plain-authority-of-another', start('GET {EVIL}'), targetInvalid],
      ['plain-relative-path', start('GET v1/x'), targetInvalid],
      ['plain-asterisk-after-the-host', start('OPTIONS http://{HOST}*'), refused(400, 'authority_invalid')],
      ['plain-backslashes', start('GET http:\\\\{HOST}\\v1\\x'), targetInvalid],
      ['plain-backslash-path', start('GET http://{HOST}\\v1\\x'), refused(400, 'authority_invalid')],
    ],
    onPlain,
  ),
  ...rowsOf('P-12', [['asterisk-as-a-path', request('GET /*'), bare('/*')]], { policy: 'paths' }),
  ...rowsOf(
    'P-12',
    [
      ['plain-host-without-a-path', start('GET http://{HOST}'), bare('/')],
      ['plain-query-after-the-host', start('GET http://{HOST}?/v1/x'), bare('/?/v1/x')],
    ],
    { ...onPlain, policy: 'paths' },
  ),
];

const schemes: readonly string[] = [
  'ftp',
  'file',
  'gopher',
  'ws',
  'wss',
  'urn',
  'data',
  'unix',
  'http+unix',
  'httpx',
  'hxxp',
  'h2c',
  'ldap',
  'dict',
  'coap',
];

const schemeRows: readonly MessageRow[] = [
  ...rowsOf(
    'D-16',
    schemes.map((scheme) => [scheme, start(`GET ${scheme}://{HOST}/v1/x`), targetInvalid] as const),
  ),
  ...rowsOf('D-16', [
    ['no-scheme', start('GET ://{HOST}/v1/x'), targetInvalid],
    ['one-slash', start('GET http:/{HOST}/v1/x'), targetInvalid],
    ['no-slashes', start('GET http:{HOST}/v1/x'), targetInvalid],
    ['file-without-a-host', start('GET file:///etc/passwd'), targetInvalid],
    ['javascript', start('GET javascript:alert(1)'), targetInvalid],
    ['space-in-the-scheme', start('GET ht tp://{HOST}/v1/x'), malformed],
    ['escape-in-the-scheme', start('GET htt%70://{HOST}/v1/x'), targetInvalid],
    ['scheme-in-a-scheme', start('GET view-source:http://{HOST}/v1/x'), targetInvalid],
  ]),
  ...rowsOf('D-16', [['plain-capitals', start('GET HTTP://{HOST}/v1/x'), injected('/v1/x')]], onPlain),
  ...rowsOf('D-16', [['plain-mixed-case', start('GET hTtP://{HOST}/v1/y'), injected('/v1/y')]], onPlain),
  ...rowsOf(
    'D-16',
    [['plain-https', start('GET https://{HOST}/v1/x'), refused(400, 'use_connect')]],
    onPlain,
  ),
  ...rowsOf(
    'D-16',
    [['plain-https-in-capitals', start('GET HTTPS://{HOST}/v1/x'), refused(400, 'use_connect')]],
    onPlain,
  ),
  ...rowsOf('D-16', [['tunnel-http', start('GET http://{HOST}/v1/x'), targetInvalid]], inTunnel),
  ...rowsOf('D-16', [['tunnel-capitals', start('GET HTTPS://{HOST}/v1/x'), injected('/v1/x')]], inTunnel),
];

/** A request with the weaker credential of the first rule. */
const scoped =
  (scope: string) =>
  (path: string): MessageExpectation => ({
    ...accepted({
      head: [`GET ${path} HTTP/1.1`, 'Host: {HOST}', `X-Scope: ${scope}`],
      body: '',
      framing: 'none',
    }),
    records: ['injected'],
  });

const precedence: readonly MessageRow[] = [
  ...paths(
    'P-16',
    [
      ['first-rule', '/admin/x'],
      ['first-rule-with-slashes', '/admin//x'],
      ['first-rule-with-a-parameter', '/admin/x;y'],
    ],
    scoped('narrow'),
    'narrow_first',
  ),
  ...paths(
    'P-16',
    [
      ['slash-past-the-first-rule', '//admin/x'],
      ['letter-past-the-first-rule', '/%61dmin/x'],
      ['slash-code-past-the-first-rule', '/admin%2fx'],
      ['backslash-past-the-first-rule', '/admin\\x'],
      ['parameter-past-the-first-rule', '/admin;/x'],
      ['double-code-past-the-first-rule', '/%2561dmin/x'],
      ['dots-past-the-first-rule', '/x/../admin/x'],
      ['code-dots-past-the-first-rule', '/x/%2e%2e/admin/x'],
      ['broken-escape-past-the-first-rule', '/admin%/x'],
      ['overlong-past-the-first-rule', '/admin%c0%afx'],
      ['blurred-parameter-past-the-first-rule', '/admin;%23/x'],
    ],
    ambiguous,
    'narrow_first',
  ),
  ...paths(
    'P-16',
    [
      ['past-the-first-rule-in-every-reading', '/other/admin/x'],
      ['case-past-the-first-rule', '/Admin/x'],
      ['segment-alone', '/admin'],
    ],
    injected,
    'narrow_first',
  ),
  ...paths(
    'P-16',
    [
      ['all-before-a-part', '/admin/x'],
      ['all-before-a-part-elsewhere', '/x'],
    ],
    injected,
    'broad_first',
  ),
  ...paths('P-16', [['all-before-a-part-still-reads-paths', '/x/../admin']], ambiguous, 'broad_first'),
  ...paths('P-16', [['public', '/public/x']], scoped('public'), 'two_paths'),
  ...paths('P-16', [['private', '/v1/x']], injected, 'two_paths'),
  ...paths('P-16', [['neither', '/other']], bare, 'two_paths'),
  ...paths(
    'P-16',
    [
      ['public-then-private', '/public/../v1/x'],
      ['public-with-code-dots', '/public/%2e%2e/v1/x'],
      ['private-by-a-parameter', '/v1;/../public/x'],
    ],
    ambiguous,
    'two_paths',
  ),
  ...paths(
    'P-16',
    [
      ['callback-after-a-rule', '/other'],
      ['callback-after-a-rule-by-case', '/V1/x'],
    ],
    bare,
    'callback_after_rule',
  ),
  ...paths('P-16', [['rule-before-a-callback', '/v1/x']], injected, 'callback_after_rule'),
  ...paths(
    'P-16',
    [['ambiguous-spelling-does-not-reach-the-callback', '/%76%31/x']],
    ambiguous,
    'callback_after_rule',
  ),
  ...paths(
    'P-16',
    [
      ['star-in-a-segment', '/repos/a/contents'],
      ['star-at-the-end', '/v1x/y'],
      ['no-star', '/exact'],
      ['two-stars', '/deep/a/b/c'],
    ],
    injected,
    'stars',
  ),
  ...paths(
    'P-16',
    [
      ['star-over-a-segment', '/repos/a/b/contents'],
      ['star-with-more-after', '/repos/a/contents/x'],
      ['no-star-with-more-after', '/exact/'],
      ['two-stars-without-the-slash', '/deep'],
    ],
    bare,
    'stars',
  ),
  ...paths(
    'P-16',
    [
      ['star-that-a-code-slash-crosses', '/repos/a%2fb/contents'],
      ['star-that-a-backslash-crosses', '/repos/a\\b/contents'],
      ['star-cut-by-a-parameter', '/repos/a/contents;x'],
      ['no-star-before-a-blurred-parameter', '/exact;%2fx'],
      ['no-star-before-a-parameter-blurred-twice', '/exact;x%252fy'],
      ['star-before-a-blurred-parameter', '/repos/a/contents%3bx%5cy'],
    ],
    ambiguous,
    'stars',
  ),
];

export const targetRows: readonly MessageRow[] = [
  ...noTarget,
  ...queries,
  ...overridden,
  ...forms,
  ...schemeRows,
  ...precedence,
];
