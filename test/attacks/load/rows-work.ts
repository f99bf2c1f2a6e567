// input that is more expensive to process than to send.
import { type Bytes, type LoadRow, connectTo, inside } from './load-script.ts';

const N = 8;
const fields = (count: number, name: (i: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => `${name(i)}: v`);

type Host = { readonly host?: string };

/** One request for each client; it arrives and gets a response. */
const served = (id: LoadRow['id'], request: string, arrived: string, host: Host = {}): LoadRow => ({
  id,
  script: {
    entryPoint: 'inside',
    ...host,
    clients: N,
    steps: [{ send: [request] }, { await: 1 }, { leave: 'FIN' }],
  },
  expect: { responses: { '200': N }, arrived: { [arrived]: N }, records: { injected: N } },
});
const refused = (
  id: LoadRow['id'],
  send: Bytes,
  response: string,
  { outcome = 'refused', ...host }: Host & { readonly outcome?: string } = {},
): LoadRow => ({
  id,
  script: { entryPoint: 'inside', ...host, clients: N, steps: [{ send }, { await: 1 }, { leave: 'FIN' }] },
  expect: { responses: { [response]: N }, records: { [`${outcome} ${response.slice(4)}`]: N } },
});
const narrow: Host = { host: 'narrow.test' };
const to = (host: string, line: string): string => inside(line, [], `<HOST:${host}>`);

const hashes: readonly LoadRow[] = [
  served('X-06 names-that-are-integers', inside('GET /i', fields(90, String)), 'GET /i 0'),
  served(
    'X-06 names-that-differ-by-a-power-of-two',
    inside(
      'GET /w',
      fields(90, (i) => String(i * 16_777_216)),
    ),
    'GET /w 0',
  ),
  served(
    'X-06 names-that-differ-only-in-case',
    inside(
      'GET /c',
      fields(90, (i) => `x-${i % 2 === 0 ? 'same' : 'SAME'}`),
    ),
    'GET /c 0',
  ),
  refused(
    'X-06 a-thousand-names-that-are-integers',
    [inside('GET /', fields(1_000, String))],
    '431 head_too_large',
  ),
  refused(
    'X-06 a-hundred-and-one-names',
    [
      inside(
        'GET /',
        fields(101, (i) => `x-${i}`),
      ),
    ],
    '431 head_too_large',
  ),
  refused(
    'X-06 connection-that-nominates-a-thousand',
    [inside('GET /n', [`Connection: ${Array.from({ length: 1_000 }, (_, i) => i).join(', ')}`])],
    '431 head_too_large',
  ),
  served(
    'X-06 a-thousand-cookies-that-are-integers',
    inside('GET /k', [`Cookie: ${Array.from({ length: 1_000 }, (_, i) => `${i}=0`).join('; ')}`]),
    'GET /k 0',
  ),
  served(
    'X-06 a-thousand-query-keys-that-are-integers',
    inside(`GET /q?${Array.from({ length: 1_000 }, (_, i) => `${i}=0`).join('&')}`),
    `GET /q?${Array.from({ length: 1_000 }, (_, i) => `${i}=0`).join('&')} 0`,
  ),
];

const nested = '%25'.repeat(1_000);
const depths: readonly LoadRow[] = [
  refused(
    'X-07 a-thousand-steps-up',
    [to('narrow.test', `GET ${'/..'.repeat(1_000)}`)],
    '400 ambiguous_path',
    narrow,
  ),
  // In its final form the path matches no rule.
  {
    id: 'X-07 escapes-in-escapes',
    script: {
      entryPoint: 'inside',
      ...narrow,
      clients: N,
      steps: [{ send: [to('narrow.test', `GET /${nested}41`)] }, { await: 1 }, { leave: 'FIN' }],
    },
    expect: {
      responses: { '200': N },
      arrived: { [`GET /${nested}41 0`]: N },
      records: { 'forwarded no_path_match': N },
    },
  },
  served(
    'X-07 a-thousand-steps-up-without-path-rules',
    inside(`GET ${'/..'.repeat(1_000)}`),
    `GET ${'/..'.repeat(1_000)} 0`,
  ),
  served(
    'X-07 comments-in-comments',
    inside('GET /u', [`User-Agent: ${'('.repeat(4_000)}${')'.repeat(4_000)}`]),
    'GET /u 0',
  ),
  served('X-07 json-of-depth-in-a-field', inside('GET /j', [`X-Json: ${'['.repeat(8_000)}`]), 'GET /j 0'),
  refused(
    'X-07 extensions-of-a-chunk-without-end',
    [inside('POST /x', ['Transfer-Encoding: chunked']), '4', [';a="b', 8_000]],
    '400 malformed_request',
  ),
  {
    id: 'X-07 tunnel-in-a-tunnel',
    script: { entryPoint: 'inside', clients: N, steps: [{ send: [[connectTo('<API>'), 20]] }] },
    expect: { responses: { '405 method_refused': N }, records: { 'refused method_refused': N } },
  },
  refused(
    'X-07 callback-that-returns-sixty-thousand-brackets',
    [to('deep.test', 'GET /')],
    '502 callback_failed',
    { host: 'deep.test', outcome: 'failed' },
  ),
];

const nearly = `/x/${'a'.repeat(3_800)}/${'a'.repeat(3_800)}/9/z`;
const blocks: readonly LoadRow[] = [
  {
    id: 'X-08 forty-names-that-each-need-a-leaf',
    script: {
      entryPoint: 'inside',
      host: 'n<N>.many.test',
      clients: 40,
      steps: [{ send: [to('n<N>.many.test', 'GET /')] }, { await: 1 }, { leave: 'FIN' }],
    },
    expect: { responses: { '200': 40 }, arrived: { 'GET / 0': 40 }, records: { injected: 40 } },
  },
  {
    id: 'X-08 path-that-nearly-matches-every-pattern',
    script: {
      entryPoint: 'inside',
      ...narrow,
      clients: N,
      steps: [{ send: [to('narrow.test', `GET ${nearly}`)] }, { await: 1 }, { leave: 'FIN' }],
    },
    expect: {
      responses: { '200': N },
      arrived: { [`GET ${nearly} 0`]: N },
      records: { 'forwarded no_path_match': N },
    },
  },
  served('X-08 four-thousand-segments', inside(`GET ${'/a'.repeat(4_000)}`), `GET ${'/a'.repeat(4_000)} 0`),
  served(
    'X-08 two-thousand-escapes',
    inside(`GET /${'%E2%82%AC'.repeat(600)}`),
    `GET /${'%E2%82%AC'.repeat(600)} 0`,
  ),
  {
    id: 'X-08 interim-responses-without-end',
    script: {
      entryPoint: 'inside',
      clients: N,
      steps: [{ send: [inside('GET /interim')] }, { await: 21 }, { leave: 'FIN' }],
    },
    expect: {
      responses: { [`${'103, '.repeat(20)}502 upstream_malformed`]: N },
      arrived: { 'GET /interim cut': N },
      records: { 'failed upstream_malformed': N },
    },
  },
  {
    id: 'X-08 response-of-twenty-thousand-fields',
    script: {
      entryPoint: 'inside',
      clients: N,
      steps: [{ send: [inside('GET /fields')] }, { await: 1 }, { leave: 'FIN' }],
    },
    expect: {
      responses: { '502 upstream_malformed': N },
      arrived: { 'GET /fields cut': N },
      records: { 'failed upstream_malformed': N },
    },
  },
  refused(
    'X-08 head-of-thirty-kibibytes',
    [inside('GET /', [`X-A: ${'a'.repeat(30_000)}`])],
    '431 head_too_large',
  ),
  refused('X-08 target-of-nine-kibibytes', [inside(`GET /${'a'.repeat(9_000)}`)], '414 uri_too_long'),
];

export const workRows: readonly LoadRow[] = [...hashes, ...depths, ...blocks];
