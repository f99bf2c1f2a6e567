// slow clients: heads, bodies and responses a byte at a time or not at all, idle tunnels, and
// unfinished handshakes.
import { type LoadRow, type LoadStep, connectTo, inside } from './load-script.ts';

const N = 8;
const TIMEOUT = '408 request_timeout';
const absolute = (path: string): string => `GET http://<CLEAR>${path} HTTP/1.1\r\nHost: <CLEAR>\r\n`;
const drip = (bytes: string, pauseMs = 20): LoadStep => ({ drip: [bytes], pauseMs });

type Case = readonly [name: string, row: Omit<LoadRow, 'id'>];
const named = (id: string, cases: readonly Case[]): readonly LoadRow[] =>
  cases.map(([name, row]) => ({ id: `${id} ${name}`, ...row }));

/** A head without an end. */
const lateHead = (entryPoint: 'plain' | 'inside', ...steps: LoadStep[]): Omit<LoadRow, 'id'> => ({
  script: { at: 'tight', entryPoint, clients: N, steps },
  expect: { responses: { [TIMEOUT]: N }, records: { 'refused request_timeout': N } },
});
/** A body without an end, after its host has received the head. */
const lateBody = (head: string, target: string, ...steps: LoadStep[]): Omit<LoadRow, 'id'> => ({
  script: { at: 'tight', entryPoint: 'inside', clients: N, steps: [{ send: [head] }, ...steps] },
  expect: {
    responses: { [TIMEOUT]: N },
    arrived: { [`POST ${target} cut`]: N },
    records: { 'refused request_timeout': N },
  },
});

const slowloris = named('X-01', [
  ['method-a-byte-at-a-time', lateHead('plain', drip('G'))],
  ['endless-field-value', lateHead('plain', { send: [`${absolute('/')}X-Slow: `] }, drip('z'))],
  [
    'field-after-field',
    lateHead('inside', { send: ['GET / HTTP/1.1\r\nHost: <API>\r\n'] }, drip('a: b\r\n')),
  ],
  ['all-but-the-last-line-end', lateHead('plain', { send: [`${absolute('/')}X-A: b\r\n`] })],
  ['cr-of-the-last-line-end', lateHead('inside', { send: ['GET / HTTP/1.1\r\nHost: <API>\r\n\r'] })],
  ['one-byte-and-nothing', lateHead('inside', { send: ['G'] })],
  ['connect-without-its-end', lateHead('plain', { send: ['CONNECT <API> HTTP/1.1\r\nHost: <API>\r\n'] })],
  [
    // RFC 9112 §2.2: a server ignores at least one empty line.
    'empty-lines-without-a-request',
    {
      script: { at: 'tight', entryPoint: 'plain', clients: N, steps: [drip('\r\n', 100)] },
      expect: { responses: { '400 malformed_request': N }, records: { 'refused malformed_request': N } },
    },
  ],
  [
    'second-request-of-a-connection',
    {
      script: {
        at: 'tight',
        entryPoint: 'inside',
        clients: N,
        steps: [{ send: [inside('GET /first')] }, { await: 1 }, { send: ['GET /second HTTP/1.1\r\nHo'] }],
      },
      expect: {
        responses: { [`200, ${TIMEOUT}`]: N },
        arrived: { 'GET /first 0': N },
        records: { injected: N, 'refused request_timeout': N },
      },
    },
  ],
  ['body-that-is-never-sent', lateBody(inside('POST /none', ['Content-Length: 100']), '/none')],
  ['body-that-stops', lateBody(`${inside('POST /stops', ['Content-Length: 100'])}half`, '/stops')],
  [
    'chunk-size-that-stops',
    lateBody(`${inside('POST /size', ['Transfer-Encoding: chunked'])}4\r\nbody\r\n0`, '/size'),
  ],
  [
    'trailers-that-stop',
    lateBody(`${inside('POST /trailers', ['Transfer-Encoding: chunked'])}0\r\nX-A: b\r\n`, '/trailers'),
  ],
  [
    'response-that-is-not-read',
    {
      script: {
        at: 'tight',
        entryPoint: 'inside',
        clients: 2,
        steps: [{ send: [inside('GET /endless')] }, { stop: 'reading' }],
      },
      expect: { arrived: { 'GET /endless cut': 2 }, records: { 'failed client_stalled': 2 } },
    },
  ],
]);

