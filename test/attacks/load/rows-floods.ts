// too many connections, too many bytes, and one sandbox that uses all that it can get.
import { type LoadRow, connectTo, inside } from './load-script.ts';

type Case = readonly [name: string, script: LoadRow['script'], expect: LoadRow['expect']];
const named = (id: string, cases: readonly Case[]): readonly LoadRow[] =>
  cases.map(([name, script, expect]) => ({ id: `${id} ${name}`, script, expect }));

const absolute = (path: string): string => inside(`GET http://<CLEAR>${path}`, [], '<CLEAR>');
const MANY = '503 too_many_connections';
const TIMEOUT = '408 request_timeout';

const connections = named('X-02', [
  [
    'clients-that-send-one-byte',
    { at: 'tight', entryPoint: 'plain', clients: 64, steps: [{ send: ['G'] }] },
    {
      responses: { [MANY]: 52, [TIMEOUT]: 12 },
      records: { 'refused too_many_connections': 52, 'refused request_timeout': 12 },
    },
  ],
  [
    'clients-that-send-half-a-head',
    {
      at: 'tight',
      entryPoint: 'plain',
      clients: 40,
      steps: [{ send: ['GET http://<CLEAR>/ HTTP/1.1\r\nHost: h'] }],
    },
    {
      responses: { [MANY]: 28, [TIMEOUT]: 12 },
      records: { 'refused too_many_connections': 28, 'refused request_timeout': 12 },
    },
  ],
  [
    'clients-that-stay-after-their-response',
    { at: 'tight', entryPoint: 'plain', clients: 40, steps: [{ send: [absolute('/')] }] },
    {
      responses: { '200': 24, [MANY]: 16 },
      arrived: { 'GET / 0': 24 },
      records: { 'forwarded no_match': 24, 'refused too_many_connections': 16 },
    },
  ],
  [
    'tunnels-that-are-intercepted-and-silent',
    { at: 'tight', entryPoint: 'plain', clients: 40, steps: [{ send: [connectTo('<API>')] }] },
    {
      responses: { '200': 24, [MANY]: 16 },
      records: { 'failed sniff_timeout': 24, 'refused too_many_connections': 16 },
    },
  ],
  [
    'two-hundred-that-connect-and-reset',
    { entryPoint: 'plain', clients: 200, steps: [{ leave: 'RST' }] },
    { responses: { nothing: 200 }, records: {} },
  ],
  [
    'two-hundred-that-connect-and-close',
    { entryPoint: 'plain', clients: 200, steps: [{ leave: 'FIN' }] },
    { responses: { nothing: 200 }, records: {} },
  ],
  [
    'two-hundred-with-one-request-each',
    { entryPoint: 'plain', clients: 200, steps: [{ send: [absolute('/')] }, { await: 1 }, { leave: 'FIN' }] },
    { responses: { '200': 200 }, arrived: { 'GET / 0': 200 }, records: { 'forwarded no_match': 200 } },
  ],
  [
    'probes-of-health',
    {
      at: 'tight',
      entryPoint: 'plain',
      clients: 64,
      steps: [{ send: ['GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n'] }],
    },
    { responses: { '200': 64 }, records: {} },
  ],
]);

const MIB = 1_048_576;
const post = (path: string, fields: readonly string[]): string => inside(`POST ${path}`, fields);

