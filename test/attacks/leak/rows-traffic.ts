// L-01, L-02, L-03, L-12: what passes through a running sidecar and must not come out of it again: in its log, in its
// records, in what traces and metrics would be, and at the API that takes secrets.
import type { TrafficRow, TrafficScript } from './leak-script.ts';

const row = (
  id: TrafficRow['id'],
  entry: TrafficScript['entry'],
  send: string | TrafficScript['send'],
  status: number | readonly number[],
  more: Omit<TrafficRow['expect'], 'statuses'> = {},
): TrafficRow => ({
  id,
  script: { entry, send: typeof send === 'string' ? [[send]] : send },
  expect: { statuses: typeof status === 'number' ? [status] : status, ...more },
});
const head = (line: string, ...fields: readonly string[]): string =>
  `${[`${line} HTTP/1.1`, ...fields].join('\r\n')}\r\n\r\n`;
const inside = (target: string, ...fields: readonly string[]): string =>
  head(`GET ${target}`, 'Host: <API>', ...fields);
const clear = (target: string, ...fields: readonly string[]): string =>
  head(`GET http://<CLEAR>${target}`, 'Host: <CLEAR>', ...fields);
const QUIET = { path: '/v1', outcome: 'injected', injected: ['Authorization', 'X-Key'] } as const;

const logRows: readonly TrafficRow[] = [
  row('L-01 injected', 'tunnel', inside('/v1'), 200, { record: QUIET }),
  row('L-01 query', 'tunnel', inside('/v1?api_key=<MARK>&x=<OPAQUE>'.replace('"\\%', '')), 400),
  row('L-01 query-of-a-key', 'tunnel', inside('/v1?access_token=<MARK>'), 200, { record: QUIET }),
  row('L-01 query-behind-a-second-mark', 'tunnel', inside('/v1?a?<MARK>?/../x'), 200, { record: QUIET }),
  row('L-01 the-agents-own-authorization', 'tunnel', inside('/v1', 'Authorization: Bearer <MARK>'), 200, {
    record: QUIET,
  }),
  row('L-01 cookie', 'tunnel', inside('/v1', 'Cookie: session=<MARK>'), 200, { record: QUIET }),
  row(
    'L-01 referer-and-agent',
    'tunnel',
    inside('/v1', 'Referer: https://x.test/?<MARK>', 'User-Agent: <MARK>'),
    200,
    { record: QUIET },
  ),
  row('L-01 field-name', 'tunnel', inside('/v1', 'X-<MARK>: 1'), 200, { record: QUIET }),
  row('L-01 body', 'tunnel', `${head('POST /v1', 'Host: <API>', 'Content-Length: 44')}<MARK>`, 200, {
    record: { method: 'POST', path: '/v1' },
  }),
  row(
    'L-01 chunk-extension',
    'tunnel',
    `${head('POST /v1', 'Host: <API>', 'Transfer-Encoding: chunked')}1;x=<MARK>\r\na\r\n0\r\n\r\n`,
    400,
  ),
  row('L-01 userinfo', 'proxy', head('GET http://user:<MARK>@<CLEAR>/', 'Host: <CLEAR>'), 400),
  row('L-01 userinfo-in-connect', 'proxy', head('CONNECT user:<MARK>@<API>', 'Host: <API>'), 400),
  row('L-01 proxy-token', 'proxy', clear('/', 'Proxy-Authorization: Bearer <MARK>'), 407),
  row(
    'L-01 proxy-password',
    'proxy',
    clear(
      '/',
      'Proxy-Authorization: Basic dXNlcjpjYW5hcnktbWFyay1lY2NiYzg3ZTRiNWNlMmZlMjgzMDhmZDlmMmE3YmFmMw==',
    ),
    407,
  ),
  row('L-01 a-line-that-is-no-field', 'proxy', head('GET http://<CLEAR>/', 'Host: <CLEAR>', '<MARK>'), 400),
  row('L-01 a-method-that-is-too-long', 'proxy', head('<MARK> http://<CLEAR>/', 'Host: <CLEAR>'), 405),
  row('L-01 a-version-that-is-none', 'proxy', 'GET http://<CLEAR>/ <MARK>\r\n\r\n', 400),
  row('L-01 a-host-that-is-none', 'proxy', head('GET /', 'Host: <MARK>/<MARK>'), 400),
  row('L-01 an-expectation', 'proxy', clear('/', 'Expect: <MARK>'), 417),
  row('L-01 a-coding', 'proxy', clear('/', 'Transfer-Encoding: <MARK>'), 501),
  row('L-01 a-length', 'proxy', clear('/', 'Content-Length: <MARK>'), 400),
  row('L-01 connection-options', 'proxy', clear('/', 'Connection: <MARK>', '<MARK>: <MARK>'), 200),
  row('L-01 an-upgrade', 'proxy', clear('/', 'Connection: upgrade', 'Upgrade: <MARK>'), 200),
  row(
    'L-01 a-wrong-admin-token',
    'admin',
    head('GET /v1/proxy_config', 'Host: localhost', 'X-Api-Key: <MARK>'),
    401,
  ),
  row(
    'L-01 an-admin-path',
    'admin',
    head('POST /v1/<MARK>', 'Host: localhost', 'Authorization: Bearer <TOKEN>'),
    404,
  ),
  row(
    'L-01 an-admin-sandbox',
    'admin',
    head('DELETE /v1/sandboxes/CANARY-<MARK>', 'Host: localhost', 'Authorization: Bearer <TOKEN>'),
    404,
  ),
  row('L-01 an-admin-host', 'admin', head('GET /healthz', 'Host: <MARK>.test'), 421),
];