const tunnels = named('X-03', [
  [
    'silent-from-the-start',
    {
      script: { at: 'tight', entryPoint: 'blind', clients: N, steps: [] },
      expect: { responses: { nothing: N }, records: { 'tunnelled idle': N } },
    },
  ],
  [
    'silent-after-use',
    {
      script: {
        at: 'tight',
        entryPoint: 'blind',
        clients: N,
        steps: [{ send: [inside('GET /used', [], '<BLIND>')] }],
      },
      expect: { responses: { '200': N }, arrived: { 'GET /used 0': N }, records: { 'tunnelled idle': N } },
    },
  ],
  [
    'ended-by-the-client-and-not-by-the-host',
    {
      script: {
        at: 'tight',
        entryPoint: 'blind',
        clients: N,
        steps: [{ send: [inside('GET /deaf/n<N>', [], '<BLIND>')] }, { arrived: true }, { leave: 'FIN' }],
      },
      expect: {
        responses: { nothing: N },
        arrived: { 'GET /deaf cut': N },
        records: { 'tunnelled half_closed_idle': N },
      },
    },
  ],
  [
    'upgraded-and-silent',
    {
      script: {
        at: 'tight',
        entryPoint: 'inside',
        clients: N,
        steps: [{ send: [inside('GET /upgrade', ['Connection: Upgrade', 'Upgrade: websocket'])] }],
      },
      expect: { responses: { '101': N }, arrived: { 'GET /upgrade 0': N }, records: { 'upgraded idle': N } },
    },
  ],
  [
    'more-than-the-limit-of-a-sandbox',
    {
      script: { at: 'tight', entryPoint: 'plain', clients: 40, steps: [{ send: [connectTo('<BLIND>')] }] },
      expect: {
        responses: { '200': 24, '503 too_many_connections': 16 },
        records: { 'tunnelled idle': 24, 'refused too_many_connections': 16 },
      },
    },
  ],
  [
    'intercepted-and-never-used',
    {
      script: { at: 'tight', entryPoint: 'inside', clients: N, steps: [] },
      expect: { responses: { nothing: N }, records: { 'failed client_gone': N } },
    },
  ],
  [
    'reset-by-the-client-while-the-host-is-silent',
    {
      script: {
        at: 'tight',
        entryPoint: 'blind',
        clients: N,
        steps: [{ send: [inside('GET /silent/n<N>', [], '<BLIND>')] }, { arrived: true }, { leave: 'RST' }],
      },
      expect: { arrived: { 'GET /silent cut': N }, records: { 'tunnelled reset': N } },
    },
  ],
]);

const halfOpen = named(
  'X-04',
  (
    [
      ['nothing-after-200', '', 'sniff_timeout'],
      ['one-byte-of-a-record', '\u0016', 'sniff_timeout'],
      ['header-of-a-record', '\u0016\u0003\u0001\u0002\u0000', 'sniff_timeout'],
      ['half-a-hello', '<HELLO 120>', 'sniff_timeout'],
      [
        'record-of-sixteen-kibibytes-announced',
        '\u0016\u0003\u0001\u0040\u0000\u0001\u0000\u003f\u00fc',
        'sniff_timeout',
      ],
      ['hello-and-nothing-more', '<HELLO>', 'handshake_timeout'],
    ] as const
  ).map(
    ([name, bytes, reason]): Case => [
      name,
      {
        script: { at: 'tight', entryPoint: 'opened', clients: N, steps: [{ send: [bytes] }] },
        expect: { records: { [`failed ${reason}`]: N } },
      },
    ],
  ),
);

export const slowRows: readonly LoadRow[] = [
  ...slowloris,
  ...tunnels,
  ...halfOpen,
  ...named('X-04', [
    [
      'hello-and-garbage',
      {
        script: {
          at: 'tight',
          entryPoint: 'opened',
          clients: N,
          steps: [{ send: ['<HELLO>', ['\u0000', 64]] }],
        },
        expect: { records: { 'failed handshake_failed': N } },
      },
    ],
    [
      'hello-a-byte-at-a-time-without-end',
      {
        script: {
          at: 'tight',
          entryPoint: 'opened',
          clients: N,
          steps: [{ send: ['<HELLO 40>'] }, drip('\u0000')],
        },
        expect: { records: { 'failed sniff_timeout': N } },
      },
    ],
  ]),
];
