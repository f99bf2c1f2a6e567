// connections that end at an unexpected point, on either side, and records that are not read.
import { type LoadRow, type LoadScript, type LoadStep, connectTo, inside } from './load-script.ts';

const N = 16;
type Expect = LoadRow['expect'];
const row = (
  id: LoadRow['id'],
  entryPoint: LoadScript['entryPoint'],
  steps: readonly LoadStep[],
  expect: Expect,
  more: Partial<LoadScript> = {},
): LoadRow => ({ id, script: { entryPoint, clients: N, steps, ...more }, expect });
const upgrade = (path: string): string =>
  inside(`GET ${path}`, ['Connection: Upgrade', 'Upgrade: websocket']);
const RST: LoadStep = { leave: 'RST' };
const FIN: LoadStep = { leave: 'FIN' };

const thrown: readonly LoadRow[] = [
  row('X-09 host-resets-after-101', 'inside', [{ send: [upgrade('/upgrade-reset')] }], {
    arrived: { 'GET /upgrade-reset 0': N },
    records: { 'upgraded reset': N },
  }),
  row('X-09 client-resets-after-101', 'inside', [{ send: [upgrade('/echoes')] }, { await: 1 }, RST], {
    arrived: { 'GET /echoes 0': N },
    records: { 'upgraded reset': N },
  }),
  row(
    'X-09 upgrade-with-a-response-that-is-not-http',
    'inside',
    [{ send: [upgrade('/garbage')] }, { await: 1 }, FIN],
    {
      responses: { '502 upstream_malformed': N },
      arrived: { 'GET /garbage cut': N },
      records: { 'failed upstream_malformed': N },
    },
  ),
  row(
    'X-09 malformed-hello',
    'opened',
    [{ send: ['\u0016\u0003\u0001\u0000\u0005\u0001\u0000\u0000\u0001\u0000'] }],
    {
      records: { 'failed client_hello_malformed': N },
    },
  ),
  row('X-09 hello-and-reset', 'opened', [{ send: ['<HELLO>'] }, RST], {
    records: { 'failed handshake_aborted': N },
  }),
  row('X-09 bytes-of-an-unknown-protocol', 'opened', [{ send: [['\u00ff', 1_000]] }], {
    records: { 'failed not_tls_nor_http': N },
  }),
  row('X-09 connect-and-reset-at-once', 'plain', [{ send: [connectTo('<BLIND>')] }, RST], {
    records: { 'failed client_gone': N },
  }),
  row('X-09 name-that-does-not-resolve', 'plain', [{ send: [connectTo('lost.test:443')] }], {
    responses: { '502 dns_failed': N },
    records: { 'refused dns_failed': N },
  }),
];

/** Disconnects at each phase, by FIN and by RST. */
const phases = [
  ['tunnel-is-open', 'opened', []],
  ['half-a-hello-was-sent', 'opened', [{ send: ['<HELLO 100>'] }]],
  ['connection-is-idle', 'inside', [{ send: [inside('GET /first')] }, { await: 1 }]],
  [
    'half-a-head-was-sent',
    'inside',
    [{ send: [inside('GET /first')] }, { await: 1 }, { send: ['GET / HTTP/1.1\r\nHo'] }],
  ],
  ['host-is-silent', 'inside', [{ send: [inside('GET /silent/n<N>')] }, { arrived: true }]],
  [
    'half-a-body-was-sent',
    'inside',
    [{ send: [`${inside('POST /silent/n<N>', ['Content-Length: 9'])}half`] }, { arrived: true }],
  ],
  ['half-a-response-arrived', 'inside', [{ send: [inside('GET /half')] }, { await: 1 }]],
] as const satisfies readonly (readonly [string, LoadScript['entryPoint'], readonly LoadStep[]])[];

const arrivals: Readonly<Record<string, Expect['arrived']>> = {
  'connection-is-idle': { 'GET /first 0': N },
  'half-a-head-was-sent': { 'GET /first 0': N },
  'host-is-silent': { 'GET /silent 0': N },
  'half-a-body-was-sent': { 'POST /silent cut': N },
  'half-a-response-arrived': { 'GET /half 0': N },
};

const gone: Expect['records'] = { 'failed client_gone': N };
/** Without an open exchange there is nothing to record. */
const records: Readonly<Record<string, Expect['records']>> = {
  'connection-is-idle': { injected: N },
  'half-a-head-was-sent': { injected: N },
};

const left: readonly LoadRow[] = phases.flatMap(([phase, entryPoint, steps]) =>
  ([FIN, RST] as const).map((end) =>
    row(`X-10 ${end === FIN ? 'fin' : 'rst'}-when-${phase}`, entryPoint, [...steps, end], {
      records: records[phase] ?? gone,
      ...(arrivals[phase] ? { arrived: arrivals[phase] } : {}),
    }),
  ),
);

const BLOCKED: LoadStep = { sink: 'blocked' };
const plainGet = inside('GET http://<CLEAR>/', [], '<CLEAR>');
const refusedAll: Expect = {
  responses: { '503 record_sink_blocked': N },
  records: { 'refused record_sink_blocked': N },
};
const halfBody: LoadStep = { send: [`${inside('POST /n<N>', ['Content-Length: 8'])}half`] };

const blocked: readonly LoadRow[] = [
  row(
    'X-11 request-while-no-record-can-be-written',
    'plain',
    [BLOCKED, { send: [plainGet] }, { await: 1 }, FIN],
    refusedAll,
  ),
  row(
    'X-11 tunnel-while-no-record-can-be-written',
    'plain',
    [BLOCKED, { send: [connectTo('<BLIND>')] }],
    refusedAll,
  ),
  row(
    'X-11 interception-while-no-record-can-be-written',
    'plain',
    [BLOCKED, { send: [connectTo('<API>')] }],
    refusedAll,
  ),
  {
    id: 'X-11 body-in-progress-when-records-stop',
    script: {
      entryPoint: 'inside',
      clients: 1,
      steps: [halfBody, { arrived: true }, BLOCKED, { send: ['rest'] }, { await: 1 }, FIN],
    },
    expect: { responses: { '200': 1 }, arrived: { 'POST  8': 1 }, records: { injected: 1 } },
  },
  {
    id: 'X-11 request-in-an-open-tunnel',
    script: {
      entryPoint: 'inside',
      clients: 1,
      steps: [BLOCKED, { send: [inside('GET /')] }, { await: 1 }, FIN],
    },
    expect: { responses: { '503 record_sink_blocked': 1 }, records: { 'refused record_sink_blocked': 1 } },
  },
  {
    id: 'X-11 bytes-in-an-open-blind-tunnel',
    script: {
      entryPoint: 'blind',
      clients: 1,
      steps: [BLOCKED, { send: [inside('GET /', [], '<BLIND>')] }, { await: 1 }, FIN],
    },
    expect: { responses: { '200': 1 }, arrived: { 'GET / 0': 1 }, records: { 'tunnelled no_match': 1 } },
  },
  row(
    'X-11 malformed-request-while-no-record-can-be-written',
    'plain',
    [BLOCKED, { send: ['GET  / HTTP/1.1\r\n\r\n'] }],
    {
      responses: { '400 malformed_request': N },
      records: { 'refused malformed_request': N },
    },
  ),
];

export const endRows: readonly LoadRow[] = [...thrown, ...left, ...blocked];