const FORGED = '{"level":"info","msg":"exchange","outcome":"injected"}';
const forging = (path: string): string => inside(path, 'Connection: close');
const longPath = `/${'a'.repeat(510)}`;
const forgeRows: readonly TrafficRow[] = [
  row('L-02 json-in-the-path', 'tunnel', forging(`/v1/${FORGED.replaceAll('"', "'")}`), 200, {
    record: { path: `/v1/${FORGED.replaceAll('"', "'")}` },
  }),
  row('L-02 quotes-in-the-path', 'tunnel', forging('/v1","outcome":"injected'), 400),
  row('L-02 encoded-line-end', 'tunnel', forging('/v1%0d%0a%7b%22msg%22:%22exchange%22%7d'), 200, {
    record: { path: '/v1%0d%0a%7b%22msg%22:%22exchange%22%7d' },
  }),
  row('L-02 encoded-escape', 'tunnel', forging('/v1%1b[2J'), 200, { record: { path: '/v1%1b[2J' } }),
  row('L-02 encoded-escape-in-full', 'tunnel', forging('/v1%1b%5b2J'), 200, {
    record: { path: '/v1%1b%5b2J' },
  }),
  row('L-02 raw-escape', 'tunnel', forging('/v1\u001b[2J'), 400),
  row('L-02 raw-line-separator', 'tunnel', forging('/v1\u00e2\u0080\u00a8'), 400),
  row('L-02 encoded-line-separator', 'tunnel', forging('/v1%e2%80%a8'), 200, {
    record: { path: '/v1%e2%80%a8' },
  }),
  row('L-02 raw-next-line', 'tunnel', forging('/v1\u0085x'), 400),
  row('L-02 backslash', 'tunnel', forging('/v1\\u000a'), 200, { record: { path: '/v1\\u000a' } }),
  row('L-02 carriage-return', 'tunnel', 'GET /v1\r{"msg":"exchange"} HTTP/1.1\r\nHost: <API>\r\n\r\n', 400),
  row('L-02 line-feed', 'tunnel', 'GET /v1\n{"msg":"exchange"} HTTP/1.1\r\nHost: <API>\r\n\r\n', 400),
  row('L-02 a-path-of-512', 'tunnel', forging(`${longPath}b`), 200, { record: { path: `${longPath}b` } }),
  row('L-02 a-path-of-513', 'tunnel', forging(`${longPath}bc`), 200, { record: { path: `${longPath}b…` } }),
  row(
    'L-02 a-path-of-8-kilobytes',
    'tunnel',
    [[`GET /`, ['a', 8_000], ' HTTP/1.1\r\nHost: <API>\r\n\r\n']],
    200,
    { record: { path: `/${'a'.repeat(511)}…` } },
  ),
  row(
    'L-02 a-path-of-a-megabyte',
    'tunnel',
    [['GET /', ['a', 1_048_576], ' HTTP/1.1\r\nHost: <API>\r\n\r\n']],
    414,
  ),
  row(
    'L-02 a-head-of-a-megabyte',
    'proxy',
    [['GET http://<CLEAR>/ HTTP/1.1\r\nHost: <CLEAR>\r\nX: ', ['a', 1_048_576], '\r\n\r\n']],
    431,
  ),
  row(
    'L-02 an-authority-with-a-line-end',
    'proxy',
    head('CONNECT api.test:443%0a{"msg":"exchange"}', 'Host: x'),
    400,
  ),
  row(
    'L-02 an-authority-of-8-kilobytes',
    'proxy',
    [['CONNECT ', ['a.', 4_000], 'test:443 HTTP/1.1\r\nHost: x\r\n\r\n']],
    400,
  ),
  row('L-02 a-method-like-json', 'proxy', head("{'msg':'exchange'} http://<CLEAR>/", 'Host: <CLEAR>'), 400),
  row(
    'L-02 a-method-of-token-signs',
    'proxy',
    head("!#$%&'*+-.^_`|~ http://<CLEAR>/", 'Host: <CLEAR>'),
    200,
    { record: { method: "!#$%&'*+-.^_`|~" } },
  ),
];

