// T-02 to T-07, one request in each row: what a client sends and the required outcome. A refused request never reaches the
// host; an accepted one reaches it exactly as listed here.
import {
  type FrameStep,
  type H2Expectation,
  type H2Row,
  type Part,
  responded,
  arrival,
  begin,
  clientRows,
  ends,
  fields,
  get,
  reset,
  served,
} from './h2-script.ts';

type Pair = readonly [name: string, value: string];
const accepted = (extra: readonly Pair[] = [], pseudo: Readonly<Record<string, string>> = {}, body = '') =>
  served(arrival(extra, pseudo, body));
const post = { ':method': 'POST' } as const;
/** A POST with this body. */
const posting = (body: string, extra: readonly Part[] = []): readonly FrameStep[] => [
  begin(extra),
  { data: body, isEnd: true },
];
const refused = responded;
/** The host may see the start of the request if it then sees the reset. */
const broken: H2Expectation = { ...responded('RST PROTOCOL_ERROR'), mayBegin: 1 };

const t02 = clientRows('T-02', [
  ['host-agrees', [get([['host', '{authority}']])], accepted()],
  ['host-in-capitals', [get([['host', 'API.TEST:{port}']])], accepted()],
  ['host-alone', [get([['host', '{authority}']], { ':authority': undefined })], accepted()],
  ['host-of-another', [get([['host', 'other.test']])], refused('400 host_mismatch')],
  ['host-with-another-port', [get([['host', 'api.test:1']])], refused('400 host_mismatch')],
  ['host-without-port', [get([['host', 'api.test']])], refused('400 host_mismatch')],
  // nghttp2 drops the field, as every invalid value, before the proxy reads it.
  ['host-with-a-space', [get([['host', '{authority} other.test']])], accepted()],
  ['host-empty', [get([['host', '']])], reset],
  [
    'host-twice',
    [
      get([
        ['host', '{authority}'],
        ['host', '{authority}'],
      ]),
    ],
    reset,
  ],
  [
    'host-of-another-twice',
    [
      get([
        ['host', '{authority}'],
        ['host', 'other.test'],
      ]),
    ],
    reset,
  ],
  ['another-name', [get([], { ':authority': 'other.test:{port}' })], refused('421 authority_mismatch')],
  [
    'another-name-and-a-host-that-agrees',
    [get([['host', '{authority}']], { ':authority': 'other.test:{port}' })],
    refused('400 host_mismatch'),
  ],
  [
    'both-name-another',
    [get([['host', 'other.test:{port}']], { ':authority': 'other.test:{port}' })],
    refused('421 authority_mismatch'),
  ],
  ['another-port', [get([], { ':authority': 'api.test:1' })], refused('421 authority_mismatch')],
  ['no-port', [get([], { ':authority': 'api.test' })], refused('421 authority_mismatch')],
  ['userinfo', [get([], { ':authority': 'user@api.test:{port}' })], reset],
  ['neither', [get([], { ':authority': undefined })], reset],
  ['authority-empty', [get([], { ':authority': '' })], reset],
  ['authority-twice', [get([[':authority', '{authority}']])], reset],
  ['authority-list', [get([], { ':authority': '{authority},other.test' })], refused('400 host_invalid')],
  ['authority-with-a-path', [get([], { ':authority': '{authority}/other.test' })], reset],
  [
    'authority-is-an-address',
    [get([], { ':authority': '127.0.0.1:{port}' })],
    refused('421 authority_mismatch'),
  ],
]);

// nghttp2 silently drops invalid fields: no rule and no host sees a byte of them.
const t03 = clientRows('T-03', [
  ['colon-in-a-name', [get([['x:a', '1']])], accepted()],
  ['space-in-a-name', [get([['x a', '1']])], accepted()],
  ['space-after-an-injected-name', [get([['authorization ', 'mine']])], accepted()],
  ['tab-after-an-injected-name', [get([['authorization\t', 'mine']])], accepted()],
  ['colon-after-an-injected-name', [get([['authorization:', 'mine']])], accepted()],
  ['nul-in-an-injected-name', [get([['authori\0zation', 'mine']])], accepted()],
  ['line-in-a-name', [get([['x\r\nauthorization', 'mine']])], accepted()],
  ['empty-name', [get([['', '1']])], accepted()],
  ['name-beyond-ascii', [get([['x-\xe9', '1']])], accepted()],
  ['cr-lf-in-a-value', [get([['x-a', '1\r\nauthorization: mine']])], accepted()],
  ['lf-in-a-value', [get([['x-a', '1\nx-b: 2']])], accepted()],
  ['cr-in-a-value', [get([['x-a', '1\rx-b: 2']])], accepted()],
  ['nul-in-a-value', [get([['x-a', '1\x002']])], accepted()],
  [
    'whole-head-in-a-value',
    [get([['x-a', '1\r\n\r\nGET /other HTTP/1.1\r\nHost: api.test\r\n\r\n']])],
    accepted(),
  ],
  ['spaces-around-a-value', [get([['x-a', ' 1 ']])], accepted()],
  [
    'injected-name-twice',
    [
      get([
        ['authorization', 'mine'],
        ['authorization', 'too'],
      ]),
    ],
    accepted(),
  ],
  ['injected-name-never-indexed', [get([['authorization', 'mine', 'never']])], accepted()],
  ['injected-name-by-the-static-table', [get([{ hex: '57046d696e65' }])], accepted()],
  [
    'injected-name-in-the-dynamic-table',
    [get([['authorization', 'mine', 'indexing'], { index: 62, times: 2 }])],
    accepted(),
  ],
  ['underscore-in-a-name', [get([['x_a', '1']])], accepted([['x_a', '1']])],
  ['value-of-obs-text', [get([['x-a', '\xfc']])], accepted([['x-a', '\xfc']])],
  ['empty-value', [get([['x-a', '']])], accepted([['x-a', '']])],
  [
    'cookies-in-crumbs',
    [
      get([
        ['cookie', 'a=1'],
        ['cookie', 'b=2', 'never'],
      ]),
    ],
    accepted([
      ['cookie', 'a=1'],
      ['cookie', 'b=2'],
    ]),
  ],
]);