const uploads = named('X-05', [
  [
    'eight-mebibytes-with-a-length',
    {
      entryPoint: 'inside',
      clients: 2,
      steps: [
        { send: [post('/up', [`Content-Length: ${8 * MIB}`]), ['u', 8 * MIB]] },
        { await: 1 },
        { leave: 'FIN' },
      ],
    },
    { responses: { '200': 2 }, arrived: { [`POST /up ${8 * MIB}`]: 2 }, records: { injected: 2 } },
  ],
  [
    'two-mebibytes-in-chunks-of-four-kibibytes',
    {
      entryPoint: 'inside',
      clients: 2,
      steps: [
        {
          send: [
            post('/chunks', ['Transfer-Encoding: chunked']),
            [`1000\r\n${'c'.repeat(4_096)}\r\n`, 512],
            '0\r\n\r\n',
          ],
        },
        { await: 1 },
        { leave: 'FIN' },
      ],
    },
    { responses: { '200': 2 }, arrived: { [`POST /chunks ${2 * MIB}`]: 2 }, records: { injected: 2 } },
  ],
  [
    'chunks-of-one-byte',
    {
      entryPoint: 'inside',
      clients: 2,
      steps: [
        { send: [post('/crumbs-up', ['Transfer-Encoding: chunked']), ['1\r\nc\r\n', 16_384], '0\r\n\r\n'] },
        { await: 1 },
        { leave: 'FIN' },
      ],
    },
    { responses: { '200': 2 }, arrived: { 'POST /crumbs-up 16384': 2 }, records: { injected: 2 } },
  ],
  [
    'host-that-responds-without-reading',
    {
      entryPoint: 'inside',
      clients: 4,
      steps: [{ send: [post('/early', [`Content-Length: ${64 * MIB}`]), ['u', MIB]] }],
    },
    { responses: { '413': 4 }, arrived: { 'POST /early cut': 4 }, records: { injected: 4 } },
  ],
  [
    'host-that-resets-in-the-middle',
    {
      entryPoint: 'inside',
      clients: 4,
      steps: [{ send: [post('/reset', [`Content-Length: ${64 * MIB}`]), ['u', MIB]] }],
    },
    {
      responses: { '502 upstream_closed': 4 },
      arrived: { 'POST /reset cut': 4 },
      records: { 'failed upstream_closed': 4 },
    },
  ],
  [
    'announced-and-aborted',
    {
      entryPoint: 'inside',
      clients: 8,
      steps: [
        { send: [post('/deaf/n<N>', [`Content-Length: ${1024 * MIB}`]), ['u', 65_536]] },
        { arrived: true },
        { leave: 'RST' },
      ],
    },
    { arrived: { 'POST /deaf cut': 8 }, records: { 'failed client_gone': 8 } },
  ],
  [
    'through-a-blind-tunnel-to-a-host-that-does-not-read',
    {
      at: 'tight',
      entryPoint: 'blind',
      clients: 2,
      steps: [{ send: [inside('POST /deaf', [`Content-Length: ${64 * MIB}`], '<BLIND>'), ['u', 16 * MIB]] }],
    },
    { arrived: { 'POST /deaf cut': 2 }, records: { 'tunnelled idle': 2 } },
  ],
]);

const shares = named('X-12', [
  [
    'requests-one-after-the-other',
    {
      entryPoint: 'inside',
      clients: 8,
      steps: [{ send: [[inside('GET /p'), 100]] }, { await: 100 }, { leave: 'FIN' }],
    },
    { arrived: { 'GET /p 0': 800 }, records: { injected: 800 } },
  ],
  [
    'refusals-on-a-hundred-connections',
    {
      entryPoint: 'plain',
      clients: 100,
      steps: [
        { send: ['TRACE http://<CLEAR>/ HTTP/1.1\r\nHost: <CLEAR>\r\n\r\n'] },
        { await: 1 },
        { leave: 'FIN' },
      ],
    },
    { responses: { '405 method_refused': 100 }, records: { 'refused method_refused': 100 } },
  ],
  [
    'big-responses',
    {
      entryPoint: 'inside',
      clients: 8,
      steps: [{ send: [inside('GET /big', ['Connection: close'])] }],
    },
    { responses: { '200': 8 }, arrived: { 'GET /big 0': 8 }, records: { injected: 8 } },
  ],
  [
    'crumbs-of-a-response',
    {
      entryPoint: 'inside',
      clients: 8,
      steps: [{ send: [inside('GET /crumbs', ['Connection: close'])] }],
    },
    { responses: { '200': 8 }, arrived: { 'GET /crumbs 0': 8 }, records: { injected: 8 } },
  ],
  [
    'tunnels-with-much-data',
    {
      entryPoint: 'blind',
      clients: 8,
      steps: [
        { send: [inside('GET /big', ['Connection: close'], '<BLIND>')] },
        { await: 1 },
        { leave: 'FIN' },
      ],
    },
    { responses: { '200': 8 }, arrived: { 'GET /big 0': 8 }, records: { 'tunnelled no_match': 8 } },
  ],
  [
    'all-of-its-own-connections',
    {
      at: 'tight',
      entryPoint: 'plain',
      clients: 24,
      steps: [{ send: [absolute('/silent')] }],
    },
    {
      responses: { '504 upstream_timeout': 24 },
      arrived: { 'GET /silent 0': 24 },
      records: { 'failed upstream_timeout': 24 },
    },
  ],
]);

export const floodRows: readonly LoadRow[] = [...connections, ...uploads, ...shares];