const JSON_TYPE = 'Content-Type: application/json';
const write = (line: string, body: string, length: number = Buffer.byteLength(body, 'latin1')): string =>
  `${head(line, 'Host: localhost', 'Authorization: Bearer <TOKEN>', JSON_TYPE, `Content-Length: ${length}`)}${body}`;
/** With each place-holder as long as what it stands for; two of the opaque's bytes are escaped in JSON. */
const filledLength = (body: string): number =>
  Buffer.byteLength(body, 'latin1') +
  28 * (body.split('<MARK>').length - 1) +
  (44 - 6 - 28) * (body.split('<MARK>').length - 1);
const marked = (line: string, body: string): string => write(line, body, filledLength(body));
const named = (name: string): string =>
  `{"rules":[{"name":"${name}","match_hosts":["other.test"],"headers":[{"name":"X-A","type":"plaintext","value":"v"}]}]}`;
const nameRows: readonly TrafficRow[] = [
  ['line-separator', '\\u2028'],
  ['paragraph-separator', '\\u2029'],
  ['next-line', '\\u0085'],
  ['line-feed', '\\n'],
  ['escape', '\\u001b[31m'],
  ['right-to-left-override', '\\u202e'],
  ['isolate', '\\u2066'],
  ['right-to-left-mark', '\\u200f'],
  ['delete', '\\u007f'],
  ['nul', '\\u0000'],
].map(([name, sign]) =>
  row(`L-02 a-rule-named-with-${name}`, 'admin', write('PUT /v1/proxy_config', named(`a${sign}b`)), 422, {
    holds: '["body","rules",0,"name"]',
  }),
);

const traced = (...fields: readonly string[]): string => inside('/v1', ...fields);
const traceRows: readonly TrafficRow[] = [
  row(
    'L-03 traceparent-and-baggage',
    'tunnel',
    traced('traceparent: 00-<MARK>-01', 'baggage: k=<MARK>', 'tracestate: x=<MARK>'),
    200,
    { record: QUIET },
  ),
  row('L-03 request-id', 'tunnel', traced('X-Request-Id: <MARK>', 'X-Correlation-Id: <MARK>'), 200, {
    record: QUIET,
  }),
  row(
    'L-03 b3-and-datadog',
    'tunnel',
    traced('b3: <MARK>', 'x-datadog-trace-id: <MARK>', 'uber-trace-id: <MARK>'),
    200,
    { record: QUIET },
  ),
  row(
    'L-03 request-id-at-the-admin-api',
    'admin',
    head('GET /healthz', 'Host: localhost', 'X-Request-Id: <MARK>', 'traceparent: <MARK>'),
    200,
  ),
  row('L-03 metrics', 'admin', head('GET /metrics', 'Host: localhost', 'Authorization: Bearer <TOKEN>'), 404),
  row('L-03 metrics-at-the-proxy', 'proxy', head('GET /metrics', 'Host: <MARK>.test'), 400),
  row('L-03 health-with-labels', 'proxy', head('GET /healthz?host=<MARK>', 'Host: localhost'), 400),
  row(
    'L-03 a-hundred-methods',
    'proxy',
    Array.from({ length: 100 }, (_, i) => [
      head(`LABEL${i} http://<CLEAR>/`, 'Host: <CLEAR>', 'Connection: close'),
    ]),
    Array.from({ length: 100 }, () => 200),
    { record: { method: 'LABEL99' } },
  ),
  row(
    'L-03 health-after-a-hundred-methods',
    'admin',
    head('GET /healthz', 'Host: localhost', 'Accept: application/json;version=LABEL'),
    200,
    { holds: '\r\n\r\n{"status":"ok"}\n' },
  ),
];