const t04 = clientRows('T-04', [
  [
    'connection',
    [
      get([
        ['connection', 'x-a'],
        ['x-a', '1'],
      ]),
    ],
    reset,
  ],
  ['connection-close', [get([['connection', 'close']])], reset],
  ['connection-empty', [get([['connection', '']])], reset],
  ['connection-nominates-the-injected', [get([['connection', 'authorization']])], reset],
  ['keep-alive', [get([['keep-alive', '5']])], reset],
  ['proxy-connection', [get([['proxy-connection', 'close']])], reset],
  ['upgrade', [get([['upgrade', 'websocket']])], reset],
  [
    'upgrade-h2c',
    [
      get([
        ['upgrade', 'h2c'],
        ['http2-settings', 'AAMAAABkAAQAAP__'],
      ]),
    ],
    reset,
  ],
  ['transfer-encoding', posting('0\r\n\r\n', [['transfer-encoding', 'chunked']]), reset],
  ['transfer-encoding-on-a-get', [get([['transfer-encoding', 'identity']])], reset],
  ['te-gzip', [get([['te', 'gzip']])], reset],
  ['te-list', [get([['te', 'trailers, gzip']])], reset],
  ['te-trailers', [get([['te', 'trailers']])], accepted([['te', 'trailers']])],
  ['upper-case-name', [get([['X-A', '1']])], reset],
  ['injected-name-in-capitals', [get([['Authorization', 'mine']])], reset],
  ['one-capital-in-the-injected-name', [get([['authorizatioN', 'mine']])], reset],
  ['proxy-authorization', [get([['proxy-authorization', 'Basic eDp5']])], accepted()],
  [
    'trailers',
    [begin(), { data: 'abc' }, { head: [['x-a', '1']], stream: 1, isEnd: true }],
    accepted([], post, 'abc'),
  ],
  [
    'injected-name-among-trailers',
    [begin(), { data: 'abc' }, { head: [['authorization', 'mine']], stream: 1, isEnd: true }],
    accepted([], post, 'abc'),
  ],
  [
    'connection-among-trailers',
    [begin(), { data: 'abc' }, { head: [['connection', 'close']], stream: 1, isEnd: true }],
    broken,
  ],
]);

const server = { ':method': 'OPTIONS', ':path': '*' };
// The target is no resource on the host, so that no credential applies (RFC 9110 §9.3.7).
const ofTheServer: H2Expectation = served({
  fields: [
    [':method', 'OPTIONS'],
    [':scheme', 'https'],
    [':authority', '{authority}'],
    [':path', '*'],
  ],
  body: '',
});
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n';
const t05 = clientRows('T-05', [
  ['length-and-no-body', [{ head: fields(post, [['content-length', '5']]), isEnd: true }], reset],
  ['body-shorter', posting('abc', [['content-length', '5']]), broken],
  [
    'body-longer',
    posting('abcGET /x', [['content-length', '3']]),
    { ...ends('PROTOCOL_ERROR', 'INTERNAL_ERROR'), mayBegin: 1 },
  ],
  [
    'length-zero-and-a-request',
    posting(smuggled, [['content-length', '0']]),
    { ...ends('PROTOCOL_ERROR', 'INTERNAL_ERROR'), mayBegin: 1 },
  ],
  ['length-of-a-get-and-no-body', [get([['content-length', '43']])], reset],
  ['body-is-a-request', posting(smuggled), accepted([], post, smuggled)],
  [
    'body-is-a-last-chunk-and-a-request',
    posting(`0\r\n\r\n${smuggled}`),
    accepted([], post, `0\r\n\r\n${smuggled}`),
  ],
  [
    'get-with-a-body-that-is-a-request',
    [{ head: fields() }, { data: smuggled, isEnd: true }],
    accepted([], {}, smuggled),
  ],
  [
    'lengths-twice',
    posting('abc', [
      ['content-length', '3'],
      ['content-length', '3'],
    ]),
    reset,
  ],
  ['length-list', posting('abc', [['content-length', '3, 3']]), reset],
  ['length-signed', posting('abc', [['content-length', '+3']]), reset],
  ['length-negative', posting('abc', [['content-length', '-1']]), reset],
  ['length-hex', posting('abc', [['content-length', '0x3']]), reset],
  ['length-empty', posting('abc', [['content-length', '']]), reset],
  [
    'length-beyond-2-53',
    posting('abc', [['content-length', '9007199254740993']]),
    refused('400 malformed_request'),
  ],
  [
    'length-right',
    posting('abc', [['content-length', '3']]),
    accepted([['content-length', '3']], post, 'abc'),
  ],
  ['length-not-stated', posting('abc'), accepted([], post, 'abc')],
  ['path-with-cr-lf', [get([], { ':path': '/ HTTP/1.1\r\nx-a: 1' })], reset],
  ['path-with-a-space', [get([], { ':path': '/a b' })], reset],
  ['path-with-a-nul', [get([], { ':path': '/a\0' })], reset],
  ['path-with-a-fragment', [get([], { ':path': '/a#b' })], refused('400 malformed_request')],
  ['path-empty', [get([], { ':path': '' })], reset],
  ['path-without-a-slash', [get([], { ':path': 'row' })], reset],
  ['path-absolute', [get([], { ':path': 'https://{authority}/row' })], reset],
  ['path-absolute-of-another', [get([], { ':path': 'http://other.test/row' })], reset],
  ['path-asterisk', [get([], { ':path': '*' })], reset],
  ['path-asterisk-for-options', [get([], server)], ofTheServer],
  ['method-with-cr-lf', [get([], { ':method': 'GET / HTTP/1.1\r\nx-a: 1\r\n' })], reset],
  ['method-with-a-space', [get([], { ':method': 'GET /x' })], reset],
  ['method-empty', [get([], { ':method': '' })], reset],
  ['authority-with-cr-lf', [get([], { ':authority': '{authority}\r\nx-a: 1' })], reset],
  ['no-method', [get([], { ':method': undefined })], reset],
  ['no-path', [get([], { ':path': undefined })], reset],
  ['path-twice', [get([[':path', '/other']])], reset],
  ['method-twice', [get([[':method', 'DELETE']])], reset],
  [
    'pseudo-field-after-a-field',
    [
      get([
        ['x-a', '1'],
        [':path', '/other'],
      ]),
    ],
    reset,
  ],
  ['unknown-pseudo-field', [get([[':x-a', '1']])], reset],
  ['status', [get([[':status', '200']])], reset],
  [
    'pseudo-fields-among-trailers',
    [begin(), { data: 'abc' }, { head: [[':path', '/other']], stream: 1, isEnd: true }],
    broken,
  ],
]);

const t06 = clientRows('T-06', [
  ['https', [get([], { ':scheme': 'https' })], accepted()],
  ['http', [get([], { ':scheme': 'http' })], refused('400 target_invalid')],
  ['ftp', [get([], { ':scheme': 'ftp' })], refused('400 target_invalid')],
  ['wss', [get([], { ':scheme': 'wss' })], refused('400 target_invalid')],
  ['capitals', [get([], { ':scheme': 'HTTPS' })], refused('400 target_invalid')],
  ['none', [get([], { ':scheme': undefined })], reset],
  ['empty', [get([], { ':scheme': '' })], reset],
  ['twice', [get([[':scheme', 'https']])], reset],
  ['more-after-it', [get([], { ':scheme': 'https://other.test/?' })], reset],
  ['cr-lf', [get([], { ':scheme': 'https\r\nx-a: 1' })], reset],
]);

const tunnel = { ':method': 'CONNECT', ':scheme': undefined, ':path': undefined };
const t07 = clientRows('T-07', [
  [
    'to-a-port-of-the-same-host',
    [get([], { ...tunnel, ':authority': '127.0.0.1:22' })],
    refused('405 method_refused'),
  ],
  ['to-the-host-itself', [get([], tunnel)], refused('405 method_refused')],
  [
    'to-metadata',
    [get([], { ...tunnel, ':authority': '169.254.169.254:80' })],
    refused('405 method_refused'),
  ],
  [
    'with-a-body',
    [{ head: fields(tunnel) }, { data: 'SSH-2.0', isEnd: true }],
    refused('405 method_refused'),
  ],
  ['with-scheme-and-path', [get([], { ':method': 'CONNECT' })], reset],
  ['of-nothing', [get([], { ...tunnel, ':authority': undefined })], reset],
  ['extended', [get([], { ':method': 'CONNECT', ':protocol': 'websocket' })], reset],
  [
    'extended-with-masque',
    [
      get([], {
        ':method': 'CONNECT',
        ':protocol': 'connect-udp',
        ':path': '/.well-known/masque/udp/127.0.0.1/53/',
      }),
    ],
    reset,
  ],
  ['protocol-on-a-get', [get([], { ':protocol': 'websocket' })], reset],
  ['lower-case', [get([], { ':method': 'connect' })], refused('405 method_refused')],
  ['trace', [get([], { ':method': 'TRACE' })], refused('405 method_refused')],
]);

export const requestRows: readonly H2Row[] = [...t02, ...t03, ...t04, ...t05, ...t06, ...t07];