const SHOWN = '{"name":"Authorization","type":"opaque","is_set":true}';
const OPAQUE = (more: string): string =>
  `{"rules":[{"name":"leaky","match_hosts":["api.test"],"headers":[{"name":"Authorization","type":"opaque"${more}}]}]}`;
const read = (path: string, ...fields: readonly string[]): string =>
  head(`GET ${path}`, 'Host: localhost', 'Authorization: Bearer <TOKEN>', ...fields);
const apiRows: readonly TrafficRow[] = [
  row('L-12 the-config', 'admin', read('/v1/proxy_config'), 200, { holds: SHOWN }),
  row('L-12 the-config-of-the-sandbox', 'admin', read('/v1/sandboxes/default/proxy_config'), 200, {
    holds: SHOWN,
  }),
  row('L-12 the-sandboxes', 'admin', read('/v1/sandboxes'), 200),
  row('L-12 the-sandbox', 'admin', read('/v1/sandboxes/default'), 200),
  row('L-12 the-secrets', 'admin', read('/v1/workspace_secrets'), 200, { holds: '"workspace_secrets":[' }),
  row('L-12 the-secrets-of-the-sandbox', 'admin', read('/v1/sandboxes/default/workspace_secrets'), 200),
  row('L-12 a-secret-by-name', 'admin', read('/v1/workspace_secrets/VALUE'), 404),
  row('L-12 with-a-reveal', 'admin', read('/v1/proxy_config?reveal=true'), 422),
  row('L-12 if-none-match', 'admin', read('/v1/proxy_config', 'If-None-Match: "x"'), 200, { holds: SHOWN }),
  row(
    'L-12 kept-and-shown',
    'admin',
    [
      [write('PUT /v1/proxy_config', OPAQUE(',"is_set":true'))],
      [read('/v1/proxy_config', 'Accept: text/plain')],
    ],
    [200, 200],
    { holds: SHOWN },
  ),
  row(
    'L-12 moved-to-another-host',
    'admin',
    write('PUT /v1/proxy_config', OPAQUE('').replace('api.test', 'evil.test')),
    422,
  ),
  row(
    'L-12 moved-under-a-wildcard',
    'admin',
    write('PUT /v1/proxy_config', OPAQUE('').replace('api.test', '*.test')),
    422,
  ),
  row(
    'L-12 moved-to-another-header',
    'admin',
    write('PUT /v1/proxy_config', OPAQUE('').replace('Authorization', 'X-Other')),
    422,
  ),
  row(
    'L-12 as-plaintext',
    'admin',
    write('PUT /v1/proxy_config', OPAQUE('').replace('opaque', 'plaintext')),
    422,
  ),
  row(
    'L-12 as-a-template',
    'admin',
    write('PUT /v1/proxy_config', OPAQUE(',"value":"{Authorization}"').replace('opaque', 'workspace_secret')),
    422,
  ),
  row(
    'L-12 moved-to-a-callback',
    'admin',
    write(
      'PUT /v1/proxy_config',
      '{"callbacks":[{"name":"leaky","match_hosts":["api.test"],"url":"https://evil.test/","ttl_seconds":60,"request_headers":[{"name":"Authorization","type":"opaque","is_set":true}]}]}',
    ),
    422,
  ),
  row(
    'L-12 an-error-beside-a-value',
    'admin',
    marked('PUT /v1/proxy_config', OPAQUE(',"value":"<MARK>"').replace('"name":"leaky"', '"name":""')),
    422,
  ),
  row('L-12 a-value-as-a-key', 'admin', marked('PUT /v1/workspace_secrets', '{"<MARK>":"NAME"}'), 422),
  row(
    'L-12 a-value-as-a-name',
    'admin',
    marked('PUT /v1/proxy_config', OPAQUE('').replace('"Authorization"', '"<MARK> x"')),
    422,
  ),
  row(
    'L-12 a-sandbox-with-values',
    'admin',
    [
      [
        marked(
          'POST /v1/sandboxes',
          '{"id":"kept","token":"token-0123456789abcdef","workspace_secrets":{"A":"<MARK>"}}',
        ),
      ],
      [read('/v1/sandboxes/kept')],
      [read('/v1/sandboxes/kept/workspace_secrets')],
      [head('DELETE /v1/sandboxes/kept', 'Host: localhost', 'Authorization: Bearer <TOKEN>')],
    ],
    [201, 200, 200, 204],
    { holds: '[{"key":"A"}]' },
  ),
];

export const trafficRows: readonly TrafficRow[] = [
  ...logRows,
  ...forgeRows,
  ...nameRows,
  ...traceRows,
  ...apiRows,
];
